"""The settings of a session: names, defaults and bounds (api.md, "settings")."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from turnfold.domain.errors import InvalidSettingsError
from turnfold.domain.policies.registry import check_policy

STRATEGIES = (
    "PIN_JUDGMENT",
    "CURRENT_ROUND_SUMMARIZATION",
    "HISTORY_SUMMARIZATION",
    "PIN_AGGREGATION",
)
SCHEDULES = ("tiered", "whole")
PIN_MODES = ("async", "sync", "off")
MEMORY_ROLES = ("system", "developer", "user")

MAX_MODEL_NAME = 200

BOUNDS = {
    "head_size": (1, 100),
    "tail_size": (1, 100),
    "window_max_size": (1, 1000),
    "window_token_threshold": (100, 1_000_000),
    "round_token_threshold": (1, 1_000_000),
    "max_pin_count": (1, 100),
    "max_pin_tokens": (20, 100_000),
    "expire_days": (1, 3650),
}
CHOICES = {"schedule": SCHEDULES, "pin_mode": PIN_MODES, "memory_role": MEMORY_ROLES}


@dataclass(frozen=True, slots=True)
class Settings:
    """How one session is kept. Sizes of head and tail are turns, of the window messages."""

    policy: Mapping[str, Any] = field(default_factory=lambda: {"name": "progressive"})
    head_size: int = 1
    tail_size: int = 2
    window_max_size: int = 5
    window_token_threshold: int = 3000
    round_token_threshold: int = 1000
    max_pin_count: int = 10
    max_pin_tokens: int = 300
    expire_days: int = 7
    schedule: str = "tiered"
    pin_mode: str = "async"
    auto_compression: bool = True
    strategies: tuple[str, ...] = STRATEGIES
    memory_role: str = "system"
    model: str | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InvalidSettingsError(f"{name} must be a whole number from {low} to {high}")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InvalidSettingsError(f"{name} must be one of {', '.join(allowed)}")
        if type(self.auto_compression) is not bool:
            raise InvalidSettingsError("auto_compression must be true or false")
        if not set(self.strategies) <= set(STRATEGIES):
            raise InvalidSettingsError(f"strategies may hold {', '.join(STRATEGIES)}")
        if self.model is not None and not _is_name(self.model):
            raise InvalidSettingsError("model must be a name of 1 to 200 characters, or null")

    @property
    def judges_pins(self) -> bool:
        """Whether turns are judged for pins at all."""
        return self.pin_mode != "off" and "PIN_JUDGMENT" in self.strategies

    @property
    def judges_at_once(self) -> bool:
        """Whether the request that commits a turn judges it."""
        return self.judges_pins and self.pin_mode == "sync"

    def to_json(self) -> dict[str, Any]:
        """The settings as the contract shows them."""
        return asdict(self) | {"policy": dict(self.policy), "strategies": list(self.strategies)}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_MODEL_NAME


def merge_settings(base: Settings, changes: object) -> Settings:
    """`base` with some settings changed.

    Raises `InvalidSettingsError` for a name that does not exist or a value out of range, and what
    `check_policy` says.
    """
    if not isinstance(changes, Mapping):
        raise InvalidSettingsError("settings must be an object")
    known = [one.name for one in fields(Settings)]
    if any(name not in known for name in changes):
        raise InvalidSettingsError(f"unknown setting; the settings are {', '.join(known)}")
    values = dict(changes)
    if "policy" in values:
        values["policy"] = check_policy(values["policy"])
    if "strategies" in values:
        if not isinstance(values["strategies"], list | tuple) or not all(
            isinstance(one, str) for one in values["strategies"]
        ):
            raise InvalidSettingsError(f"strategies must be a list of {', '.join(STRATEGIES)}")
        values["strategies"] = tuple(values["strategies"])
    return replace(base, **values)
