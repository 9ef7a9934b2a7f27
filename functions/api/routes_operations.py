"""Health, the API's own description, and compaction by hand."""

from pathlib import Path

from api.replies import Reply
from api.requests import Request
from api.routes import Route, write
from turnfold.application.due_work import pending_bound
from turnfold.application.views import watermark_view
from turnfold.bootstrap import Turnfold

COMPACT = "/v1/sessions/{session_id}/compact"
_HERE = Path(__file__).parent


def healthz(_request: Request, service: Turnfold) -> Reply:
    """Whether the function runs at all; no store is asked."""
    return Reply(body={"status": "ok", "version": service.version})


def openapi(_request: Request, _service: Turnfold) -> Reply:
    """The OpenAPI document, as it was generated."""
    return Reply(text=(_HERE / "openapi.json").read_text(encoding="utf-8"))


def docs(_request: Request, _service: Turnfold) -> Reply:
    """A page that shows the OpenAPI document, and loads nothing from elsewhere."""
    policy = (
        "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline';"
        " style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    )
    return Reply(
        text=(_HERE / "docs.html").read_text(encoding="utf-8"),
        content_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": policy},
    )


def post_compact(request: Request, service: Turnfold) -> Reply:
    """Ring the doorbell. Ringing twice does no harm, so nothing is stored for a repetition."""
    headers = {"Idempotency-Key": request.idempotency_key}
    session = service.sessions.ring(request.session_key)
    body = {
        "session_id": session.key.session_id,
        "watermark": watermark_view(session, pending_bound(session)),
    }
    return Reply(202, body, headers)


ROUTES = (
    Route("GET", "/healthz", healthz, None),
    Route("GET", "/openapi.json", openapi, None),
    Route("GET", "/docs", docs, None),
    write("POST", COMPACT, post_compact),
)
