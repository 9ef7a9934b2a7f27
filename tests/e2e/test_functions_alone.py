"""Every function as it was built, at Lambda's paths, on a read-only disk, in its memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from e2e.functions import (
    EVENTS_OF,
    built_functions,
    event,
    python_of_the_runtime,
    variables,
)
from e2e.stages import note, stage
from infra.deployed.alone import Alone, layered, obstacle, runtime_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.deployed.stack import DeployedStack

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(300)]

LIMIT_BYTES = 250 * 2**20
"""Lambda takes no more, unpacked, of a function with its layers."""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = obstacle()
    if reason:
        pytest.skip(f"functions cannot be run alone here: {reason}")
    return runtime_folder(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module")
def opt_of(
    stack: DeployedStack, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[str, ...]], Path]:
    """What a list of layers is at /opt; the same for functions with the same layers."""

    @cache
    def made(layers: tuple[str, ...]) -> Path:
        built = stack.sam.built
        return layered([built / layer for layer in layers], tmp_path_factory.mktemp("opt"))

    return made


def test_every_function_has_an_event(stack: DeployedStack) -> None:
    assert set(built_functions(stack.sam.built)) == set(EVENTS_OF)


@pytest.mark.parametrize(
    ("name", "occasion"), [(name, one) for name, events in EVENTS_OF.items() for one in events]
)
def test_a_function_runs_as_lambda_runs_it(
    stack: DeployedStack,
    runtime: Path,
    opt_of: Callable[[tuple[str, ...]], Path],
    tmp_path: Path,
    name: str,
    occasion: str,
) -> None:
    function = built_functions(stack.sam.built)[name]
    alone = Alone(
        function=stack.sam.built / name,
        opt=opt_of(function.layers),
        handler=function.handler,
        memory=function.memory,
        variables=variables(stack, name),
        runtime=runtime,
        python=python_of_the_runtime(),
    )
    with stage(f"{name} alone, {occasion}"):
        measured = alone.measure(event(occasion), tmp_path)
    answer = measured.answer
    note(
        f"  init {measured.init_milliseconds:.0f} ms, first call with it"
        f" {measured.cold_milliseconds:.0f} ms, second {measured.warm_milliseconds:.0f} ms,"
        f" peak {measured.peak_megabytes:.0f} MB of {function.memory}"
    )
    assert "errorMessage" not in answer, answer
    if name == "ApiFunction":
        assert answer["statusCode"] in {200, 201}, answer
    elif name == "AuthorizerFunction":
        assert answer["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    elif name == "SweeperFunction":
        assert answer["failed"] == 0
    else:
        assert answer == {"batchItemFailures": []}


def test_packages_are_small(stack: DeployedStack) -> None:
    built = stack.sam.built
    functions = built_functions(built)
    sizes = {
        folder.name: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        for folder in built.iterdir()
        if folder.is_dir()
    }
    for name, size in sorted(sizes.items()):
        note(f"{name}: {size / 2**20:.1f} MB unpacked")
    for function in functions.values():
        total = sizes[function.name] + sum(sizes[layer] for layer in function.layers)
        note(f"{function.name} with its layers: {total / 2**20:.1f} MB")
        assert total < LIMIT_BYTES
