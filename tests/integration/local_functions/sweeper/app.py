"""A stand-in for the sweeper: writes down its events."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def handler(event: dict[str, Any], _context: object) -> None:
    """Note the event."""
    with Path(os.environ["TURNFOLD_TEST_SWEEPS"]).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(event) + "\n")
