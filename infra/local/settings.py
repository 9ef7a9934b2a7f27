"""What the local stack is told by its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "us-east-1"
ACCOUNT = "000000000000"
LOOPBACK = "127.0.0.1"


PARAMETERS = {
    "TURNFOLD_EMBEDDING_DIMENSIONS": "EmbeddingDimensions",
    "TURNFOLD_VECTOR_INDEX": "VectorIndex",
}
"""Variables of the functions that the table's definition needs to know, as parameters."""

LOCAL_PARAMETERS = {"VectorIndex": "false"}
"""Parameters with another default here: the emulator compares vectors one by one, in Python."""


class SettingsError(Exception):
    """A variable holds something that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """The local stack's settings, with paths made absolute."""

    port: int
    data: Path
    ministack: Path
    functions: Path
    template: Path
    sweep_seconds: float
    parameters: Mapping[str, str] = field(default_factory=dict)
    shutdown_seconds: float = 10.0
    api_environments: int = 6
    compactor_environments: int = 3
    archivist_environments: int = 2

    @property
    def key_file(self) -> Path:
        """Where the API keys of the local stack are."""
        return self.data / "keys.json"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from environment variables."""
        variables = os.environ if environment is None else environment
        root = REPOSITORY
        return cls(
            port=_number(variables, "PORT", 8787, low=0, high=65535),
            data=(root / (variables.get("TURNFOLD_DATA") or ".turnfold")).absolute(),
            ministack=root
            / (variables.get("TURNFOLD_MINISTACK") or ".venv-ministack/bin/ministack"),
            functions=root / (variables.get("TURNFOLD_FUNCTIONS") or "functions"),
            template=root / (variables.get("TURNFOLD_TEMPLATE") or "template.yaml"),
            sweep_seconds=_number(variables, "TURNFOLD_SWEEP_SECONDS", 60, low=1, high=86400),
            parameters=LOCAL_PARAMETERS
            | {
                parameter: variables[name]
                for name, parameter in PARAMETERS.items()
                if variables.get(name)
            },
        )


def _number(variables: Mapping[str, str], name: str, default: int, *, low: int, high: int) -> int:
    text = variables.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        message = f"{name} must be a whole number from {low} to {high}, not {text!r}"
        raise SettingsError(message)
    return int(text)
