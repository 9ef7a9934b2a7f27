"""Routes of the contract that this version does not have yet."""

from api.problems import RefusedError
from api.replies import Reply
from api.requests import Request
from api.routes import READ, WRITE, Route
from turnfold.bootstrap import Turnfold

_READS = ("GET /v1/models",)
_WRITES = ("POST /v1/chat/completions",)


def not_yet(_request: Request, _service: Turnfold) -> Reply:
    """Say that the route comes later."""
    raise RefusedError(501, "not_implemented", "this version of the service lacks this route")


def _routes(names: tuple[str, ...], scope: str) -> list[Route]:
    split = (name.split() for name in names)
    return [Route(method, template, not_yet, scope) for method, template in split]


ROUTES = (*_routes(_READS, READ), *_routes(_WRITES, WRITE))
