"""AWS clients that only an operator's command line needs; no function has them."""

from functools import cached_property
from typing import Any

from turnfold.adapters.aws_clients import AwsClients


class OperatorClients(AwsClients):
    """The functions' clients, and those for looking at a stack and its usage plan.

    They work with the operator's own credentials, region and profile, as the AWS CLI finds them.
    """

    @cached_property
    def apigateway(self) -> Any:  # noqa: ANN401 - no types are installed for it
        """API Gateway: usage plans and their keys."""
        return self._make("apigateway")

    @cached_property
    def cloudformation(self) -> Any:  # noqa: ANN401 - the same
        """CloudFormation: outputs of a stack."""
        return self._make("cloudformation")
