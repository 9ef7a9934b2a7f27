"""Reads the deployed template, so that local and deployed definitions are one.

Understands what the template needs: the tags of CloudFormation, parameters by their defaults or as
they are given, conditions over them, and references between the resources that the local stack
creates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from infra.local.settings import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TABLE, BUCKET = "MemoryTable", "TranscriptBucket"
QUEUE, DEAD_LETTERS = "CompactionQueue", "CompactionDeadLetterQueue"
ARCHIVE_QUEUE, ARCHIVE_DEAD_LETTERS = "ArchiveQueue", "ArchiveDeadLetterQueue"

NAMES = {
    TABLE: "turnfold-memory",
    BUCKET: "turnfold-transcripts",
    QUEUE: "turnfold-compaction.fifo",
    DEAD_LETTERS: "turnfold-compaction-dead-letters.fifo",
    ARCHIVE_QUEUE: "turnfold-archive.fifo",
    ARCHIVE_DEAD_LETTERS: "turnfold-archive-dead-letters.fifo",
}
ARNS = {
    TABLE: f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{NAMES[TABLE]}",
    BUCKET: f"arn:aws:s3:::{NAMES[BUCKET]}",
    **{
        queue: f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAMES[queue]}"
        for queue in (QUEUE, DEAD_LETTERS, ARCHIVE_QUEUE, ARCHIVE_DEAD_LETTERS)
    },
}
PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "turnfold",
    "AWS::URLSuffix": "amazonaws.com",
}


class TemplateError(Exception):
    """The template cannot be read, or lacks what the local stack needs."""


class UnresolvedError(Exception):
    """A value refers to something that exists only on AWS."""


@dataclass(frozen=True)
class FunctionDefinition:
    """How a function is called and started, as the template says it."""

    name: str
    code: str
    handler: str
    timeout_seconds: int
    memory_mb: int
    environment: dict[str, str]


class Definitions:
    """The resources of a template, with references resolved."""

    def __init__(
        self, template: dict[str, Any], parameters: Mapping[str, str] | None = None
    ) -> None:
        """Take a parsed template, and values of parameters that shall not have their default."""
        self._template = template
        given = parameters or {}
        self._parameters: dict[str, Any] = {
            name: _typed(definition, given.get(name, definition.get("Default", "")))
            for name, definition in (template.get("Parameters") or {}).items()
        }

    @classmethod
    def load(cls, path: Path, parameters: Mapping[str, str] | None = None) -> Definitions:
        """Read a template file."""
        try:
            text = path.read_text(encoding="utf-8")
            template = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader
        except OSError as error:
            message = f"The template {path.name} cannot be read: {error.strerror}"
            raise TemplateError(message) from error
        if not isinstance(template, dict):
            message = f"The template {path.name} is not a mapping"
            raise TemplateError(message)
        return cls(template, parameters)

    def properties(self, logical_id: str) -> dict[str, Any]:
        """A resource's properties; what exists only on AWS is left out."""
        resource = (self._template.get("Resources") or {}).get(logical_id)
        if resource is None:
            message = f"The template has no resource {logical_id}"
            raise TemplateError(message)
        resolved: dict[str, Any] = self._resolve(resource.get("Properties") or {})
        return resolved

    def function(self, logical_id: str) -> FunctionDefinition:
        """A function's definition, with the template's globals applied."""
        shared = self._resolve((self._template.get("Globals") or {}).get("Function") or {})
        own = self.properties(logical_id)
        merged = shared | own
        variables = _variables(shared) | _variables(own)
        return FunctionDefinition(
            name=logical_id,
            code=str(merged["CodeUri"]),
            handler=str(merged["Handler"]),
            timeout_seconds=int(merged.get("Timeout", 3)),
            memory_mb=int(merged.get("MemorySize", 128)),
            environment={k: _text(v) for k, v in variables.items()},
        )

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [v for v in (self._try(item) for item in value) if v is not _ABSENT]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or str(name).startswith("Fn::"):
                return self._intrinsic(name, argument)
        pairs = ((key, self._try(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not _ABSENT}

    def _try(self, value: Any) -> Any:
        try:
            return self._resolve(value)
        except UnresolvedError:
            return _ABSENT

    def _intrinsic(self, name: str, argument: Any) -> Any:
        if name == "Ref":
            return self._reference(argument)
        if name == "Fn::GetAtt":
            return _attribute(argument)
        if name == "Fn::Sub":
            return self._substitute(argument)
        if name == "Fn::If":
            condition, yes, no = argument
            return self._resolve(yes if self._condition(condition) else no)
        if name == "Fn::Join":
            separator, parts = argument
            return separator.join(_text(part) for part in self._resolve(parts))
        raise UnresolvedError(name)

    def _reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            raise UnresolvedError(name)
        for known in (self._parameters, PSEUDO_PARAMETERS, NAMES):
            if name in known:
                return known[name]
        raise UnresolvedError(name)

    def _substitute(self, argument: Any) -> str:
        text, extra = argument if isinstance(argument, list) else (argument, {})

        def replace(match: re.Match[str]) -> str:
            name = match.group(1)
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in extra:
                return _text(self._resolve(extra[name]))
            return _text(_attribute(name) if "." in name else self._reference(name))

        return re.sub(r"\$\{([^}]+)\}", replace, text)

    def _condition(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._condition((self._template.get("Conditions") or {})[condition])
        ((name, argument),) = condition.items()
        if name == "Condition":
            return self._condition(argument)
        if name == "Fn::Equals":
            first, second = (_text(self._resolve(side)) for side in argument)
            return first == second
        if name == "Fn::Not":
            return not self._condition(argument[0])
        results = [self._condition(part) for part in argument]
        return all(results) if name == "Fn::And" else any(results)


class _Absent:
    """Stands for a value that cannot be known here."""


_ABSENT = _Absent()


class _Loader(yaml.SafeLoader):
    """A safe loader that knows CloudFormation's short forms."""


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        value = None
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    return {name: value}


_Loader.add_multi_constructor("!", _short_form)


def _attribute(argument: Any) -> str:
    parts = argument.split(".", 1) if isinstance(argument, str) else list(argument)
    if len(parts) > 1 and parts[1] == "Arn" and parts[0] in ARNS:
        return ARNS[parts[0]]
    raise UnresolvedError(argument)


def _typed(definition: dict[str, Any], value: Any) -> Any:
    if definition.get("Type") == "Number" and value != "":
        return float(value) if "." in str(value) else int(value)
    return value


def _variables(function: dict[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = (function.get("Environment") or {}).get("Variables") or {}
    return variables


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
