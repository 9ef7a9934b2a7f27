"""The operator's defaults for sessions, from environment variables.

`TURNFOLD_DEFAULT_HEAD_SIZE` and so on, one for each setting, in capitals; lists are separated by
commas. What is absent or empty keeps the contract's default.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from turnfold.domain.errors import InvalidSettingsError
from turnfold.domain.settings import Settings, merge_settings

PREFIX = "TURNFOLD_DEFAULT_"


def default_settings(environment: Mapping[str, str]) -> Settings:
    """The defaults. Raises `InvalidSettingsError` naming the variable that is wrong."""
    settings = Settings()
    for one in fields(Settings):
        text = environment.get(f"{PREFIX}{one.name.upper()}", "").strip()
        if text:
            try:
                value = _value(text, getattr(settings, one.name))
                settings = merge_settings(settings, {one.name: value})
            except (InvalidSettingsError, ValueError) as error:
                raise InvalidSettingsError(f"{PREFIX}{one.name.upper()}: {error}") from error
    return settings


def _value(text: str, default: object) -> Any:  # noqa: ANN401 - as the setting's own type
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError("must be true or false")
        return text.lower() == "true"
    if isinstance(default, int):
        return int(text)
    if isinstance(default, tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(default, Mapping):
        return {"name": text}
    return text
