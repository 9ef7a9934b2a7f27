"""What a request has to wait for: nothing that it does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, sys
from moto import mock_aws
heavy = ("openai", "tiktoken", "pydantic", "numpy", "httpx2", "regex",
    # Their patterns and tables take longer to load than a commit takes.
    "turnfold.application.recall", "turnfold.domain.identifier_patterns",
    "turnfold.domain.pin_slots", "turnfold.domain.recall.terms")
loaded = lambda: [name for name in heavy if name in sys.modules]
allowed = loaded()  # what the emulator brought along
sys.path[:0] = ["tests", "."]
from api import app
imported = loaded()
from support.api import Api, turn
from support.aws import aws_environment, make_services
with aws_environment(None), mock_aws():
    services = make_services(None)
    import os
    os.environ.update(TURNFOLD_TABLE=services.table, TURNFOLD_BUCKET=services.bucket,
        TURNFOLD_QUEUE_URL=services.queue_url, TURNFOLD_KEY_FILE=sys.argv[1],
        OPENAI_API_KEY="any")
    api = Api(app.handler)
    status = [api("POST", "/v1/sessions/a/turns", {"messages": turn(n)}).status for n in (1, 2, 3)]
    status += [api("GET", "/v1/sessions/a/turns/1").status, api("GET", "/v1/sessions/a").status]
print(json.dumps({"status": status, "allowed": allowed, "imported": imported, "after": loaded()}))
"""


def test_a_commit_loads_neither_the_model_client_nor_the_tokenizer(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    entry = {"key": "local", "tenant": "local", "scopes": ["read", "write"]}
    keys.write_text(json.dumps({"keys": [entry]}), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(keys)],
        cwd=ROOT,
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["status"] == [201, 201, 201, 200, 200]
    assert report["imported"] == report["allowed"]
    assert report["after"] == report["allowed"]
    assert "tiktoken" not in report["after"]
    assert "openai" not in report["after"]
