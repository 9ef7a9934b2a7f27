"""Work on a session that may be erased, and begun anew, while it goes on."""

from turnfold.domain.errors import SessionErasingError
from turnfold.domain.sessions import Session


def check_same(session: Session | None, epoch: str | None) -> None:
    """Raise `SessionErasingError` unless this is the session of an epoch that was read before.

    Without an epoch there was no session, and it may have been created meanwhile.
    """
    if epoch is not None and (session is None or session.epoch != epoch):
        raise SessionErasingError("the session was erased meanwhile")
