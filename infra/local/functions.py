"""The functions of the template, with the variables they see."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.environments import Function
from infra.local.settings import LOOPBACK, REGION, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.definitions import Definitions, FunctionDefinition
    from infra.local.resources import Resources
    from infra.local.settings import Settings

API, COMPACTOR, SWEEPER = "ApiFunction", "CompactorFunction", "SweeperFunction"
ARCHIVIST = "ArchivistFunction"
SHORT_NAMES = {API: "api", COMPACTOR: "compactor", SWEEPER: "sweeper", ARCHIVIST: "archivist"}
# Variables of the person who starts the stack that go on to the functions.
PASSED_ON = ("OPENAI_", "TURNFOLD_", "POWERTOOLS_", "PYTHON", "LC_", "TZ")
ALWAYS_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# Settings of the stack itself, and a network path that a function must not take by accident.
KEPT_BACK = ("TURNFOLD_MINISTACK", "TURNFOLD_FUNCTIONS", "TURNFOLD_TEMPLATE", "PYTHONHOME")


def load_functions(
    definitions: Definitions, settings: Settings, resources: Resources, endpoint: str
) -> dict[str, Function]:
    """Describe every function that the local stack runs."""
    environment = stack_environment(settings, resources, endpoint)
    return {
        logical_id: _function(definitions.function(logical_id), settings, environment)
        for logical_id in SHORT_NAMES
    }


def stack_environment(settings: Settings, resources: Resources, endpoint: str) -> dict[str, str]:
    """The variables that name the emulated resources."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "TURNFOLD_TABLE": resources.table,
        "TURNFOLD_BUCKET": resources.bucket,
        "TURNFOLD_QUEUE_URL": resources.queue_url,
        "TURNFOLD_ARCHIVE_QUEUE_URL": resources.archive_queue_url,
        # Local requests take milliseconds, and nobody wants to wait for half a minute.
        "TURNFOLD_ERASURE_SETTLE_SECONDS": "1",
        "TURNFOLD_KEY_FILE": str(settings.key_file),
        "TIKTOKEN_CACHE_DIR": str(REPOSITORY / "layers" / "vocab" / "vocabulary"),
    }


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """What the functions see of the environment that the stack was started in."""
    kept = {
        name: value
        for name, value in environment.items()
        if name.startswith(PASSED_ON) or name in ALWAYS_PASSED_ON or name.upper() in PROXIES
    }
    for name in KEPT_BACK:
        kept.pop(name, None)
    own = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    kept["NO_PROXY"] = kept["no_proxy"] = ",".join(
        part for part in (own, LOOPBACK, "localhost") if part
    )
    return kept


def _function(
    definition: FunctionDefinition, settings: Settings, environment: Mapping[str, str]
) -> Function:
    name = SHORT_NAMES[definition.name]
    defaults = {
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": "Turnfold",
        "POWERTOOLS_TRACE_DISABLED": "true",
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
    }
    # An empty value is a parameter that the template leaves to the operator.
    deployed = {key: value for key, value in definition.environment.items() if value}
    paths = [str(REPOSITORY / "layers" / "core"), os.environ.get("PYTHONPATH", "")]
    variables = defaults | deployed | passed_on(os.environ) | dict(environment)
    variables |= {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(definition.memory_mb),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
    }
    return Function(
        name=name,
        code=str(_code_folder(definition.code, settings)),
        handler=definition.handler,
        timeout_seconds=float(definition.timeout_seconds),
        memory_mb=definition.memory_mb,
        variables=variables,
    )


def _code_folder(code: str, settings: Settings) -> Path:
    """The folder of the function's code; the functions' own folder can be another one in tests."""
    path = Path(code)
    if path.parts and path.parts[0] == "functions":
        return settings.functions.joinpath(*path.parts[1:])
    return settings.template.parent / path


def without_key(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the functions will find no key of a model provider."""
    return not (os.environ if environment is None else environment).get("OPENAI_API_KEY")
