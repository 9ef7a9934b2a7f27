"""What the layers are built from, and the scripts that build them."""

import gzip
import hashlib
import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = sorted(
    file.relative_to(ROOT).as_posix()
    for folder in ("layers/deps", "layers/jwt", "layers/vocab", "infra/requirements")
    for file in (ROOT / folder).glob("*.txt")
)


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(path: str) -> dict[str, str]:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([a-z0-9._-]+)==(\S+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


@pytest.mark.parametrize("path", REQUIREMENTS)
def test_every_requirement_is_hashed_and_names_no_index(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^--?(index|extra|find|trusted|i |f )", text, re.MULTILINE)
    assert pins(path)
    # Each entry runs up to the next one; a hash must be in it.
    for entry in re.split(r"^(?=[a-z0-9._-]+==)", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry, entry[:60]


def test_tests_run_on_the_versions_that_are_deployed() -> None:
    tested = pins("infra/requirements/dev.txt")
    for layer in ("deps", "jwt", "vocab"):
        path = f"layers/{layer}/requirements.txt"
        for name, version in pins(path).items():
            assert tested[name] == version, name


def test_pruning_keeps_every_service_that_is_called() -> None:
    services = script("layers/deps/prune.py").SERVICES
    called = {
        name
        for folder in ("layers/core/turnfold", "functions")
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bclient\(\s*\"([a-z0-9-]+)\"", file.read_text(encoding="utf-8"))
    }
    assert called <= services


def test_pruning_removes_what_is_never_read(tmp_path: Path) -> None:
    kept = [
        "botocore/data/endpoints.json",
        "botocore/data/s3/2006-03-01/service-2.json.gz",
        "pkg/__init__.py",
        "pkg/testing.py",
        "pkg-1.dist-info/METADATA",
    ]
    removed = [
        "bin/tool",
        "boto3/data/s3/resources-1.json",
        "botocore/data/ec2/2016-11-15/service-2.json.gz",
        "pkg/tests/test_a.py",
        "pkg/__pycache__/a.pyc",
        "pkg/typed.pyi",
        "pkg-1.dist-info/RECORD",
    ]
    for name in kept + removed:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    script("layers/deps/prune.py").prune(tmp_path)
    left = sorted(f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file())
    assert left == sorted(kept)


def test_vocabulary_is_what_tiktoken_expects() -> None:
    """The names and hashes in the script are tiktoken's own."""
    spec = importlib.util.find_spec("tiktoken_ext.openai_public")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    for vocabulary in script("layers/vocab/unpack.py").VOCABULARIES:
        name = vocabulary.packed.removesuffix(".gz")
        found = re.search(rf'"(https://\S+/{re.escape(name)})",\s+expected_hash="(\w+)"', source)
        assert found is not None, name
        assert found[2] == vocabulary.sha256
        assert hashlib.sha1(found[1].encode(), usedforsecurity=False).hexdigest() == (
            vocabulary.cached
        )


def test_unpacking_repairs_a_damaged_file(tmp_path: Path) -> None:
    unpack = script("layers/vocab/unpack.py")
    first = unpack.VOCABULARIES[1]
    (tmp_path / first.cached).write_bytes(b"half a downl")
    assert not unpack.is_right(tmp_path / first.cached, first)
    unpack.unpack(first, unpack.data_folder(None), tmp_path)
    assert unpack.is_right(tmp_path / first.cached, first)
    assert [file.name for file in tmp_path.iterdir()] == [first.cached]


def test_a_package_with_other_content_is_refused(tmp_path: Path) -> None:
    unpack = script("layers/vocab/unpack.py")
    first = unpack.VOCABULARIES[0]
    (tmp_path / first.packed).write_bytes(gzip.compress(b"IQ== 0\n"))
    with pytest.raises(SystemExit, match="SHA-256"):
        unpack.unpack(first, tmp_path, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_find_python_prints_a_real_interpreter() -> None:
    found = subprocess.run(
        [ROOT / "infra/find_python.sh"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(found).resolve() == Path(found)
    assert "shims" not in found
    version = subprocess.run([found, "-V"], capture_output=True, text=True, check=True).stdout
    assert re.match(r"Python 3\.1[2-9]", version)


def test_find_python_says_how_to_get_one() -> None:
    result = subprocess.run(
        [ROOT / "infra/find_python.sh", "3.99"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert "pyenv install" in result.stderr
