"""Pins by hand: list, add, read, change, remove."""

from api.cursors import list_name, read_cursor, write_cursor
from api.problems import RefusedError
from api.replies import Reply, answered, if_match, with_etag
from api.requests import Request
from api.routes import read, write
from turnfold.application.views import pin_view
from turnfold.bootstrap import Turnfold
from turnfold.domain.pins import PinStatus

PINS = "/v1/sessions/{session_id}/pins"
PIN = "/v1/sessions/{session_id}/pins/{pin_id}"


def list_pins(request: Request, service: Turnfold) -> Reply:
    """Pins of a status, oldest first."""
    key, status = request.session_key, _status(request)
    name = list_name("pins", key.tenant, key.session_id, status)
    position = read_cursor(name, request.query("cursor"))
    page = service.pins.list(key, status, request.limit, position)
    items = [pin_view(pin) for pin in page.items]
    return Reply(body={"items": items, "next_cursor": write_cursor(name, page.next_position)})


def post_pin(request: Request, service: Turnfold) -> Reply:
    """Pin a fact."""
    from turnfold.application.pins_by_hand import pin_input

    key, given = request.session_key, pin_input(request.body)
    return answered(request, service.pins.add(key, given, request.idempotent(f"POST {PINS}")))


def get_pin(request: Request, service: Turnfold) -> Reply:
    """A pin of any status."""
    pin = service.pins.get(request.session_key, request.values["pin_id"])
    return with_etag(request, pin.etag, Reply(body=pin_view(pin)))


def patch_pin(request: Request, service: Turnfold) -> Reply:
    """Reword a pin, or change its status."""
    from turnfold.application.pins_by_hand import pin_input

    key, given = request.session_key, pin_input(request.body)
    pin = service.pins.change(key, request.values["pin_id"], given, if_match(request))
    return Reply(200, pin_view(pin), {"ETag": f'"{pin.etag}"'})


def delete_pin(request: Request, service: Turnfold) -> Reply:
    """Remove a pin for good."""
    service.pins.remove(request.session_key, request.values["pin_id"])
    return Reply(204)


def _status(request: Request) -> PinStatus:
    given = request.query("status")
    known = [status.value for status in PinStatus]
    if given is not None and given not in known:
        raise RefusedError(422, "invalid_parameter", f"status may be {', '.join(known)}")
    return PinStatus(given) if given else PinStatus.ACTIVE


ROUTES = (
    read("GET", PINS, list_pins),
    write("POST", PINS, post_pin),
    read("GET", PIN, get_pin),
    write("PATCH", PIN, patch_pin),
    write("DELETE", PIN, delete_pin),
)
