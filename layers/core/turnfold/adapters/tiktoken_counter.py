"""Counting tokens with tiktoken and the vocabulary that ships with the service.

Nothing is loaded before the first count: o200k_base takes a quarter of a second and 80 MB. Nothing
is ever downloaded: tiktoken would fetch a vocabulary that it misses, and delete and fetch one whose
checksum is wrong, so the file is verified here before tiktoken looks for it.
"""

import hashlib
import os
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"
VOCABULARIES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""By encoding: the file's name (the SHA-1 of the address it once came from) and its SHA-256. Both
are fixed by tiktoken."""

CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
CACHED_FROM_CHARACTERS = 256
"""Shorter texts are counted faster than they are looked up."""
CACHED_TEXTS = 4096
"""A context of the longest session, several times over, in well under a megabyte."""

LONGEST_BLANK_RUN = 2**18
"""tiktoken's pattern for o200k_base backtracks over blanks and panics at a million of them. A
longer run is counted in pieces. The vocabularies hold runs of one kind of blank in powers of two up
to 128, so pieces of this length cost what the whole run would, or a token more where they meet."""
LEAST_PIECE = 1024
"""The last piece is not shorter, so that the odd rest of a run merges as it would in the whole."""

# White_Space as in tiktoken's patterns; Python's own \s takes four control characters besides.
_BLANK = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_LONG_RUN = re.compile(rf"{_BLANK}{{{LONGEST_BLANK_RUN + 1},}}+")
_PIECE_AFTER_PANIC = 10_000


class VocabularyError(RuntimeError):
    """A vocabulary file is missing or damaged. It ships with the service and is never fetched."""


class TiktokenCounter:
    """Counts the tokens of a text exactly as tiktoken does; implements `TokenCounter`.

    Special tokens in a text are plain text. A text's count is never more than its bytes in UTF-8.
    Safe for use from several threads.
    """

    def __init__(self, vocabulary: Path | None = None) -> None:
        """`vocabulary` is the folder of the files; by default `TIKTOKEN_CACHE_DIR` names it."""
        self._vocabulary = vocabulary
        self._loading = threading.Lock()
        self._encodings: dict[str, Encoding] = {}
        self._counts = _RecentCounts(CACHED_TEXTS)

    def count(self, text: str, model: str | None = None) -> int:
        """Tokens of a text by the encoding of that model; o200k_base for none and unknown ones.

        Exact unless the text has a run of over 262,144 blanks; then it may be one token too many
        for every so many blanks. Raises `VocabularyError`.
        """
        name = encoding_name(model)
        if len(text) < CACHED_FROM_CHARACTERS:
            return _count(self._encoding(name), text)
        key = name.encode() + hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        tokens = self._counts.get(key)
        if tokens is None:
            tokens = _count(self._encoding(name), text)
            self._counts.put(key, tokens)
        return tokens

    def encoding(self, model: str | None = None) -> str:
        """The name of the encoding that texts of that model are counted with."""
        return encoding_name(model)

    def _encoding(self, name: str) -> "Encoding":
        encoding = self._encodings.get(name)
        if encoding is not None:
            return encoding
        with self._loading:
            if name not in self._encodings:
                self._encodings[name] = self._load(name)
            return self._encodings[name]

    def _load(self, name: str) -> "Encoding":
        folder = self._vocabulary or _shipped_folder(VOCABULARIES[name][0])
        verify_vocabulary(folder, name)
        # The only way to tell tiktoken where its files are.
        os.environ[CACHE_VARIABLE] = str(folder)
        import tiktoken

        return tiktoken.get_encoding(name)


def _shipped_folder(file_name: str) -> Path:
    """Where the environment says, else `vocabulary` in a folder of `sys.path`.

    On AWS, layers are at /opt. An emulator may put each somewhere else, but on `sys.path`.
    """
    named = Path(os.environ.get(CACHE_VARIABLE, ""))
    beside = (Path(entry) / "vocabulary" for entry in sys.path if entry)
    return next((one for one in (named, *beside) if (one / file_name).is_file()), named)


def verify_vocabulary(folder: Path, name: str) -> None:
    """Check that a vocabulary is there and whole. Raises `VocabularyError`."""
    file_name, sha256 = VOCABULARIES[name]
    path = folder / file_name
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise VocabularyError(
            f"the vocabulary of {name} is not at {path}; set {CACHE_VARIABLE} to its folder"
        ) from error
    if digest != sha256:
        raise VocabularyError(f"the vocabulary of {name} at {path} is damaged")


def encoding_name(model: str | None) -> str:
    """The shipped encoding that a model's texts are counted with; o200k_base for unknown models.

    Understood are tiktoken's names and prefixes in any case, behind the prefix of a provider
    (`azure/gpt-4`, `openai.gpt-4o`), and fine-tuned models by what they were made from
    (`ft:gpt-4.1-mini:...`).
    """
    if not model:
        return DEFAULT_ENCODING
    from tiktoken.model import encoding_name_for_model

    base = model.strip().lower().rpartition("/")[2].removeprefix("openai.")
    if base.startswith("ft:"):
        base = base.split(":")[1]
    try:
        name = encoding_name_for_model(base)
    except KeyError:
        return DEFAULT_ENCODING
    return name if name in VOCABULARIES else DEFAULT_ENCODING


def _count(encoding: "Encoding", text: str) -> int:
    return sum(_count_piece(encoding, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """The text, cut where a run of blanks is longer than tiktoken can take."""
    start = 0
    if len(text) > LONGEST_BLANK_RUN:
        for run in _LONG_RUN.finditer(text):
            for cut in range(
                run.start() + LONGEST_BLANK_RUN, run.end() - LEAST_PIECE, LONGEST_BLANK_RUN
            ):
                yield text[start:cut]
                start = cut
    yield text[start:]


def _count_piece(encoding: "Encoding", piece: str) -> int:
    try:
        return len(encoding.encode_ordinary(piece))
    except BaseException as error:
        # A panic in tiktoken's Rust code is no Exception, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
    if len(piece) <= _PIECE_AFTER_PANIC:
        return len(piece.encode("utf-8", "surrogatepass"))
    cuts = range(0, len(piece), _PIECE_AFTER_PANIC)
    return sum(_count_piece(encoding, piece[cut : cut + _PIECE_AFTER_PANIC]) for cut in cuts)


class _RecentCounts:
    """The counts of the texts that were asked for last, by a digest of each text."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def get(self, key: bytes) -> int | None:
        with self._lock:
            tokens = self._counts.get(key)
            if tokens is not None:
                self._counts.move_to_end(key)
            return tokens

    def put(self, key: bytes, tokens: int) -> None:
        with self._lock:
            self._counts[key] = tokens
            self._counts.move_to_end(key)
            while len(self._counts) > self._size:
                self._counts.popitem(last=False)
