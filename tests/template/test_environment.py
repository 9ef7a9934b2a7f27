"""Names and defaults that the functions read agree with the code and the contract."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from turnfold.application.default_settings import default_settings
from turnfold.domain import settings as domain_settings
from turnfold.domain.settings import Settings

# As the contract gives them. They are in the code, too; a change of either has to be meant.
CONTRACT = {
    "policy": {"name": "progressive"},
    "head_size": 1,
    "tail_size": 2,
    "window_max_size": 5,
    "window_token_threshold": 3000,
    "round_token_threshold": 1000,
    "max_pin_count": 10,
    "max_pin_tokens": 300,
    "expire_days": 7,
    "schedule": "tiered",
    "pin_mode": "async",
    "auto_compression": True,
    "strategies": [
        "PIN_JUDGMENT",
        "CURRENT_ROUND_SUMMARIZATION",
        "HISTORY_SUMMARIZATION",
        "PIN_AGGREGATION",
    ],
    "memory_role": "system",
    "model": None,
}
SETTINGS = [one.name for one in fields(Settings)]

SHARED = {
    "TURNFOLD_VERSION",
    "TURNFOLD_TABLE",
    "TURNFOLD_BUCKET",
    "TURNFOLD_QUEUE_URL",
    "TURNFOLD_ARCHIVE_QUEUE_URL",
    "TURNFOLD_ERASURE_SETTLE_SECONDS",
}
MODEL = {
    "TURNFOLD_MODEL",
    "TURNFOLD_EMBEDDING_MODEL",
    "TURNFOLD_MODEL_SECRET",
    "OPENAI_BASE_URL",
} | {
    "TURNFOLD_EMBEDDING_DIMENSIONS",
    "TURNFOLD_VECTOR_INDEX",
}
OWN = {
    "ApiFunction": MODEL
    | {"TURNFOLD_CHAT_MODEL", "TURNFOLD_PRICES"}
    | {"TURNFOLD_TENANT_ROLE_ARN", "TURNFOLD_TABLE_ARN", "TURNFOLD_BUCKET_ARN"},
    "AuthorizerFunction": {"TURNFOLD_KEY_TABLE", "TURNFOLD_PEPPER_SECRET"}
    | {f"TURNFOLD_JWT_{name}" for name in ("ISSUER", "AUDIENCE", "JWKS_URL", "USAGE_KEY")}
    | {f"TURNFOLD_JWT_{name}" for name in ("TENANT_CLAIM", "SCOPES_CLAIM", "SCOPE_PREFIX")},
    "CompactorFunction": MODEL,
    "SweeperFunction": set(),
    "ArchivistFunction": {"TURNFOLD_OBJECT_LOCK_DAYS"},
}


def parameter(setting: str) -> str:
    """`window_max_size` -> `DefaultWindowMaxSize`."""
    return "Default" + "".join(word.capitalize() for word in setting.split("_"))


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_is_a_parameter_with_the_contracts_default(
    parameters: dict[str, Any], setting: str
) -> None:
    variable = f"TURNFOLD_DEFAULT_{setting.upper()}"
    value = str(parameters[parameter(setting)]["Default"])
    # Read as a function reads it.
    assert default_settings({variable: value}).to_json()[setting] == CONTRACT[setting]
    assert Settings().to_json()[setting] == CONTRACT[setting]


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_reaches_the_functions(template: dict[str, Any], setting: str) -> None:
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    value = variables[f"TURNFOLD_DEFAULT_{setting.upper()}"]
    if setting == "model":
        assert value == {
            "Fn::If": ["HasDefaultModel", {"Ref": "DefaultModel"}, {"Ref": "AWS::NoValue"}]
        }
    else:
        assert value == {"Ref": parameter(setting)}


def test_no_variable_is_for_a_setting_that_does_not_exist(template: dict[str, Any]) -> None:
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    prefix = "TURNFOLD_DEFAULT_"
    named = {name.removeprefix(prefix).lower() for name in variables if name.startswith(prefix)}
    assert named == set(SETTINGS)


def test_bounds_of_parameters_are_those_of_the_settings(parameters: dict[str, Any]) -> None:
    for setting, (low, high) in domain_settings.BOUNDS.items():
        found = parameters[parameter(setting)]
        assert (found["MinValue"], found["MaxValue"]) == (low, high), setting
    for setting, allowed in domain_settings.CHOICES.items():
        assert tuple(parameters[parameter(setting)]["AllowedValues"]) == allowed


@pytest.mark.parametrize("function", OWN)
def test_every_function_gets_its_variables(template: dict[str, Any], function: str) -> None:
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    own = template["Resources"][function]["Properties"].get("Environment", {}).get("Variables", {})
    assert set(shared) >= SHARED
    assert set(own) - {"TIKTOKEN_CACHE_DIR"} == OWN[function]


def test_empty_parameters_leave_their_variable_out(template: dict[str, Any]) -> None:
    """An empty AWS_ENDPOINT_URL or OPENAI_BASE_URL is not the same as none."""
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    assert shared["AWS_ENDPOINT_URL"]["Fn::If"][:2] == ["OnAws", {"Ref": "AWS::NoValue"}]
    for function in ("ApiFunction", "CompactorFunction"):
        variables = template["Resources"][function]["Properties"]["Environment"]["Variables"]
        for name in ("OPENAI_BASE_URL", "TURNFOLD_MODEL_SECRET"):
            assert variables[name]["Fn::If"][2] == {"Ref": "AWS::NoValue"}


def test_version_is_the_projects(template: dict[str, Any], root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert variables["TURNFOLD_VERSION"] == project["version"]


def test_every_parameter_is_described_grouped_and_used(template: dict[str, Any]) -> None:
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    assert sorted(grouped) == sorted(template["Parameters"])
    assert all(one.get("Description") for one in template["Parameters"].values())


def test_every_function_has_its_handler(template: dict[str, Any], root: Path) -> None:
    for function in OWN:
        properties = template["Resources"][function]["Properties"]
        module, _, name = properties["Handler"].rpartition(".")
        path = root / properties["CodeUri"] / f"{module.replace('.', '/')}.py"
        source = path.read_text(encoding="utf-8")
        assert re.search(rf"^(def )?{name}\b", source, re.MULTILINE), function
