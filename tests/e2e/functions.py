"""The functions of a build, with the variables that the deployed ones have."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from template.conftest import Loader

if TYPE_CHECKING:
    from infra.deployed.stack import DeployedStack

ROOT = Path(__file__).resolve().parents[2]
EVENTS = ROOT / "infra" / "events"
EVENTS_OF = {
    "ApiFunction": ("api-health", "api-commit", "api-context"),
    "ArchivistFunction": ("archivist",),
    "AuthorizerFunction": ("authorizer",),
    "CompactorFunction": ("compactor",),
    "SweeperFunction": ("sweeper",),
}


def event(name: str) -> Any:
    """An event of `infra/events`."""
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class BuiltFunction:
    """One function as the built template has it."""

    name: str
    handler: str
    memory: int
    layers: tuple[str, ...]


def built_functions(built: Path) -> dict[str, BuiltFunction]:
    """All functions of a build, by logical id."""
    template = yaml.load((built / "template.yaml").read_text("utf-8"), Loader)  # noqa: S506 - a safe loader, extended
    return {
        name: BuiltFunction(
            name,
            resource["Properties"]["Handler"],
            resource["Properties"]["MemorySize"],
            tuple(layer["Ref"] for layer in resource["Properties"]["Layers"]),
        )
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


def local_template(built: Path) -> Path:
    """The built template as `sam local` can read it, beside it.

    It reads no aliases in the definition of an API, and no conditions in its security.
    """
    template = yaml.load((built / "template.yaml").read_text("utf-8"), Loader)  # noqa: S506 - a safe loader, extended
    path = built / "local.json"
    path.write_text(json.dumps(_without_aliases(template)), encoding="utf-8")
    return path


def _without_aliases(part: Any) -> Any:
    if isinstance(part, str):
        return part.replace(".Alias}", ".Arn}")
    if isinstance(part, list):
        return [_without_aliases(one) for one in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("Ref")
    if isinstance(reference, str) and reference.endswith(".Alias"):
        return {"Fn::GetAtt": [reference.removesuffix(".Alias"), "Arn"]}
    found = {name: _without_aliases(one) for name, one in part.items()}
    if isinstance(found.get("security"), dict):
        # The branch of an emulator, which has no usage plans.
        found["security"] = found["security"]["Fn::If"][2]
    return found


def variables(stack: DeployedStack, logical_id: str) -> dict[str, str]:
    """The variables of the deployed function, and credentials."""
    resources = stack.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId=logical_id
    )
    name = resources["StackResourceDetail"]["PhysicalResourceId"]
    configuration = stack.client("lambda").get_function_configuration(FunctionName=name)
    found: dict[str, str] = configuration["Environment"]["Variables"]
    return {**found, **stack.emulator.credentials}


def python_of_the_runtime() -> str:
    """The interpreter of the version that Lambda runs."""
    return subprocess.run(
        [ROOT / "infra" / "find_python.sh", "3.13"], capture_output=True, text=True, check=True
    ).stdout.strip()
