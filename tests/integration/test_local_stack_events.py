"""What the local stack hands to handlers and makes of their answers, without starting it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from infra.local import journal
from infra.local.api_event import Request, api_event
from infra.local.api_response import MalformedResponseError, api_response
from infra.local.definitions import Definitions, TemplateError
from infra.local.journal import Backlog, Journal, Translator
from infra.local.keys import ensure_key_file
from infra.local.logs import render
from infra.local.queue_event import failed_messages, queue_event
from infra.local.settings import Settings, SettingsError
from turnfold.adapters.key_file import KeyFile

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"


def _event(target: str, body: bytes = b"", *headers: tuple[str, str]) -> dict[str, Any]:
    return api_event(Request("POST", target, list(headers), body))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/plain",
        "/v1/sessions/a%2Fb",
        "/v1/sessions/a%252Fb",
        "/v1/sessions/a/b",
        "/v1/sessions/a%20b",
        "/v1/sessions/a+b",
        "/v1/sessions/..",
        "/v1/sessions/../../x",
        "/v1/sessions/%00",
        "/v1/sessions/%F0%9F%98%80",
        "/v1/sessions//turns",
        "/v1/sessions/%zz",
        "/v1/sessions/a;b=c,d",
        "/",
    ],
)
def test_the_path_reaches_the_handler_as_it_was_sent(path: str) -> None:
    event = _event(path + "?x=1")
    assert event["path"] == path
    assert event["requestContext"]["path"] == path
    if path == "/":
        assert event["pathParameters"] is None
        assert event["resource"] == "/"
    else:
        assert event["pathParameters"] == {"proxy": path[1:]}
        assert event["resource"] == "/{proxy+}"


def test_raw_bytes_in_a_path_are_encoded() -> None:
    raw = "/é".encode().decode("latin-1")
    assert _event(raw)["path"] == "/%C3%A9"


def test_an_absolute_target_is_cut_to_its_path() -> None:
    assert _event("http://h:1/a%2Fb?c=d")["path"] == "/a%2Fb"


def test_the_query_is_decoded_once() -> None:
    event = _event("/x?a=1&a=2&b=x%20y+z&c=&d&e=%252F&f=%F0%9F%98%80")
    assert event["queryStringParameters"] == {
        "a": "2",
        "b": "x y z",
        "c": "",
        "d": "",
        "e": "%2F",
        "f": "😀",
    }
    assert event["multiValueQueryStringParameters"]["a"] == ["1", "2"]
    assert _event("/x")["queryStringParameters"] is None


def test_headers_keep_their_spelling_and_every_value() -> None:
    event = _event("/x", b"", ("X-One", "1"), ("x-one", "2"), ("Host", "h"))
    assert event["headers"] == {"X-One": "2", "Host": "h"}
    assert event["multiValueHeaders"] == {"X-One": ["1", "2"], "Host": ["h"]}


def test_a_body_is_text_or_base64() -> None:
    assert _event("/x")["body"] is None
    text = _event("/x", '{"a":"ü"}'.encode())
    assert (text["body"], text["isBase64Encoded"]) == ('{"a":"ü"}', False)
    binary = _event("/x", b"\xff\x00")
    assert binary["isBase64Encoded"] is True
    assert base64.b64decode(binary["body"]) == b"\xff\x00"


def test_a_response_has_the_headers_of_both_kinds() -> None:
    response = api_response(
        {
            "statusCode": "201",
            "headers": {"ETag": "x", "Content-Length": "7", "X-Number": 5},
            "multiValueHeaders": {"etag": ["y", "z"]},
            "body": "ü",
        }
    )
    assert response.status == 201
    assert response.body == "ü".encode()
    assert response.headers == [
        ("etag", "y"),
        ("etag", "z"),
        ("X-Number", "5"),
        ("Content-Type", "application/json"),
    ]


@pytest.mark.parametrize(
    "result",
    [
        None,
        "text",
        {},
        {"statusCode": "x"},
        {"statusCode": 99},
        {"statusCode": 200, "body": {}},
        {"statusCode": 200, "body": "*", "isBase64Encoded": True},
        {"statusCode": 200, "headers": {"X": "a\r\nSet-Cookie: b"}},
    ],
)
def test_a_malformed_response_is_refused(result: object) -> None:
    with pytest.raises(MalformedResponseError):
        api_response(result)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (None, set()),
        ({}, set()),
        ({"batchItemFailures": None}, set()),
        ({"batchItemFailures": []}, set()),
        ({"other": 1}, set()),
        ({"batchItemFailures": [{"itemIdentifier": "b"}]}, {"b"}),
        ({"batchItemFailures": [{"itemIdentifier": "unknown"}]}, {"a", "b"}),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, {"a", "b"}),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, {"a", "b"}),
        ({"batchItemFailures": [{"messageId": "b"}]}, {"a", "b"}),
        ({"batchItemFailures": "b"}, {"a", "b"}),
        ("text", {"a", "b"}),
    ],
)
def test_failures_are_read_as_lambda_does(result: object, failed: set[str]) -> None:
    assert failed_messages(result, ["a", "b"]) == failed


def test_a_queue_record_has_what_lambda_gives() -> None:
    message: Any = {
        "MessageId": "m",
        "ReceiptHandle": "r",
        "Body": "{}",
        "MD5OfBody": "5",
        "Attributes": {"ApproximateReceiveCount": "2", "MessageGroupId": "g"},
        "MessageAttributes": {"n": {"DataType": "String", "StringValue": "v"}},
    }
    (record,) = queue_event([message], "arn:q")["Records"]
    assert record["messageId"] == "m"
    assert record["receiptHandle"] == "r"
    assert record["attributes"]["ApproximateReceiveCount"] == "2"
    assert record["messageAttributes"]["n"]["stringValue"] == "v"
    assert (record["eventSource"], record["eventSourceARN"]) == ("aws:sqs", "arn:q")


def test_the_template_of_the_project_defines_what_the_stack_creates() -> None:
    definitions = Definitions.load(TEMPLATE)
    table = definitions.properties("MemoryTable")
    assert {index["IndexName"] for index in table["GlobalSecondaryIndexes"]} == {
        "due",
        "by_user",
        "by_tenant",
    }
    queue = definitions.properties("CompactionQueue")
    assert queue["FifoQueue"] is True
    assert queue["RedrivePolicy"]["deadLetterTargetArn"].endswith("dead-letters.fifo")
    for name in ("ApiFunction", "CompactorFunction", "SweeperFunction"):
        function = definitions.function(name)
        assert function.handler.endswith(".app.handler")
        assert "AWS_ENDPOINT_URL" not in function.environment


def test_intrinsics_are_resolved_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        """
        Parameters:
          Count: {Type: Number, Default: 3}
          Empty: {Type: String, Default: ""}
        Conditions:
          HasEmpty: !Not [!Equals [!Ref Empty, ""]]
          Both: !And [!Not [!Condition HasEmpty], !Equals [!Ref Count, 3]]
        Resources:
          X:
            Properties:
              a: !Ref Count
              b: !Sub "${Count}-${AWS::Region}-${!Literal}"
              c: !If [HasEmpty, yes, !Ref AWS::NoValue]
              d: !If [Both, same, other]
              e: !GetAtt Elsewhere.Arn
              f: [!Ref Elsewhere, !Join ["-", [x, !Ref Count]]]
              g: !GetAtt CompactionQueue.Arn
        """,
        encoding="utf-8",
    )
    assert Definitions.load(path).properties("X") == {
        "a": 3,
        "b": "3-us-east-1-${Literal}",
        "d": "same",
        "f": ["x-3"],
        "g": "arn:aws:sqs:us-east-1:000000000000:turnfold-compaction.fifo",
    }


def test_a_missing_template_or_resource_is_said(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"nothing\.yaml"):
        Definitions.load(tmp_path / "nothing.yaml")
    with pytest.raises(TemplateError, match="Nowhere"):
        Definitions.load(TEMPLATE).properties("Nowhere")


@pytest.mark.parametrize("port", ["x", "-1", "70000", "1.5", "٣"])
def test_a_bad_port_is_said(port: str) -> None:
    with pytest.raises(SettingsError, match="PORT"):
        Settings.from_environment({"PORT": port})


def test_the_key_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ensure_key_file(path)
    ring = KeyFile(path)
    for key in ("local", "local-2"):
        caller = ring.identify(key)
        assert caller is not None
        assert caller.tenant == key
        assert caller.scopes == {"read", "write", "admin"}
    assert ring.identify("unknown") is None
    path.write_text("{}", encoding="utf-8")
    ensure_key_file(path)
    assert path.read_text(encoding="utf-8") == "{}"


def test_a_log_record_is_rendered_for_people() -> None:
    record = {
        "level": "WARNING",
        "location": "commit:12",
        "message": "committed",
        "timestamp": "2026-01-02 03:04:05,678+0000",
        "service": "api",
        "cold_start": True,
        "session": "a b",
        "turn": 3,
        "none": None,
    }
    line = render("api", json.dumps(record))
    assert line == '03:04:05 WARNING api: committed session="a b" turn=3'
    assert render("api", "") is None
    assert render("api", json.dumps({"_aws": {}, "Count": 1})) is None
    plain = render("api", "not json {")
    assert plain is not None
    assert plain.endswith("api: not json {")
    broken = render("api", '{"level": "INFO", ')
    assert broken is not None
    failed = render("api", json.dumps(record | {"exception": "Traceback\n  x"}))
    assert failed is not None
    assert failed.endswith("turn=3\nTraceback\n  x")


QUEUE = "http://127.0.0.1:1/000000000000/q.fifo"


def test_deleted_messages_leave_the_backlog() -> None:
    translator, backlog = Translator(), Backlog()

    def call(target: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        for record in translator.records(target, {"QueueUrl": QUEUE, **request}, answer):
            backlog.apply(json.loads(json.dumps(record)))

    call(journal.SEND, {"MessageBody": "1"}, {"MessageId": "m1"})
    entries = [{"Id": "x", "MessageBody": "2"}, {"Id": "y", "MessageBody": "3"}]
    answer = {"Successful": [{"Id": "y", "MessageId": "m3"}], "Failed": [{"Id": "x"}]}
    call(journal.SEND_BATCH, {"Entries": entries}, answer)
    assert list(backlog.messages) == ["m1", "m3"]
    assert backlog.messages["m3"] == {"MessageBody": "3", "QueueUrl": QUEUE}
    received = [{"MessageId": m, "ReceiptHandle": f"r-{m}"} for m in ("m1", "m3")]
    call(journal.RECEIVE, {}, {"Messages": received})
    call(journal.DELETE, {"ReceiptHandle": "r-m1"}, {})
    assert list(backlog.messages) == ["m3"]
    # The same deduplication id again: answered with the deleted message's id, and nothing is sent.
    call(journal.SEND, {"MessageBody": "1"}, {"MessageId": "m1"})
    assert list(backlog.messages) == ["m3"]
    batch = [{"Id": "0", "ReceiptHandle": "r-m3"}]
    call(journal.DELETE_BATCH, {"Entries": batch}, {"Successful": [{"Id": "0"}]})
    assert not backlog.messages


def test_a_torn_last_line_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written = Journal(path)
    written.append([{"kind": "write", "target": "t", "request": {"x": "\u2028\ud83d\ude00"}}])
    written.append([])
    written.close()
    whole = list(journal.read(path))
    with path.open("ab") as file:
        file.write(b'{"kind": "wri')
    assert list(journal.read(path)) == whole
    assert len(whole) == 1
