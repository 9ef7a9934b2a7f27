"""The digest of a release: of all that decides what the deployed functions do.

    release_digest.py                                the digest
    release_digest.py --stamp TEMPLATE [NAME=VALUE]  write it into a built template

SAM publishes a new version of a function when its code changed. A change of a layer, or of a
parameter that becomes a variable, would change the unpublished function only, and the alias that
everything calls would go on with the old version. So the digest covers functions, layers, templates
and the parameters of the deployment, and stands in `AutoPublishCodeSha256` of every function.

It is written into the built template rather than passed as a parameter: parameters of a command
line take the place of those in samconfig.toml, and a parameter that is not given keeps its previous
value at an update, so that a release could pass unpublished.
"""

import argparse
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("functions", "layers", "infra/observability.yaml", "template.yaml", "samconfig.toml")
BUILT = {"__pycache__", "vocabulary", "packages"}
PLACEHOLDER = re.compile(r"^( +AutoPublishCodeSha256:) .*$", re.MULTILINE)


def release_digest(root: Path, parameters: Sequence[str] = ()) -> str:
    """The digest of the sources below `root`, and of parameters as they were given."""
    digest = hashlib.sha256()
    for path in sorted(_files(root)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    digest.update("\n".join(sorted(parameters)).encode())
    return digest.hexdigest()


def stamped(template: str, digest: str) -> str:
    """The template with the digest in every function. Raises `ValueError` if it has no place."""
    result, places = PLACEHOLDER.subn(rf"\1 {digest}", template)
    if places != template.count("Type: AWS::Serverless::Function"):
        raise ValueError("every function needs AutoPublishCodeSha256, as a place for the digest")
    return result


def _files(root: Path) -> Iterator[Path]:
    for source in SOURCES:
        path = root / source
        yield from (
            file
            for file in (path.rglob("*") if path.is_dir() else [path])
            if file.is_file() and not BUILT & set(file.relative_to(root).parts)
        )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="the digest of a release")
    parser.add_argument("--stamp", type=Path, metavar="TEMPLATE")
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    asked = parser.parse_args()
    digest = release_digest(ROOT, asked.parameters)
    if asked.stamp:
        text = asked.stamp.read_text(encoding="utf-8")
        asked.stamp.write_text(stamped(text, digest), encoding="utf-8")
    print(digest)


if __name__ == "__main__":
    main()
