from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from turnfold.adapters.model_secret import KEPT_SECONDS, ModelSecret
from turnfold.domain.errors import ModelFailedError, ModelNotConfiguredError

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:model"


class Secrets:
    """Secrets Manager, as far as one secret goes."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        self.asked.append(SecretId)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"SecretString": answer}


def failing(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "sk-secret"}}, "GetSecretValue")


def secret(secrets: Secrets, times: list[float]) -> ModelSecret:
    return ModelSecret(ARN, lambda: secrets, lambda: times[-1])  # type: ignore[arg-type, return-value]  # a client that only counts


@pytest.mark.parametrize(
    "stored",
    [
        "sk-key",
        " sk-key\n",
        '{"OPENAI_API_KEY": "sk-key"}',
        '{"OPENAI_API_KEY": " sk-key ", "x": 1}',
    ],
)
def test_the_key_is_plain_or_in_json(stored: str) -> None:
    secrets = Secrets(stored)
    assert secret(secrets, [0.0])() == "sk-key"
    assert secrets.asked == [ARN]


def test_the_key_is_kept_for_a_while_and_then_read_again() -> None:
    secrets, times = Secrets("first", "second"), [100.0]
    key = secret(secrets, times)
    assert [key(), key()] == ["first", "first"]
    times.append(100 + KEPT_SECONDS + 1)
    assert [key(), key()] == ["second", "second"]


def test_nothing_is_read_before_the_key_is_needed() -> None:
    secrets = Secrets("first")
    secret(secrets, [0.0])
    assert secrets.asked == []


@pytest.mark.parametrize(
    "stored", ["", "  ", "{}", '{"OPENAI_API_KEY": ""}', '{"OPENAI_API_KEY": 7}', '{"key": "x"}']
)
def test_a_secret_without_a_key_is_no_configuration(stored: str) -> None:
    with pytest.raises(ModelNotConfiguredError):
        secret(Secrets(stored), [0.0])()


def test_an_absent_secret_is_no_configuration() -> None:
    with pytest.raises(ModelNotConfiguredError):
        secret(Secrets(failing("ResourceNotFoundException")), [0.0])()


@pytest.mark.parametrize(
    "error",
    [
        failing("AccessDeniedException"),
        failing("ThrottlingException"),
        EndpointConnectionError(endpoint_url="https://secrets.test"),
    ],
)
def test_a_secret_that_cannot_be_read_is_a_failure_and_the_old_key_serves_on(
    error: Exception,
) -> None:
    with pytest.raises(ModelFailedError) as caught:
        secret(Secrets(error), [0.0])()
    assert "sk-" not in str(caught.value)
    times = [0.0]
    key = secret(Secrets("old", error, "new"), times)
    assert key() == "old"
    times.append(KEPT_SECONDS + 1)
    assert key() == "old"
    times.append(2 * KEPT_SECONDS + 2)
    assert key() == "new"
