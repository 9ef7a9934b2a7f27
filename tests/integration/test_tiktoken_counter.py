"""The token counter against tiktoken itself, with the vocabulary that ships."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnfold.adapters.tiktoken_counter import (
    CACHED_FROM_CHARACTERS,
    LONGEST_BLANK_RUN,
    VOCABULARIES,
    TiktokenCounter,
    VocabularyError,
    encoding_name,
)

VOCABULARY = Path(__file__).parents[2] / "layers" / "vocab" / "vocabulary"
MODELS = {"gpt-4o": "o200k_base", "gpt-4": "cl100k_base"}
MEGABYTE = 1_048_576


@pytest.fixture(scope="session")
def vocabulary() -> Path:
    assert VOCABULARY.is_dir(), "make vocabulary unpacks it"
    return VOCABULARY


@pytest.fixture(scope="session")
def counter(vocabulary: Path) -> TiktokenCounter:
    counter = TiktokenCounter(vocabulary)
    for model in MODELS:
        counter.count("loaded", model)
    return counter


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def by_tiktoken(text: str, encoding: str) -> int:
    import tiktoken

    return len(tiktoken.get_encoding(encoding).encode(text, disallowed_special=()))


SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|fim_prefix|>"]
BLANKS = [" ", "  ", "\n", "\r\n", "\t", "\u3000", "\u2028", "\u0085", "\ufeff", "\x00"]
PIECES = [
    "'s",
    "'LL",
    "don't",
    "A",
    "aB",
    "é",
    "e\u0301",
    "1",
    "12345",
    ".",
    "...",
    "/",
    "{",
    "${X}",
]
SCRIPTS = ["中", "文字", "。", "한국", "ก", "ا", "👨‍👩‍👧", "🇨🇭"]
TRICKY = st.sampled_from([*SPECIAL, *BLANKS, *PIECES, *SCRIPTS])
TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(TRICKY, max_size=300).map("".join),
    st.text("ab \n", max_size=600),
)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS, model=st.sampled_from(sorted(MODELS)))
def test_a_count_is_tiktokens(counter: TiktokenCounter, text: str, model: str) -> None:
    expected = by_tiktoken(text, MODELS[model])
    assert counter.count(text, model) == expected
    assert counter.count(text, model) == expected, "from the cache"
    assert expected <= len(text.encode())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox, 42 times. " * 1600,
        "下周二的会议改到三点，请通知大家。" * 3000,
        "def f(x):\n    return {x: [1, 2.5]}\n\n" * 1300,
        "Страница 12 из 300\r\n" * 2500,
        "👍🏽 ok 🧠 " * 6000,
    ],
    ids=["English", "Chinese", "code", "Russian", "emoji"],
)
def test_long_texts_are_counted_exactly(counter: TiktokenCounter, text: str, model: str) -> None:
    assert counter.count(text, model) == by_tiktoken(text, MODELS[model])


LONG_RUNS = {
    "blanks": " " * MEGABYTE,
    "blanks and a word": "a" + " " * (MEGABYTE - 1) + "word",
    "tabs": "\t" * MEGABYTE,
    "line feeds": "\n" * MEGABYTE,
    "wide blanks": "\u3000" * (MEGABYTE // 3),
    "mixed blanks": " \n\t " * (MEGABYTE // 4),
    "one letter": "a" * MEGABYTE,
    "capitals": "A" * MEGABYTE,
    "words": "word " * (MEGABYTE // 5),
    "digits": "7" * MEGABYTE,
    "points": "." * MEGABYTE,
    "apostrophes": "'" * MEGABYTE,
    "emoji": "😀" * (MEGABYTE // 4),
    "family": "👨‍👩‍👧" * (MEGABYTE // 18),
    "Chinese": "中" * (MEGABYTE // 3),
    "many ideographs": "".join(chr(0x4E00 + at % 20_000) for at in range(MEGABYTE // 3)),
    "Thai": "ก" * (MEGABYTE // 3),
    "marks": "e" + "\u0301" * (MEGABYTE // 2),
    "base64": "QmFzZTY0" * (MEGABYTE // 8),
    "special tokens": "<|endoftext|>" * (MEGABYTE // 13),
    "controls": "\x1f" * MEGABYTE,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.timeout(60)  # seconds; it takes less than one
def test_a_megabyte_of_anything_is_counted(counter: TiktokenCounter, name: str, model: str) -> None:
    text = LONG_RUNS[name]
    tokens = counter.count(text, model)
    assert 0 < tokens <= len(text.encode())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u3000"])
@pytest.mark.parametrize("more", [1, 2000, LONGEST_BLANK_RUN + 5])
def test_cutting_a_run_of_blanks_hardly_changes_its_count(
    counter: TiktokenCounter, blank: str, more: int, model: str
) -> None:
    run = blank * (LONGEST_BLANK_RUN + more)
    assert counter.count(run, model) == by_tiktoken(run, MODELS[model])
    inside = f"x.{run}y\n"
    exact = by_tiktoken(inside, MODELS[model])
    # A mark takes the line feeds after it into its own token, and moves the rest by one.
    assert exact <= counter.count(inside, model) <= exact + (blank == "\n")


def test_mixed_blanks_cost_at_most_a_token_per_cut(counter: TiktokenCounter) -> None:
    text = " \n\t " * (LONGEST_BLANK_RUN // 2)
    exact = by_tiktoken(text, "o200k_base")
    assert exact <= counter.count(text) <= exact + 1


def test_surrogates_that_slipped_through_are_counted(counter: TiktokenCounter) -> None:
    assert 0 < counter.count("\ud83d") <= 3
    assert 0 < counter.count("\udc00" * CACHED_FROM_CHARACTERS) <= 3 * CACHED_FROM_CHARACTERS


def test_a_panic_of_the_tokenizer_ends_in_smaller_pieces(
    counter: TiktokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        pass

    class Panicking:
        most = 20_000

        def encode_ordinary(self, text: str) -> list[int]:
            if len(text) > self.most:
                raise PanicException
            return [0] * (len(text) // 4)

    fake = Panicking()
    monkeypatch.setitem(counter._encodings, "o200k_base", fake)
    assert counter.count("panic " * 20_000) == 30_000
    fake.most = 0
    assert counter.count("Panic!" * 20_000) == 120_000, "no more than its bytes"


def test_other_interruptions_are_not_swallowed(
    counter: TiktokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def encode_ordinary(self, text: str) -> list[int]:
            raise KeyboardInterrupt

    monkeypatch.setitem(counter._encodings, "o200k_base", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        counter.count("x")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (None, "o200k_base"),
        ("", "o200k_base"),
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-oss-20b", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("GPT-4-Turbo", "cl100k_base"),
        ("gpt-4.1", "o200k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("azure/gpt-4", "cl100k_base"),
        ("openrouter/openai/gpt-4-32k", "cl100k_base"),
        ("openai.gpt-4", "cl100k_base"),
        ("ft:gpt-4-0613:acme::id", "cl100k_base"),
        ("ft:gpt-4o-mini-2024-07-18:acme:x:id", "o200k_base"),
        ("ft:gpt-4.1-mini-2025-04-14:acme::id", "o200k_base"),
        ("ft:gpt-3.5-turbo", "cl100k_base"),
        ("ft:", "o200k_base"),
        ("text-davinci-003", "o200k_base"),
        ("gpt2", "o200k_base"),
        ("claude-sonnet", "o200k_base"),
        ("/", "o200k_base"),
        ("\u0000", "o200k_base"),
    ],
)
def test_models_and_their_encodings(model: str | None, name: str) -> None:
    assert encoding_name(model) == name


@given(model=st.text(max_size=80))
def test_no_model_name_is_an_error(model: str) -> None:
    assert encoding_name(model) in VOCABULARIES
    assert encoding_name(f"ft:{model}") in VOCABULARIES


def test_special_tokens_are_plain_text(counter: TiktokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1
    assert counter.count("<|endoftext|>", "gpt-4") > 1


def test_the_cache_is_bounded_and_keeps_what_is_used(
    vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnfold.adapters.tiktoken_counter.CACHED_TEXTS", 3)
    counter = TiktokenCounter(vocabulary)
    texts = [f"{at} " * CACHED_FROM_CHARACTERS for at in range(5)]
    for text in texts:
        counter.count(texts[0])
        counter.count(text)
        counter.count(text, "gpt-4")
    kept = counter._counts._counts
    assert len(kept) == 3
    assert counter.count(texts[0]) == by_tiktoken(texts[0], "o200k_base")


def test_threads_may_share_a_counter(vocabulary: Path) -> None:
    counter = TiktokenCounter(vocabulary)
    texts = [f"{at % 7} words and more " * 100 for at in range(60)]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(counter.count, texts))
    assert counts == [by_tiktoken(text, "o200k_base") for text in texts]


def test_a_missing_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenCounter(tmp_path).count("x")
    os.environ.pop("TIKTOKEN_CACHE_DIR", None)
    with pytest.raises(VocabularyError):
        TiktokenCounter().count("x")


def test_a_damaged_vocabulary_is_neither_used_nor_removed(vocabulary: Path, tmp_path: Path) -> None:
    name = VOCABULARIES["cl100k_base"][0]
    damaged = Path(shutil.copy(vocabulary / name, tmp_path))
    damaged.write_bytes(damaged.read_bytes()[:-10])
    with pytest.raises(VocabularyError, match="damaged"):
        TiktokenCounter(tmp_path).count("x", "gpt-4")
    assert damaged.exists()


def run(program: str, **environment: str) -> str:
    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    return shown.stdout.strip()


def test_the_folder_may_come_from_the_environment(vocabulary: Path) -> None:
    program = (
        "from turnfold.adapters.tiktoken_counter import TiktokenCounter\n"
        "print(TiktokenCounter().count('hello world'))"
    )
    assert run(program, TIKTOKEN_CACHE_DIR=str(vocabulary)) == "2"


def test_the_folder_may_lie_in_a_folder_of_the_path(vocabulary: Path) -> None:
    program = (
        f"import sys; sys.path.append({str(vocabulary.parent)!r})\n"
        "from turnfold.adapters.tiktoken_counter import TiktokenCounter\n"
        "print(TiktokenCounter().count('hello world'))"
    )
    assert run(program, TIKTOKEN_CACHE_DIR="/opt/vocabulary") == "2"


def test_nothing_is_loaded_before_the_first_count(vocabulary: Path) -> None:
    program = (
        "import sys\n"
        "from turnfold.adapters.tiktoken_counter import TiktokenCounter\n"
        "TiktokenCounter()\n"
        "print([one for one in ('tiktoken', 'regex', 'requests') if one in sys.modules])"
    )
    assert run(program) == "[]"


def test_a_count_opens_no_connection(vocabulary: Path) -> None:
    program = (
        "import socket\n"
        "def refuse(*_): raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from pathlib import Path\n"
        "from turnfold.adapters.tiktoken_counter import TiktokenCounter\n"
        f"counter = TiktokenCounter(Path({str(vocabulary)!r}))\n"
        "print(counter.count('hello world'), counter.count('hello world', 'gpt-4'))"
    )
    assert run(program) == "2 2"
