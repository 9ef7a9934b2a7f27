"""Path segments that survive routing byte for byte.

A REST API hands over the path as the client sent it, still percent-encoded, and Powertools matches
routes on it without decoding, so `a%2Fb` stays one segment. But ids may be spelled in several ways
(`%41` and `A`), and raw characters that Powertools' pattern lacks would make its route unknown. So
every segment gets its one canonical spelling, which only holds letters, digits and `-._~%`; after
routing, a value is decoded exactly once.
"""

from urllib.parse import quote, unquote, unquote_to_bytes


def canonical_path(path: str) -> str:
    """The path with each segment spelled in the one canonical way."""
    return "/".join(quote(unquote_to_bytes(segment), safe="") for segment in path.split("/"))


def decoded(segment: str) -> str | None:
    """The value of a canonical segment; None if its bytes are not UTF-8."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return None
