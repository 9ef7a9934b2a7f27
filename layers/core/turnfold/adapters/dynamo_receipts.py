"""The receipt of an erasure as an item, and back.

It is in a partition of its own (`T#<tenant>#E#<erasure id>`), since the session's goes.
"""

from collections.abc import Mapping
from typing import Any

from turnfold.adapters.dynamo_attributes import (
    Item,
    flag,
    moment,
    number,
    read_flag,
    read_moment,
    read_number,
    read_text,
    text,
)
from turnfold.adapters.dynamo_keys import DUE_ERASURES, ERASURE, erasure_partition
from turnfold.domain.erasures import Erasure, ErasureStatus, Removed


def receipt_key(partition: str) -> Item:
    """The primary key of a receipt, and of what leads to it."""
    return {"PK": text(partition), "SK": text(ERASURE)}


def receipt_item(erasure: Erasure) -> Item:
    """A receipt, with what of the erasure is still to do."""
    item = receipt_key(erasure_partition(erasure.tenant, erasure.erasure_id)) | {
        "status": text(erasure.status),
        "requested_at": moment(erasure.requested_at),
        "items": number(erasure.removed.items),
        "objects": number(erasure.removed.objects),
        "versions": number(erasure.removed.versions),
        "vectors": number(erasure.removed.vectors),
        "listed": flag(erasure.listed),
        "open_sessions": number(erasure.open_sessions),
    }
    if erasure.user_id is not None:
        due = {"due_at": moment(erasure.requested_at), "due_shard": text(DUE_ERASURES)}
        item |= {"user_id": text(erasure.user_id), **due}
    return item


def read_receipt(tenant: str, erasure_id: str, item: Mapping[str, Any]) -> Erasure:
    """What `receipt_item` and later updates wrote."""
    return Erasure(
        tenant=tenant,
        erasure_id=erasure_id,
        requested_at=read_moment(item["requested_at"]),
        status=ErasureStatus(item["status"]["S"]),
        finished_at=read_moment(item["finished_at"]) if "finished_at" in item else None,
        removed=Removed(
            items=read_number(item["items"]),
            objects=read_number(item["objects"]),
            versions=read_number(item["versions"]),
            vectors=read_number(item["vectors"]),
        ),
        user_id=read_text(item["user_id"]) if "user_id" in item else None,
        listed=read_flag(item["listed"]),
        open_sessions=read_number(item["open_sessions"]),
    )
