"""The template as plain data: `!Ref X` becomes `{"Ref": "X"}`, `!Sub` `{"Fn::Sub": ...}`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


class Loader(yaml.SafeLoader):
    """A safe loader that knows CloudFormation's short forms."""


def _short_form(loader: Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt":
        value = value.split(".", 1)
    return {tag if tag == "Ref" else f"Fn::{tag}": value}


Loader.add_multi_constructor("!", _short_form)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader)  # noqa: S506 - a safe loader, extended
    return loaded


@pytest.fixture(scope="session")
def resources(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"]
    return found


@pytest.fixture(scope="session")
def parameters(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Parameters"]
    return found
