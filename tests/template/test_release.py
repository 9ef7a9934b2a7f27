"""What is deployed is what runs: versions, aliases, gradual deployment, the release's digest."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from infra.release_digest import ROOT, release_digest, stamped
from template.translated import of_type, references, translated

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = [
    "ApiFunction",
    "ArchivistFunction",
    "AuthorizerFunction",
    "CompactorFunction",
    "SweeperFunction",
]


def versions(*arguments: str) -> dict[str, str]:
    """Version by function: the logical id, a new one of which is a new version."""
    resources = translated(*arguments)["Resources"]
    return {
        one["Properties"]["FunctionName"]["Ref"]: name
        for name, one in of_type(resources, "AWS::Lambda::Version").items()
    }


def test_a_new_release_is_a_new_version_of_every_function() -> None:
    first, second = versions("--release", "a" * 64), versions("--release", "b" * 64)
    assert sorted(first) == sorted(second) == FUNCTIONS
    assert not set(first.values()) & set(second.values())
    assert versions("--release", "a" * 64) == first


def test_everything_calls_the_alias() -> None:
    resources = translated()["Resources"]
    aliases = {
        one["Properties"]["FunctionName"]["Ref"]: name
        for name, one in of_type(resources, "AWS::Lambda::Alias").items()
    }
    assert sorted(aliases) == FUNCTIONS
    for kind in (
        "AWS::Lambda::EventSourceMapping",
        "AWS::Lambda::Permission",
        "AWS::Scheduler::Schedule",
    ):
        found = of_type(resources, kind)
        assert found, kind
        for name, one in found.items():
            assert references(one["Properties"]) & set(aliases.values()), name
    (api,) = of_type(resources, "AWS::ApiGateway::RestApi").values()
    assert "${ApiFunctionAliaslive}" in str(api["Properties"]["Body"])


def test_old_versions_stay_so_that_a_release_can_be_taken_back() -> None:
    for one in of_type(translated()["Resources"], "AWS::Lambda::Version").values():
        assert one["DeletionPolicy"] == "Retain"


def test_only_production_shifts_requests_step_by_step() -> None:
    plain, production = translated()["Resources"], translated("Production=true")["Resources"]
    assert not [one for one in plain.values() if one["Type"].startswith("AWS::CodeDeploy")]
    (group,) = of_type(production, "AWS::CodeDeploy::DeploymentGroup").values()
    assert "Canary10Percent5Minutes" in str(group["Properties"]["DeploymentConfigName"])
    assert "DEPLOYMENT_STOP_ON_ALARM" in str(group["Properties"]["AutoRollbackConfiguration"])
    condition, alarms, _ = group["Properties"]["AlarmConfiguration"]["Fn::If"]
    assert condition == "IsObserved"
    assert len(alarms["Alarms"]) == 2
    assert "UpdatePolicy" in production["ApiFunctionAliaslive"]
    assert "UpdatePolicy" not in plain["ApiFunctionAliaslive"]


def test_only_the_api_starts_from_a_snapshot_and_only_in_production() -> None:
    resources = translated()["Resources"]
    for name in FUNCTIONS:
        snapshot = resources[name]["Properties"].get("SnapStart")
        if name == "ApiFunction":
            assert snapshot == {
                "ApplyOn": {"Fn::If": ["InProduction", "PublishedVersions", "None"]}
            }
        else:
            assert snapshot is None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("functions", "layers"):
        ignored = shutil.ignore_patterns("__pycache__", "vocabulary")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    (tmp_path / "infra").mkdir()
    for name in ("infra/observability.yaml", "template.yaml", "samconfig.toml"):
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "functions/api/app.py",
        "layers/core/turnfold/domain/limits.py",
        "layers/deps/requirements.txt",
        "layers/deps/prune.py",
        "template.yaml",
        "samconfig.toml",
    ],
)
def test_every_change_is_a_new_release(checkout: Path, changed: str) -> None:
    before = release_digest(checkout)
    with (checkout / changed).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert release_digest(checkout) != before


def test_a_changed_setting_is_a_new_release_in_whatever_order(checkout: Path) -> None:
    given = release_digest(checkout, ["DefaultTailSize=3", "LogLevel=DEBUG"])
    assert given != release_digest(checkout)
    assert given == release_digest(checkout, ["LogLevel=DEBUG", "DefaultTailSize=3"])


def test_what_a_build_leaves_behind_is_no_change(checkout: Path) -> None:
    before = release_digest(checkout)
    for name in ("layers/core/turnfold/__pycache__/a.pyc", "layers/vocab/vocabulary/f"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    assert release_digest(checkout) == before


def test_every_function_is_stamped() -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert stamped(text, "d" * 64).count("d" * 64) == len(FUNCTIONS)
    with pytest.raises(ValueError, match="every function"):
        stamped(text.replace('AutoPublishCodeSha256: ""', "", 1), "d" * 64)


def test_a_plain_build_publishes_by_the_rule_of_sam(resources: dict[str, Any]) -> None:
    for name in FUNCTIONS:
        assert resources[name]["Properties"]["AutoPublishCodeSha256"] == ""
