"""Keys of the table: every id becomes part of a key here, and only here (design, section 5).

An id may be any sane string, so `#`, which separates the parts of a key, and `%`, which escapes,
are escaped in it. Escaping is injective, so no id can forge another's key, and it is undone to
learn a session's key from an index entry.

Sort keys order the items of one session so that one range, `WORKING_MEMORY`, holds its working
memory and nothing else:

    DRAFT...  FORMER_PIN#<id>  IDEM#<hash>  LLM#<step>  |  META  PIN#<id>  PROFILE  SUM#...  TURN#
    |  USAGE#<step>#<model>  VEC#<epoch>#<model>#<turn>  VECTORS
"""

import hashlib
import json
from datetime import datetime

from turnfold.domain.errors import InvalidCursorError, InvalidIdError
from turnfold.domain.limits import DUE_SHARDS
from turnfold.domain.sessions import Session, SessionKey, SummaryRef
from turnfold.domain.transcript import format_time, parse_time

DRAFT = "DRAFT"
ERASURE = "ERASURE"
META = "META"
PROFILE = "PROFILE"
FORMER_PIN = "FORMER_PIN#"
PIN = "PIN#"
SUMMARY = "SUM#"
TURN = "TURN#"
USAGE = "USAGE#"
VECTOR = "VEC#"
VECTORS = "VECTORS"
WORKING_MEMORY = (META, f"{TURN}~")
"""First and last sort key of working memory, both inclusive; `~` sorts after all digits."""

WITHOUT_TURNS = (META, f"{SUMMARY}~")
"""Those of working memory but its turns, which come last."""

MAX_PARTITION_KEY_BYTES = 2048
"""DynamoDB's own limit."""


def escape(value: str) -> str:
    """The value without `#`; `unescape` undoes it."""
    return value.replace("%", "%25").replace("#", "%23")


def unescape(value: str) -> str:
    """The value that `escape` was given."""
    return value.replace("%23", "#").replace("%25", "%")


def partition_key(key: SessionKey) -> str:
    """The partition of one session.

    Raises `InvalidIdError` if it exceeds DynamoDB's limit, which takes a tenant name of a thousand
    bytes beside a session id of the greatest length.
    """
    partition = f"T#{escape(key.tenant)}#S#{escape(key.session_id)}"
    if len(partition.encode()) > MAX_PARTITION_KEY_BYTES:
        raise InvalidIdError("tenant and session id together are too long")
    return partition


def session_of(partition: str) -> SessionKey:
    """The session whose partition it is. Raises `ValueError` for any other text."""
    parts = partition.split("#")
    if len(parts) != 4 or (parts[0], parts[2]) != ("T", "S"):  # noqa: PLR2004 - T, tenant, S, session
        raise ValueError("not a session's partition key")
    return SessionKey(unescape(parts[1]), unescape(parts[3]))


def idempotency_sort_key(key_hash: str) -> str:
    """Where the answer to one Idempotency-Key is."""
    return f"IDEM#{key_hash}"


def answer_sort_key(step_id: str) -> str:
    """Where a paid model answer is."""
    return f"LLM#{step_id}"


def draft_sort_key(piece: int) -> str:
    """Where a piece of an open turn is, behind the item `DRAFT` that counts them."""
    return f"{DRAFT}#{piece:06d}"


def pin_sort_key(pin_id: str) -> str:
    """Where an active pin is."""
    return f"{PIN}{pin_id}"


def former_pin_sort_key(pin_id: str) -> str:
    """Where a pin is that is not active: outside of working memory."""
    return f"{FORMER_PIN}{pin_id}"


def summary_sort_key(ref: SummaryRef) -> str:
    """Where a summary is; summaries sort by coverage."""
    return f"{SUMMARY}{ref.from_turn:012d}-{ref.to_turn:012d}#{ref.level}"


def usage_sort_key(step: str, model: str) -> str:
    """Where the cost of one step by one model is: behind working memory."""
    return f"{USAGE}{escape(step)}#{escape(model)}"


def vector_prefix(epoch: str, model: str, dimensions: int) -> str:
    """What the sort keys of one model's vectors begin with: behind working memory."""
    digest = hashlib.sha256(json.dumps([model, dimensions]).encode()).hexdigest()
    return f"{VECTOR}{escape(epoch)}#{digest[:12]}#"


def vector_sort_key(prefix: str, turn: int) -> str:
    """Where the vector of a turn is; `read_vector_turn` undoes it."""
    return f"{prefix}{turn:012d}"


def read_vector_turn(sort_key: str) -> int:
    """The turn whose vector is at a sort key."""
    return int(sort_key[-12:])


def vector_scope(session: Session, model: str, dimensions: int) -> str:
    """Partition of the index `vectors`: one epoch of one session, and one model.

    IAM has no condition for what a vector search looks at. So this is all that keeps a search to
    its session: the epoch is random and, as part of ETags, in answers to its own tenant only, so
    nobody guesses the scope of a session whose items he may not read.
    """
    names = [partition_key(session.key), session.epoch, model, dimensions]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()


def turn_sort_key(number: int) -> str:
    """Where a turn is; turns sort by number."""
    return f"{TURN}{number:012d}"


def shard_of(key: SessionKey) -> int:
    """The shard of the sweeper's index that a session belongs to, 0 to `DUE_SHARDS` - 1."""
    return int.from_bytes(_digest(key)[:4]) % DUE_SHARDS


def due_shard(shard: int) -> str:
    """Partition of the index `due`."""
    return f"D#{shard}"


def tenant_key(tenant: str) -> str:
    """Partition of the index `by_tenant`."""
    return f"T#{escape(tenant)}"


def user_key(tenant: str, user_id: str) -> str:
    """Partition of the index `by_user`."""
    return f"T#{escape(tenant)}#U#{escape(user_id)}"


def created_key(key: SessionKey, created_at: datetime) -> str:
    """Orders the sessions of `by_user` and `by_tenant` by age.

    A piece of the session's hash makes the order definite. It is not the session id, which may have
    a thousand bytes, while DynamoDB takes 1,024 for a sort key.
    """
    return f"{format_time(created_at)}#{_digest(key).hex()[:16]}"


def position_of(session: Session) -> str:
    """A session's place in a list; `read_position` undoes it."""
    return json.dumps([format_time(session.created_at), session.key.session_id], ensure_ascii=False)


def read_position(tenant: str, position: str) -> tuple[SessionKey, str]:
    """The session at a position, and its `created_key`.

    The tenant is the caller's, never the position's. Raises `InvalidCursorError`.
    """
    try:
        created_at, session_id = json.loads(position)
        key = SessionKey(tenant, session_id)
        return key, created_key(key, parse_time(created_at))
    except (ValueError, TypeError, AttributeError):
        raise InvalidCursorError("the cursor is not one of this list") from None


def erasure_partition(tenant: str, erasure_id: str) -> str:
    """The partition of an erasure and its receipt. It names nobody."""
    return f"T#{escape(tenant)}#E#{escape(erasure_id)}"


def erasure_of(partition: str) -> tuple[str, str]:
    """Tenant and id of an erasure's partition. Raises `ValueError` for any other text."""
    parts = partition.split("#")
    if len(parts) != 4 or (parts[0], parts[2]) != ("T", "E"):  # noqa: PLR2004 - T, tenant, E, id
        raise ValueError("not an erasure's partition key")
    return unescape(parts[1]), unescape(parts[3])


def erased_session_partition(key: SessionKey) -> str:
    """Where the erasure of a session that is gone can be found, by a hash of its key."""
    return _pointer(key.tenant, "session", key.session_id)


def erased_user_partition(tenant: str, user_id: str) -> str:
    """Where the erasure of a user can be found, by a hash of the user id."""
    return _pointer(tenant, "user", user_id)


DUE_ERASURES = "E#0"
"""Partition of the index `due` for erasures of users: too few to be spread."""


def _pointer(tenant: str, kind: str, name: str) -> str:
    digest = hashlib.sha256(json.dumps([tenant, kind, name]).encode()).hexdigest()
    return f"T#{escape(tenant)}#D#{digest}"


def _digest(key: SessionKey) -> bytes:
    return hashlib.sha256(partition_key(key).encode()).digest()
