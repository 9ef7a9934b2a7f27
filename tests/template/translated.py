"""The template as CloudFormation gets it, translated by SAM's own translator."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-sam" / "bin" / "python"


@cache
def translated(*arguments: str) -> dict[str, Any]:
    """The whole template with these arguments of `infra/translated.py`."""
    if not PYTHON.exists() and not os.environ.get("CI"):
        pytest.skip("the SAM CLI is not installed: run `make venv-sam`")
    done = subprocess.run(
        [PYTHON, ROOT / "infra" / "translated.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    """Resources of a type, by logical id."""
    return {name: one for name, one in resources.items() if one["Type"] == kind}


def references(part: Any) -> set[str]:
    """Logical ids that a part of a template names by Ref or GetAtt."""
    if isinstance(part, list):
        return set().union(*map(references, part))
    if not isinstance(part, dict):
        return set()
    found = references(list(part.values()))
    if isinstance(part.get("Ref"), str):
        found.add(part["Ref"])
    if isinstance(part.get("Fn::GetAtt"), list):
        found.add(part["Fn::GetAtt"][0])
    return found
