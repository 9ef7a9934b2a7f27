"""The transcript as a whole: verifying it."""

import re

from api.cursors import list_name, read_cursor, write_cursor
from api.deadlines import seconds_left
from api.replies import Reply
from api.requests import Request
from api.routes import read
from turnfold.bootstrap import Turnfold
from turnfold.domain.errors import InvalidCursorError

VERIFY = "/v1/sessions/{session_id}/transcript/verify"

VERIFY_SECONDS = 20.0
"""After that the answer says how far it came; API Gateway gives up after 29 seconds."""

_POSITION = re.compile(r"[0-9]{1,12}:[0-9a-f]{64}(,[0-9a-f]{64})*")


def get_verification(request: Request, service: Turnfold) -> Reply:
    """Whether the hash chain is whole, and the first turn that is not as it was committed."""
    key = request.session_key
    name = list_name("verify", key.tenant, key.session_id)
    position = read_cursor(name, request.query("cursor"))
    if position is not None and not _POSITION.fullmatch(position):
        raise InvalidCursorError("send next_cursor as it was answered")
    found = service.verify(key, position, seconds_left(VERIFY_SECONDS))
    return Reply(body={**found.view(), "next_cursor": write_cursor(name, found.position)})


ROUTES = (read("GET", VERIFY, get_verification),)
