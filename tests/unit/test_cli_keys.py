"""`turnfold keys`, on keys in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from turnfold.adapters.in_memory_api_keys import InMemoryKeyStore, InMemoryMeter, InMemoryPeppers
from turnfold.application.api_keys import ApiKeys
from turnfold.cli import keys as commands
from turnfold.cli import stack
from turnfold.cli.main import main
from turnfold.domain.api_keys import read_key
from turnfold.domain.errors import InvalidInputError, NotFoundError

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> ApiKeys:
    peppers = InMemoryPeppers("p1", {"p1": b"1" * 64})
    made = ApiKeys(InMemoryKeyStore(), peppers, lambda: datetime.now(UTC), InMemoryMeter())
    monkeypatch.setattr(commands, "keys_of", lambda _: made)
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["keys", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_create_prints_the_key_once(keys: ApiKeys, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "create", "--tenant", "acme", "--name", "CI")
    assert status == 0
    sent = read_key(out.strip())
    assert sent is not None
    assert "only time" in err
    _, listed, _ = run(capsys, "list")
    assert sent.key_id in listed
    assert sent.secret not in listed
    assert sent.secret not in run(capsys, "list", "--json")[1]


def test_create_as_json(keys: ApiKeys, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(
        capsys, "create", "--tenant", "漢", "--scopes", "read, admin", "--expires", "30d", "--json"
    )
    made = json.loads(out)
    assert err == ""
    assert made["key"].split("_")[1] == made["key_id"]
    assert (made["tenant"], made["scopes"], made["state"]) == ("漢", ["admin", "read"], "active")
    assert made["expires_at"].endswith("Z")


def test_list_as_json(keys: ApiKeys, capsys: pytest.CaptureFixture[str]) -> None:
    for tenant in ("acme", "other"):
        run(capsys, "create", "--tenant", tenant)
    listed = json.loads(run(capsys, "list", "--tenant", "other", "--json")[1])
    assert [key["tenant"] for key in listed] == ["other"]


@pytest.mark.parametrize("whole", [True, False])
def test_revoke_takes_the_id_or_the_key(
    keys: ApiKeys, capsys: pytest.CaptureFixture[str], whole: bool
) -> None:
    key = run(capsys, "create", "--tenant", "acme")[1].strip()
    status, _, err = run(capsys, "revoke", key if whole else key.split("_")[1])
    assert status == 0
    assert "revoked" in err
    assert [one["state"] for one in json.loads(run(capsys, "list", "--json")[1])] == ["revoked"]


def test_rotate_and_admit(keys: ApiKeys, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "create", "--tenant", "acme")
    assert json.loads(run(capsys, "admit", "--json")[1]) == {"admitted": 1}
    first = json.loads(run(capsys, "rotate-pepper", "--json")[1])
    assert first["kept"] == ["p1"]
    status, _, err = run(capsys, "rotate-pepper")
    assert status == 1
    assert "have not been used" in err
    assert run(capsys, "rotate-pepper", "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "--tenant", ""], "the tenant"),
        (["create", "--tenant", "acme", "--scopes", "root"], "scopes"),
        (["create", "--tenant", "acme", "--expires", "soon"], "--expires"),
        (["create", "--tenant", "acme", "--expires", "2020-01-01"], "expired"),
        (["revoke", "nothing"], "no such key"),
    ],
)
def test_what_cannot_be_done_is_said(
    keys: ApiKeys, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (1, "")
    assert err.startswith("turnfold: ")
    assert said in err


def test_what_is_not_understood_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["keys"], ["keys", "create"], ["keys", "steal"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_expiry() -> None:
    assert commands.expiry(None, NOW) is None
    assert commands.expiry("30d", NOW) == NOW + timedelta(days=30)
    assert commands.expiry("2027-01-31T12:00:00Z", NOW) == datetime(2027, 1, 31, 12, tzinfo=UTC)
    assert commands.expiry("2027-01-31", NOW) == datetime(2027, 1, 31, tzinfo=UTC)
    for wrong in ("", "0d", "30", "d", "-1d", "tomorrow"):
        with pytest.raises(InvalidInputError):
            commands.expiry(wrong, NOW)


def test_a_stack_tells_its_resources() -> None:
    class Clients:
        class cloudformation:  # noqa: N801 - in place of a property
            @staticmethod
            def describe_stacks(StackName: str) -> dict[str, Any]:  # noqa: N803 - as boto3 calls it
                from botocore.exceptions import ClientError

                if StackName != "mine":
                    raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
                outputs = [{"OutputKey": "KeyTableName", "OutputValue": "table"}]
                return {"Stacks": [{"Outputs": outputs}]}

    clients: Any = Clients()
    outputs = stack.outputs_of(clients, "mine")
    assert stack.output(outputs, "KeyTableName", "--table") == "table"
    with pytest.raises(InvalidInputError, match="--pepper-secret"):
        stack.output(outputs, "PepperSecretArn", "--pepper-secret")
    with pytest.raises(NotFoundError):
        stack.outputs_of(clients, "other")
