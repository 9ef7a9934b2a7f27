"""The key file: who is known, and that a broken file knows nobody."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from turnfold.adapters.key_file import KeyFile
from turnfold.application.ports.callers import Caller


def entry(key: str, tenant: str = "acme", scopes: tuple[str, ...] = ("read",)) -> dict[str, Any]:
    return {"key": key, "tenant": tenant, "scopes": list(scopes)}


def write(path: Path, *entries: dict[str, Any]) -> None:
    path.write_text(json.dumps({"keys": entries}), encoding="utf-8")


def test_a_key_names_its_caller(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write(path, entry("local", "local", ("read", "write")), entry("ключ 🔑", "other"))
    keys = KeyFile(path)
    assert keys.identify("local") == Caller("local", frozenset({"read", "write"}))
    assert keys.identify("ключ 🔑") == Caller("other", frozenset({"read"}))
    for wrong in ("", "loca", "locall", "LOCAL", "\ud800", "x" * 100_000):
        assert keys.identify(wrong) is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = KeyFile(path)
    assert keys.identify("one") is None
    write(path, entry("one"))
    assert keys.identify("one") is not None
    write(path, entry("two"))
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert keys.identify("one") is None
    assert keys.identify("two") is not None
    path.unlink()
    assert keys.identify("two") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"keys": 1}',
        b'{"keys": {"local": {}}}',
        b'{"keys": ["local"]}',
        b'{"keys": [{"key": "local"}]}',
        b'{"keys": [{"key": "", "tenant": "t", "scopes": []}]}',
        b'{"keys": [{"key": 1, "tenant": "t", "scopes": []}]}',
        b'{"keys": [{"key": "local", "tenant": "", "scopes": []}]}',
        b'{"keys": [{"key": "local", "tenant": "a\\nb", "scopes": []}]}',
        b'{"keys": [{"key": "local", "tenant": "t", "scopes": "read"}]}',
        b'{"keys": [{"key": "local", "tenant": "t", "scopes": [1]}]}',
        b"\xff\xfe",
        b"[" * 200_000,
    ],
)
def test_a_broken_file_knows_nobody(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys.json"
    write(path, entry("local"))
    keys = KeyFile(path)
    assert keys.identify("local") is not None
    path.write_bytes(content)
    assert keys.identify("local") is None
    assert keys.identify("") is None


def test_a_folder_knows_nobody(tmp_path: Path) -> None:
    assert KeyFile(tmp_path).identify("local") is None
