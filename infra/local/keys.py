"""The API keys that the local stack accepts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCOPES = ["read", "write", "admin"]
FIRST_KEYS = [
    {"key": "local", "tenant": "local", "scopes": SCOPES},
    {"key": "local-2", "tenant": "local-2", "scopes": SCOPES},
]


def ensure_key_file(path: Path) -> None:
    """Write the first keys unless the file exists; what somebody added to it is kept."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"keys": FIRST_KEYS}, indent=2) + "\n"
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)
