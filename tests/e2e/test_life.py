"""A life of the deployed stack, over HTTP with a key. The tests run in order, and at last."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import botocore.session
import httpx
import pytest
from botocore.exceptions import ClientError

from e2e.conftest import PARAMETERS
from e2e.stages import stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.deployed.sam import Sam
    from infra.deployed.stack import DeployedStack

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(400)]

SESSION = "/v1/sessions/trip"
TURNS = 20
MARKER = "zqxmarker"
PATIENCE = 90


def turn(number: int) -> dict[str, Any]:
    """A turn that holds the marker, and what a summary has to keep."""
    told = (
        f"{MARKER} {number}: the order A-{1000 + number} costs {number}.50 EUR. " + "Words. " * 20
    )
    return {
        "messages": [
            {"role": "user", "content": told},
            {"role": "assistant", "content": f"Noted, order A-{1000 + number}. " + "More. " * 20},
        ]
    }


def wait_for(what: Callable[[], Any], name: str) -> Any:
    """What it gives, when it gives something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.5)
    return pytest.fail(f"waited {PATIENCE} s for {name}")


def compacted(api: httpx.Client, session: str) -> dict[str, Any]:
    """The context, once nothing waits for compaction."""

    def settled() -> dict[str, Any] | None:
        view: dict[str, Any] = api.get(f"{session}/context").json()
        return None if view["watermark"]["pending_turns"] else view

    view: dict[str, Any] = wait_for(settled, f"the compaction of {session}")
    return view


def test_only_these_paths_are_open(stack: DeployedStack) -> None:
    with httpx.Client(base_url=stack.url, timeout=60) as nobody:
        for path in ("/healthz", "/openapi.json", "/docs"):
            assert nobody.get(path).status_code == 200, path
        for token in (None, "Bearer tf_unknownunknownun_x", "Basic YTpi"):
            headers = {"Authorization": token} if token else {}
            answer = nobody.get("/v1/sessions", headers=headers)
            assert answer.status_code == 401, answer.text
            assert answer.json()["code"] == "unauthorized"


def test_iam_is_enforced(stack: DeployedStack) -> None:
    """Else the rest would prove nothing about the roles."""
    stranger = botocore.session.get_session().create_client(
        "sqs",
        region_name="us-east-1",
        endpoint_url=stack.emulator.endpoint,
        aws_access_key_id="AKIAUNKNOWNUNKNOWN00",
        aws_secret_access_key="unknown",
    )
    with pytest.raises(ClientError, match=r"Invalid|Denied|not authorized|security token"):
        stranger.list_queues()  # type: ignore[attr-defined]  # no service was named to mypy


def test_a_conversation_is_committed_compacted_and_read(api: httpx.Client) -> None:
    with stage(f"{TURNS} turns, compacted by the real event source"):
        for number in range(1, TURNS + 1):
            answer = api.post(f"{SESSION}/turns", json=turn(number))
            assert answer.status_code == 201, answer.text
            assert answer.json()["turn"] == number
        pin = api.post(f"{SESSION}/pins", json={"text": f"The {MARKER} is blue"})
        assert pin.status_code == 201, pin.text
        view = compacted(api, SESSION)
    watermark = view["watermark"]
    assert watermark["committed_through"] == watermark["judged_through"] == TURNS
    assert watermark["compacted_through"] > 1
    tokens = view["tokens"]
    told = api.get(f"{SESSION}/context", params={"max_tokens": tokens["total"]}).json()
    assert told["tokens"]["total"] <= tokens["total"]
    texts = json.dumps(view["messages"])
    # Head and tail word for word, the middle folded, what must be kept kept.
    assert turn(1)["messages"][0]["content"] in texts
    assert turn(TURNS)["messages"][0]["content"] in texts
    assert turn(8)["messages"][0]["content"] not in texts
    assert "A-1008" in texts
    pages = api.get(f"{SESSION}/transcript", params={"limit": TURNS}).json()
    assert [one["turn"] for one in pages["items"]] == list(range(1, TURNS + 1))


def test_another_tenant_sees_nothing(stack: DeployedStack) -> None:
    headers = {"Authorization": f"Bearer {stack.new_key('other', 'read')}"}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=60) as other:
        assert other.get(f"{SESSION}/context").status_code == 404
        assert other.get("/v1/sessions").json()["items"] == []
        # A key that may read only.
        assert other.post(f"{SESSION}/turns", json=turn(1)).status_code == 403


def test_an_unreadable_doorbell_fails_alone_and_becomes_a_dead_letter(
    stack: DeployedStack, api: httpx.Client
) -> None:
    sqs, outputs = stack.client("sqs"), stack.outputs
    queue, dead = outputs["QueueUrl"], outputs["DeadLetterQueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])
    policy = json.loads(attributes["Attributes"]["RedrivePolicy"])
    assert int(policy["maxReceiveCount"]) == 5
    # Five attempts with their pauses take six minutes.
    sqs.set_queue_attributes(
        QueueUrl=queue,
        Attributes={"RedrivePolicy": json.dumps({**policy, "maxReceiveCount": 2})},
    )

    def letters() -> int:
        return int(stack.turnfold("redrive", "--count"))

    with stage("partial failure, dead letter, redrive"):
        sqs.send_message(
            QueueUrl=queue,
            MessageBody=f"unreadable {MARKER}",
            MessageGroupId="nobody",
            MessageDeduplicationId="unreadable",
        )
        for number in range(1, 8):
            assert api.post("/v1/sessions/beside/turns", json=turn(number)).status_code == 201
        assert compacted(api, "/v1/sessions/beside")["watermark"]["compacted_through"] > 1
        wait_for(letters, "the dead letter")
        stack.turnfold("redrive")
        assert letters() == 0
        # It is as unreadable as before.
        wait_for(letters, "the dead letter, again")
    sqs.purge_queue(QueueUrl=dead)


def test_logs_and_metrics_hold_no_word_of_anybody(stack: DeployedStack, api: httpx.Client) -> None:
    assert api.post(f"{SESSION}/turns", content=f'{{"{MARKER}":').status_code == 400
    bad = api.post(f"{SESSION}/turns", json={"messages": [{"role": MARKER, "content": MARKER}]})
    assert bad.status_code in {400, 422}
    logs = stack.client("logs")
    seen: dict[str, str] = {}
    for group in logs.describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]:
        assert group["retentionInDays"] == 30
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        lines = [event["message"] for page in pages for event in page["events"]]
        seen[group["logGroupName"].rpartition("-")[2]] = "\n".join(lines)
    assert {"api", "authorizer", "compactor"} <= set(seen)
    for name, text in seen.items():
        for secret in (MARKER, "trip", "acme", "tf_", "A-1008"):
            assert secret not in text, f"{secret} is in the log of {name}"
    assert '"CompactionLag"' in seen["compactor"]
    assert '"Summaries"' in seen["compactor"]
    requests = [json.loads(line) for line in seen["api"].splitlines() if '"REQUEST"' in line]
    assert requests
    assert all(one["request_id"] for one in requests)
    commits = [json.loads(line) for line in seen["api"].splitlines() if '"Commits"' in line]
    assert len(commits) >= TURNS
    assert all(one["Stack"] == stack.name for one in commits)


def test_alarms_and_dashboard_are_there(stack: DeployedStack) -> None:
    cloudwatch, outputs = stack.client("cloudwatch"), stack.outputs
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    assert {one["MetricName"] for one in alarms} >= {
        "CompactionLag",
        "ApproximateNumberOfMessagesVisible",
        "ApproximateAgeOfOldestMessage",
        "Latency",
    }
    assert all(one["AlarmActions"] == [outputs["AlarmTopicArn"]] for one in alarms)
    board = cloudwatch.get_dashboard(DashboardName=outputs["DashboardName"])
    assert len(json.loads(board["DashboardBody"])["widgets"]) == 12


def test_a_changed_layer_is_released_and_can_be_taken_back(
    stack: DeployedStack, sam: Sam, key: str
) -> None:
    lambdas, name = stack.client("lambda"), stack.outputs["ApiFunctionName"]
    before = lambdas.get_alias(FunctionName=name, Name="live")["FunctionVersion"]
    code = sam.checkout / "layers/core/turnfold/bootstrap/resources.py"
    text = code.read_text(encoding="utf-8")
    changed = text.replace('return self._env.get("TURNFOLD_VERSION", "0.1.0")', 'return "changed"')
    assert changed != text
    code.write_text(changed, encoding="utf-8")
    parameters = PARAMETERS | {"DefaultTailSize": "3"}
    with stage("sam build, only a layer changed"):
        sam.build(parameters)
    with stage("sam deploy, the stack updated"):
        stack.deploy(parameters)
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=60) as api:
        assert api.get("/healthz").json()["version"] == "changed"
        # What was remembered is there, and a new session has the new setting.
        assert api.get(f"{SESSION}/context").json()["watermark"]["committed_through"] == TURNS
        assert api.put("/v1/sessions/new", json={}).json()["settings"]["tail_size"] == 3
        after = lambdas.get_alias(FunctionName=name, Name="live")["FunctionVersion"]
        assert after != before
        lambdas.update_alias(FunctionName=name, Name="live", FunctionVersion=before)
        assert api.get("/healthz").json()["version"] != "changed"


def test_deleting_the_stack_keeps_what_is_remembered(stack: DeployedStack) -> None:
    outputs = stack.outputs
    with stage("delete"):
        stack.delete()
    names = [one["FunctionName"] for one in stack.client("lambda").list_functions()["Functions"]]
    assert outputs["ApiFunctionName"] not in names
    table = stack.client("dynamodb").describe_table(TableName=outputs["TableName"])["Table"]
    assert table["ItemCount"] > 0
    listed = stack.client("s3").list_objects_v2(Bucket=outputs["BucketName"], Prefix="v1/")
    assert listed["KeyCount"] >= TURNS
