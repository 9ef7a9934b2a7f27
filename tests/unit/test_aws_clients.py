"""The client factory: patience that fits a Lambda, nothing made before it is needed."""

import subprocess
import sys
from typing import Any

from support.aws import aws_environment
from turnfold.adapters.aws_clients import AwsClients


def test_a_client_is_made_once_with_short_patience() -> None:
    with aws_environment("http://127.0.0.1:9"):
        clients = AwsClients()
        client = clients.dynamodb
        assert client is clients.dynamodb
    config: Any = client.meta.config  # its attributes are made at run time
    assert config.connect_timeout == 1
    assert config.read_timeout == 5
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}
    attempts = config.retries["total_max_attempts"]
    assert attempts * (config.connect_timeout + config.read_timeout) < 29


def test_making_the_factory_and_the_adapters_loads_no_client_library() -> None:
    """Importing botocore's clients takes longer than all of this service's own modules."""
    program = (
        "import sys\n"
        "import turnfold.adapters.dynamo_memory, turnfold.adapters.s3_archive\n"
        "import turnfold.adapters.sqs_doorbell\n"
        "from turnfold.adapters.aws_clients import AwsClients\n"
        "AwsClients()\n"
        "print([one for one in ('boto3', 'botocore.session', 'concurrent.futures') "
        "if one in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "[]\n"
