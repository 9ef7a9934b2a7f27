"""Measures recall, and what of a conversation survives in a context, on a folder of conversations.

    python tests/load/evaluate.py DATA_FOLDER [NAME ...]

The folder is in the schema of the evaluation data (conversations with questions and evidence, one
a line of NAME.jsonl). Prints one JSON document of all figures; without names, of all files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "layers" / "core"), str(ROOT / "tests"), str(ROOT)]

from load.recall_figures import conversation_recall, memory_recall
from load.survival_figures import survival
from support.conversations import read_conversations

MEMORIES = "zh_madial_memories"
DIALOGUES = "zh_madial"
USER_TURNS_ONLY = ("bfcl_memory",)


def figures(folder: Path, wanted: list[str]) -> dict[str, Any]:
    """All figures that the folder's files give."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.jsonl")):
        name = path.stem
        if name == MEMORIES or (wanted and name not in wanted):
            continue
        conversations = list(read_conversations(path))
        if name == DIALOGUES:
            memories = list(read_conversations(path.with_name(f"{MEMORIES}.jsonl")))
            found[name] = memory_recall(conversations, memories)
            continue
        asked = [one for one in conversations if any(qa["evidence"] for qa in one.get("qa") or ())]
        if asked:
            role = "user" if name.startswith("beam") else None
            found[name] = conversation_recall(asked, role)
        if name in USER_TURNS_ONLY:
            found[name] |= survival(conversations)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="files without .jsonl; all by default")
    asked = parser.parse_args()
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(ROOT / "layers" / "vocab" / "vocabulary"))
    started = time.perf_counter()
    found = figures(asked.folder, asked.names)
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({"figures": found, "seconds": seconds}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
