"""A stand-in for the API: answers what the tests of the local stack ask for."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from aws_lambda_powertools.utilities.typing import LambdaContext

_at_work = threading.Lock()


def _answer(status: int, body: object, **more: object) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": json.dumps(body), **more}


def _memory(number: str) -> dict[str, Any]:
    table = boto3.client("dynamodb")
    table.put_item(
        TableName=os.environ["TURNFOLD_TABLE"],
        Item={"PK": {"S": "burst"}, "SK": {"S": number}, "due_shard": {"S": "1"}},
    )
    boto3.client("s3").put_object(
        Bucket=os.environ["TURNFOLD_BUCKET"], Key=f"burst/{number}", Body=b"kept"
    )
    return _answer(201, {"stored": number})


def _stored() -> dict[str, Any]:
    pages = boto3.client("dynamodb").get_paginator("query")
    items = pages.paginate(
        TableName=os.environ["TURNFOLD_TABLE"],
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": "burst"}},
        ConsistentRead=True,
    )
    numbers = [item["SK"]["S"] for page in items for item in page["Items"]]
    objects = boto3.client("s3").list_objects_v2(Bucket=os.environ["TURNFOLD_BUCKET"])
    return _answer(200, {"items": numbers, "objects": objects.get("KeyCount", 0)})


def _sleep(seconds: str) -> dict[str, Any]:
    time.sleep(float(seconds))
    return _answer(200, {"pid": os.getpid()})


def _raise(_: str) -> dict[str, Any]:
    raise ValueError("a word for the log")


def _exit(_: str) -> dict[str, Any]:
    os._exit(3)


def _print(_: str) -> dict[str, Any]:
    print("printed by the handler")
    print(json.dumps({"level": "INFO", "message": "hello", "session": "s 1"}))
    return _answer(200, {})


def _cookies(_: str) -> dict[str, Any]:
    multiple = {"Set-Cookie": ["a=1", "b=2"], "ETag": ['"x"']}
    return {"statusCode": 200, "multiValueHeaders": multiple, "body": "ü"}


def _context(context: LambdaContext) -> dict[str, Any]:
    facts: dict[str, object] = {
        name: getattr(context, name)
        for name in ("aws_request_id", "function_name", "invoked_function_arn")
    }
    facts["left"] = context.get_remaining_time_in_millis()
    facts["variables"] = {k: v for k, v in os.environ.items() if k.startswith(("TURNFOLD", "AWS"))}
    return _answer(200, facts)


def _pieces(how: str) -> dict[str, Any]:
    def pieces() -> Generator[str]:
        yield "one "
        yield "zwölf "
        if how == "raise":
            raise ValueError("a word for the log")
        if how == "exit":
            os._exit(3)
        if how == "hang":
            time.sleep(9)
        yield "three"

    headers = {"Content-Type": "text/plain", **({"X-Odd": "a\r\nb"} if how == "odd" else {})}
    return {"statusCode": 200, "headers": headers, "body": pieces()}


ROUTES: dict[str, Callable[[str], dict[str, Any]]] = {
    "healthz": lambda _: _answer(200, {"status": "ok"}),
    "sleep": _sleep,
    "raise": _raise,
    "exit": _exit,
    "malformed": lambda _: {"status": 200},
    "print": _print,
    "no-content": lambda _: {"statusCode": 204, "body": ""},
    "binary": lambda _: {"statusCode": 200, "body": "/wD+", "isBase64Encoded": True},
    "cookies": _cookies,
    "pieces": _pieces,
    "store": _memory,
    "stored": lambda _: _stored(),
}


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer by the first part of the path; what is unknown is echoed."""
    assert _at_work.acquire(blocking=False), "two events at once in one environment"
    try:
        _, first, *rest = event["path"].split("/", 2)
        if first == "context":
            return _context(context)
        if first in ROUTES:
            return ROUTES[first](rest[0] if rest else "")
        return _answer(200, event)
    finally:
        _at_work.release()
