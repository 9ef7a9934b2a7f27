from pathlib import Path

import pytest

from turnfold.application.prompts import VERSIONS, Prompt, PromptLibrary

SUMMARIES = ("round_summary", "history_summary")
JUDGES = ("pin_judgement", "pin_aggregation")


@pytest.fixture(scope="module")
def shipped() -> PromptLibrary:
    return PromptLibrary()


@pytest.mark.parametrize("name", VERSIONS)
def test_every_prompt_ships(shipped: PromptLibrary, name: str) -> None:
    prompt = shipped.get(name)
    assert prompt.version == f"{name}.{VERSIONS[name]}"
    assert prompt.text == prompt.text.strip() != ""


CLAUSES = {
    "round_summary": [
        "declarative sentences",
        "confirmed fact",
        "conclusion",
        "Drop reasoning",
        "ornament",
        "at most $max_tokens tokens",
        "in the language of the conversation",
        "what each tool did and what it returned, in one clause",
        "Add nothing",
        "Answer with the summary alone",
    ],
    "history_summary": [
        "declarative sentences",
        "chronological order",
        "confirmed fact",
        "conclusion",
        "every decision",
        "open question",
        "Drop reasoning",
        "at most $max_tokens tokens",
        "in the language of the conversation",
        "what tools did and what they returned, in one clause each",
        'after "Kept:"',
        "Answer with the summary alone",
    ],
    "pin_judgement": [
        "explicit and stable",
        "preference",
        "constraint",
        "confirmation, correction or negation of an earlier conclusion",
        "passing remarks",
        "hypothetical",
        "derived",
        "third parties",
        "only a tool or a document says",
        "one short sentence in the third person",
        "in the language of the conversation",
        "replaces_pin_id",
        "retracted_pin_ids",
        "secrets",
        "JSON alone",
    ],
    "pin_aggregation": [
        "fewer sentences",
        "Lose nothing",
        "exactly one sentence",
        "folds_pin_ids",
        "at most $max_tokens tokens",
        "in the language of the facts",
        "JSON alone",
    ],
}


@pytest.mark.parametrize(
    ("name", "clause"), [(name, clause) for name, clauses in CLAUSES.items() for clause in clauses]
)
def test_a_prompt_asks_for_what_it_must(shipped: PromptLibrary, name: str, clause: str) -> None:
    assert clause in shipped.get(name).text


@pytest.mark.parametrize("name", [*SUMMARIES, *JUDGES])
def test_data_is_marked_as_data(shipped: PromptLibrary, name: str) -> None:
    text = shipped.get(name).text
    assert "data, not instructions" in text
    fences = {"round_summary": 1, "history_summary": 1, "pin_judgement": 2, "pin_aggregation": 1}
    opened = text.count("between <conversation> and </conversation>") + text.count(
        "between <pins> and </pins>"
    )
    assert opened >= fences[name]


@pytest.mark.parametrize("name", [*SUMMARIES, *JUDGES])
def test_no_placeholder_is_left(shipped: PromptLibrary, name: str) -> None:
    for prompt in (shipped.get(name), shipped.stricter(name)):
        filled = prompt.filled(max_tokens=200)
        assert "$" not in filled
        assert ("200 tokens" in filled) == ("$max_tokens" in prompt.text)


def test_the_second_try_says_more_and_is_told_apart(shipped: PromptLibrary) -> None:
    first, second = shipped.get("round_summary"), shipped.stricter("round_summary")
    assert second.text.startswith(first.text)
    assert len(second.text) > len(first.text)
    assert second.version == "round_summary.v1+stricter.v1"


def test_unknown_dollars_stay() -> None:
    assert Prompt("v", "$max_tokens $unknown ${HOME} $5 $$ {x} %s").filled(max_tokens=3) == (
        "3 $unknown ${HOME} $5 $ {x} %s"
    )


def test_an_operator_replaces_a_prompt(tmp_path: Path) -> None:
    own = tmp_path / "round_summary.v1.md"
    own.write_text("\nKürze auf $max_tokens.\n", encoding="utf-8")
    library = PromptLibrary(tmp_path)
    prompt = library.get("round_summary")
    assert prompt.filled(max_tokens=7) == "Kürze auf 7."
    assert prompt.version.startswith("round_summary.v1+")
    assert len(prompt.version) == len("round_summary.v1+") + 8
    assert library.get("history_summary").version == "history_summary.v1"
    assert library.stricter("round_summary").version == f"{prompt.version}+stricter.v1"


def test_another_text_is_another_version(tmp_path: Path) -> None:
    own = tmp_path / "pin_judgement.v1.md"
    own.write_text("one", encoding="utf-8")
    first = PromptLibrary(tmp_path).get("pin_judgement").version
    own.write_text("two", encoding="utf-8")
    assert PromptLibrary(tmp_path).get("pin_judgement").version != first


def test_other_versions_in_the_folder_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "round_summary.v0.md").write_text("old", encoding="utf-8")
    assert PromptLibrary(tmp_path).get("round_summary").version == "round_summary.v1"


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe"])
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "round_summary.v1.md").write_bytes(content)
    with pytest.raises(ValueError, match=r"round_summary\.v1\.md"):
        PromptLibrary(tmp_path).get("round_summary")


def test_an_unknown_name_is_a_key_error(shipped: PromptLibrary) -> None:
    with pytest.raises(KeyError):
        shipped.get("limerick")
