"""With SnapStart, what takes time is loaded before the snapshot, and nothing is connected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, socket, sys
def refuse(*_): raise AssertionError("a snapshot holds no connection")
socket.socket.connect = refuse
import api.app as app
service = app.service()
made = sorted(name for name in vars(service) if name in ("commit", "context"))
clients = sorted(name for name in vars(service._clients) if not name.startswith("_"))
print(json.dumps({"made": made, "clients": clients, "tokenizer": "tiktoken" in sys.modules}))
"""


@pytest.mark.parametrize("kind", ["snap-start", "on-demand"])
def test_only_a_snapshot_is_prepared(kind: str) -> None:
    environment = {
        **os.environ,
        "AWS_LAMBDA_INITIALIZATION_TYPE": kind,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "TIKTOKEN_CACHE_DIR": str(ROOT / "layers" / "vocab" / "vocabulary"),
        "TURNFOLD_TABLE": "t",
        "TURNFOLD_BUCKET": "b",
        "TURNFOLD_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/q.fifo",
        "TURNFOLD_ARCHIVE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/a.fifo",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "layers" / "core"), str(ROOT / "functions")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    prepared = kind == "snap-start"
    assert report["made"] == (["commit", "context"] if prepared else [])
    assert set(report["clients"]) >= ({"dynamodb", "s3", "sqs"} if prepared else set())
    assert report["tokenizer"] == prepared
