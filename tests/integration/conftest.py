"""The handlers on moto's AWS, with a key file and, where asked for, a fake model."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from support.api import KEYS, Api, Json, Session
from support.aws import Services, aws_environment, make_services
from turnfold.adapters.aws_clients import AwsClients
from turnfold.bootstrap import Turnfold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# So that a failed assertion there shows its values.
pytest.register_assert_rewrite("support.reports")

VOCABULARY = Path(__file__).resolve().parents[2] / "layers" / "vocab" / "vocabulary"

type MakeTurnfold = Callable[..., Turnfold]


@pytest.fixture(scope="module")
def moto_services() -> Iterator[Services]:
    """Moto's services, while a module's tests run."""
    with aws_environment(None), mock_aws():
        yield make_services(None)


@pytest.fixture(scope="module")
def make_turnfold(
    moto_services: Services, tmp_path_factory: pytest.TempPathFactory
) -> MakeTurnfold:
    """Makes a service on those, with more environment variables if need be."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(json.dumps(KEYS), encoding="utf-8")
    clients = AwsClients()

    def make(**variables: str) -> Turnfold:
        made = Turnfold(
            {
                "TURNFOLD_TABLE": moto_services.table,
                "TURNFOLD_BUCKET": moto_services.bucket,
                "TURNFOLD_QUEUE_URL": moto_services.queue_url,
                "TURNFOLD_ARCHIVE_QUEUE_URL": moto_services.archive_queue_url,
                "TURNFOLD_KEY_FILE": str(keys),
                "TIKTOKEN_CACHE_DIR": str(VOCABULARY),
            }
            | variables
        )
        made.__dict__["_clients"] = clients
        return made

    return make


@pytest.fixture
def turnfold(make_turnfold: MakeTurnfold) -> Turnfold:
    """A service without a model."""
    return make_turnfold()


@pytest.fixture
def api(turnfold: Turnfold, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A client of the handler, over that service."""
    from api import app

    monkeypatch.setattr(app, "service", lambda: turnfold)
    return Api(app.handler)


@pytest.fixture
def session(api: Api) -> Session:
    """A session that does not exist yet."""
    return api.session(f"s-{uuid.uuid4().hex}")


@pytest.fixture
def broken() -> Callable[..., Any]:
    """Puts something in place of a port's methods: an error to raise, or a function."""

    def break_port(port: object, **methods: Json) -> Json:
        class Broken:
            def __getattr__(self, name: str) -> Json:
                if name not in methods:
                    return getattr(port, name)
                failure = methods[name]

                def act(*args: Json, **kwargs: Json) -> Json:
                    if isinstance(failure, Exception):
                        raise failure
                    return failure(*args, **kwargs)

                return act

        return Broken()

    return break_port
