"""Vectors in the table, found by DynamoDB's own vector index.

A turn's vector is an item of its own, behind working memory in the session's partition. The index
`vectors` finds it by `vec_scope`, which stands for one epoch of one session and one model. Beside
them one small item, `VECTORS`, says through which turn there are vectors, so nobody has to look:

    scope    whose they are
    through  the last turn that was put
    former   the scope before it; while that is another one, there may be vectors of it to remove

All writes are transactions that check the session (live, of this epoch) and this item. So a late
writer writes nothing into a session that is being erased or has begun anew, and of two writers at
once one wins. Vectors outlive the expiry of working memory: they have cost money, and a search
looks into sessions that are put away.
"""

import time
from array import array
from collections.abc import Iterator, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from turnfold.adapters.aws_errors import (
    Sleep,
    domain_error,
    error_codes,
    mapped_errors,
)
from turnfold.adapters.dynamo_attributes import (
    Attribute,
    item_key,
    number,
    read_number,
    read_text,
    text,
)
from turnfold.adapters.dynamo_keys import (
    META,
    VECTOR,
    VECTORS,
    partition_key,
    read_vector_turn,
    vector_prefix,
    vector_scope,
    vector_sort_key,
)
from turnfold.adapters.dynamo_transactions import transact
from turnfold.domain.errors import (
    GuardFailedError,
    StoreError,
    StoreUnavailableError,
    ThrottledError,
    VectorsUnavailableError,
)
from turnfold.domain.sessions import Session, SessionStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INDEX = "vectors"

BATCH_TURNS = 64
"""Put by one transaction. With 4,096 dimensions, the most that an index takes, at 5 bytes a number
they are 1.3 MB of the 4 MB of a transaction; it has 100 operations, and two are not vectors."""

BATCH_REMOVED = 95

MOST_FOUND = 100
"""DynamoDB's own limit of one search; there are no pages."""

_NO_INDEX = frozenset({"ValidationException", "ResourceNotFoundException"})
"""What a search is answered while the table has no such index, or is still building it."""

_UNFIT = frozenset({"ValidationError", "ValidationException"})
"""What a transaction, or a part of it, is refused by if the index does not take its vector."""


class DynamoVectors:
    """A `VectorIndex` over the table of `DynamoMemoryStore` and its index `vectors`."""

    def __init__(
        self, client: "DynamoDBClient", table: str, dimensions: int, sleep: Sleep = time.sleep
    ) -> None:
        """Use that table, whose index takes vectors of so many numbers."""
        self._client = client
        self._table = table
        self._dimensions = dimensions
        self._sleep = sleep
        self._unfit = ""

    def resume(self, session: Session, model: str) -> int:
        """See `VectorIndex`; one GetItem. Only after a change of the model there is more to do."""
        if self._unfit:
            # Before the next vectors are paid for, too.
            raise VectorsUnavailableError(self._unfit)
        with mapped_errors("read"):
            answer = self._client.get_item(
                TableName=self._table, Key=item_key(session.key, VECTORS), ConsistentRead=True
            )
        item: Any = answer.get("Item")
        scope = self._scope(session, model)
        if item is None or read_text(item["scope"]) != scope:
            return 0
        if read_text(item["former"]) != scope:
            self._tidy(session, model)
        return read_number(item["through"])

    def put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> bool:
        """See `VectorIndex`; one TransactWriteItems for each 64 turns."""
        for vector in vectors:
            if any(vector):
                self._check_dimensions(vector)
        try:
            for batch in batched(vectors, BATCH_TURNS):
                self._put(session, model, first_turn, batch)
                first_turn += len(batch)
        except GuardFailedError:
            return False
        except StoreError as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and _UNFIT.intersection(error_codes(cause)):
                self._unfit = "the table's index takes vectors of another length"
                raise VectorsUnavailableError(self._unfit) from error
            raise
        return True

    def closest(
        self, session: Session, model: str, query: array[float], limit: int
    ) -> Sequence[tuple[int, float]]:
        """See `VectorIndex`; one SearchVectors. The index is moments behind, and approximate."""
        self._check_dimensions(query)
        partition = partition_key(session.key)
        try:
            answer = self._client.search_vectors(
                TableName=self._table,
                IndexName=INDEX,
                SearchVector=_numbers(query),
                SearchConditionExpression="vec_scope = :scope",
                ExpressionAttributeValues={":scope": text(self._scope(session, model))},
                ProjectionExpression="PK, SK",
                TopK=min(limit, MOST_FOUND),
            )
        except (ClientError, BotoCoreError) as error:
            raise _unavailable(error) from error
        found: list[tuple[int, float]] = []
        for result in answer.get("SearchResults", []):
            item: Any = result["Item"]
            turn = read_vector_turn(read_text(item["SK"]))
            cosine = 1.0 - result["Score"]
            own = read_text(item["PK"]) == partition
            # Turns may have been added since the session was read.
            if own and cosine > 0 and turn <= session.committed_through:
                found.append((turn, cosine))
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def _put(
        self, session: Session, model: str, first_turn: int, vectors: Sequence[array[float]]
    ) -> None:
        scope = self._scope(session, model)
        prefix = vector_prefix(session.epoch, model, self._dimensions)
        puts = [
            {
                "Put": {
                    "TableName": self._table,
                    "Item": item_key(session.key, vector_sort_key(prefix, turn))
                    | {"vec_scope": text(scope), "vector": {"L": _numbers(vector)}},
                }
            }
            for turn, vector in enumerate(vectors, first_turn)
            if any(vector)
        ]
        mark = self._mark(session, scope, first_turn, first_turn + len(vectors) - 1)
        self._transact([self._check_session(session), mark, *puts])

    def _mark(self, session: Session, scope: str, first: int, last: int) -> dict[str, Any]:
        """Notes that turns are put: the first take another scope's place, others follow on."""
        values = {":scope": text(scope), ":last": number(last)}
        if first == 1:
            condition = "attribute_not_exists(PK) OR #scope <> :scope"
            update = "SET former = if_not_exists(#scope, :scope), #scope = :scope, through = :last"
        else:
            condition = "#scope = :scope AND through = :before"
            update = "SET through = :last"
            values[":before"] = number(first - 1)
        return {
            "Update": {
                "TableName": self._table,
                "Key": item_key(session.key, VECTORS),
                "ConditionExpression": condition,
                "UpdateExpression": update,
                "ExpressionAttributeNames": {"#scope": "scope"},
                "ExpressionAttributeValues": values,
            }
        }

    def _tidy(self, session: Session, model: str) -> None:
        """Remove all vectors but these, then say so; whoever has changed the model anew ends it."""
        scope = self._scope(session, model)
        mark = {
            "TableName": self._table,
            "Key": item_key(session.key, VECTORS),
            "ConditionExpression": "#scope = :scope",
            "ExpressionAttributeNames": {"#scope": "scope"},
            "ExpressionAttributeValues": {":scope": text(scope)},
        }
        check = [self._check_session(session), {"ConditionCheck": mark}]
        done = mark | {"UpdateExpression": "SET former = :scope"}
        kept = vector_prefix(session.epoch, model, self._dimensions)
        others = (one for one in self._sort_keys(session) if not one.startswith(kept))
        try:
            for batch in batched(others, BATCH_REMOVED):
                deletes = [
                    {"Delete": {"TableName": self._table, "Key": item_key(session.key, sort_key)}}
                    for sort_key in batch
                ]
                self._transact([*check, *deletes])
            self._transact([self._check_session(session), {"Update": done}])
        except GuardFailedError:
            return

    def _sort_keys(self, session: Session) -> Iterator[str]:
        with mapped_errors("list vectors"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="PK = :pk AND begins_with(SK, :vector)",
                ExpressionAttributeValues={
                    ":pk": text(partition_key(session.key)),
                    ":vector": text(VECTOR),
                },
                ProjectionExpression="SK",
                ConsistentRead=True,
            )
            for page in pages:
                for item in page["Items"]:
                    yield item["SK"]["S"]

    def _check_session(self, session: Session) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self._table,
                "Key": item_key(session.key, META),
                "ConditionExpression": "#epoch = :epoch AND #status = :live",
                "ExpressionAttributeNames": {"#epoch": "epoch", "#status": "status"},
                "ExpressionAttributeValues": {
                    ":epoch": text(session.epoch),
                    ":live": text(SessionStatus.LIVE),
                },
            }
        }

    def _transact(self, writes: list[Any]) -> None:
        """Write if the session is live still, and the item `VECTORS` as it is expected."""
        transact(self._client, writes, ["session", "vectors"], self._sleep)

    def _scope(self, session: Session, model: str) -> str:
        return vector_scope(session, model, self._dimensions)

    def _check_dimensions(self, vector: Sequence[float]) -> None:
        if len(vector) != self._dimensions:
            self._unfit = (
                f"the model's vectors have {len(vector)} numbers, the index takes"
                f" {self._dimensions}"
            )
            raise VectorsUnavailableError(self._unfit)


def _numbers(vector: Sequence[float]) -> list[Attribute]:
    """Four digits: of 512 numbers they change a cosine by a millionth, and a quarter less is paid.

    DynamoDB counts a byte for two digits, one for the number and one for its place.
    """
    return [{"N": f"{value:.4g}"} for value in vector]


def _unavailable(error: ClientError | BotoCoreError) -> Exception:
    """Whatever may pass by itself, or by building the index; a lost permission does not."""
    found = domain_error(error, "search vectors")
    passes = isinstance(found, (StoreUnavailableError, ThrottledError))
    if passes or (isinstance(error, ClientError) and _NO_INDEX.intersection(error_codes(error))):
        return VectorsUnavailableError(str(found))
    return found
