"""Writing several items at once, all or none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnfold.adapters.aws_errors import Sleep, guarded_write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def transact(
    client: "DynamoDBClient", writes: Sequence[Any], parts: Sequence[str], sleep: Sleep
) -> None:
    """One TransactWriteItems. `parts` names the writes in order, and raises as `guarded_write`."""
    guarded_write(
        lambda token: client.transact_write_items(TransactItems=writes, ClientRequestToken=token),
        parts,
        sleep,
    )
