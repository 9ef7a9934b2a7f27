"""Preconditions by ETag (RFC 9110): which states of a resource a caller wants to change."""

from turnfold.domain.errors import StaleEtagError

ANY = "*"
"""In place of an ETag: any state, as long as there is one."""


def require_match(etag: str | None, wanted: frozenset[str] | None) -> None:
    """Raise `StaleEtagError` unless the state of that ETag (None: there is none) is wanted.

    `wanted` is None where the caller does not care.
    """
    if wanted is None or (etag is not None and (ANY in wanted or etag in wanted)):
        return
    raise StaleEtagError("it has changed since that ETag; read it again, then repeat the change")
