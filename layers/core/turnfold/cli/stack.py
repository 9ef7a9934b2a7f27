"""Which stack a command is about: by its name, or resource by resource."""

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnfold.domain.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from turnfold.adapters.operator_clients import OperatorClients

DEFAULT_STACK = "turnfold"


def add_stack_options(parser: argparse.ArgumentParser) -> None:
    """The options that name a stack, and whose credentials are used."""
    parser.add_argument(
        "--stack",
        default=os.environ.get("TURNFOLD_STACK", DEFAULT_STACK),
        help="name of the CloudFormation stack (TURNFOLD_STACK, or %(default)s)",
    )
    parser.add_argument("--region", help="AWS region, where it is not the profile's own")
    parser.add_argument("--profile", help="profile of the AWS configuration")


def clients_of(arguments: argparse.Namespace) -> "OperatorClients":
    """AWS clients as the options say."""
    from turnfold.bootstrap_access import operator_clients

    # botocore reads both when it makes its first client.
    if arguments.region:
        os.environ["AWS_DEFAULT_REGION"] = arguments.region
    if arguments.profile:
        os.environ["AWS_PROFILE"] = arguments.profile
    return operator_clients()


def outputs_of(clients: "OperatorClients", stack: str) -> Mapping[str, str]:
    """The outputs of a stack by name. Raises `NotFoundError`."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        stacks = clients.cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except (ClientError, BotoCoreError) as error:
        raise NotFoundError(f"the stack {stack} cannot be read: {error}") from None
    return {one["OutputKey"]: one["OutputValue"] for one in stacks[0].get("Outputs", [])}


def output(outputs: Mapping[str, str], name: str, option: str) -> str:
    """One output. Raises `InvalidInputError` naming the option that can stand in for it."""
    if name not in outputs:
        raise InvalidInputError(f"the stack has no output {name}; deploy it anew, or use {option}")
    return outputs[name]
