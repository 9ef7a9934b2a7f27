"""The options of policies: what kinds there are, and how they are read from JSON or a query."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from turnfold.domain.errors import InvalidPolicyError


class OptionKind(Enum):
    """What an option holds, as a word for error texts."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"
    WORDS = "a list of words"
    POLICIES = "a list of policies"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Option:
    """An option by its name, its kind, and other names for it. `null` may stand for "not set"."""

    name: str
    kind: OptionKind
    aliases: tuple[str, ...] = ()
    nullable: bool = False


def read_options(
    policy: str, options: Sequence[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The given options by their own names, each of its kind.

    Raises `InvalidPolicyError` for an option that the policy does not have, for one that is given
    twice under two names, and for a value of another kind; the text names the allowed ones.
    """
    by_name = {name: one for one in options for name in (one.name, *one.aliases)}
    unknown = next((name for name in given if name not in by_name), None)
    if unknown is not None:
        allowed = ", ".join(one.name for one in options) or "none"
        shown = str(unknown)[:64]
        raise InvalidPolicyError(f"{policy} has no option {shown!r}; its options are {allowed}")
    read: dict[str, Any] = {}
    for name, value in given.items():
        option = by_name[name]
        if option.name in read:
            raise InvalidPolicyError(f"{policy}: {name} says {option.name} a second time")
        read[option.name] = _checked(policy, option, value)
    return read


def _checked(policy: str, option: Option, value: object) -> object:
    if value is None and option.nullable:
        return None
    if not _is_of(option.kind, value):
        raise InvalidPolicyError(f"{policy}: {option.name} must be {option.kind.value}")
    return tuple(value) if isinstance(value, list) else value


def _is_of(kind: OptionKind, value: object) -> bool:
    match kind:
        case OptionKind.WHOLE:
            return type(value) is int
        case OptionKind.NUMBER:
            return type(value) is int or (type(value) is float and math.isfinite(value))
        case OptionKind.FLAG:
            return type(value) is bool
        case OptionKind.WORDS:
            return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        case OptionKind.POLICIES:
            return isinstance(value, list | tuple)
        case OptionKind.ANY:
            return True


def options_from_text(options: Sequence[Option], given: Mapping[str, str]) -> dict[str, Any]:
    """Options as a query string gives them: numbers, `true` and `false`, words after commas.

    What is not of its option's kind stays a text, for `read_options` to refuse.
    """
    kinds = {name: one.kind for one in options for name in (one.name, *one.aliases)}
    return {name: _from_text(kinds.get(name), text) for name, text in given.items()}


def _from_text(kind: OptionKind | None, text: str) -> object:
    try:
        match kind:
            case OptionKind.WHOLE:
                return int(text)
            case OptionKind.NUMBER:
                return float(text)
            case OptionKind.FLAG:
                return {"true": True, "false": False}.get(text, text)
            case OptionKind.WORDS:
                return [one for one in text.split(",") if one]
    except ValueError:
        return text
    return text


def at_least(policy: str, name: str, value: object, least: int) -> int:
    """A whole number of at least that; raises `InvalidPolicyError`."""
    if type(value) is not int or value < least:
        raise InvalidPolicyError(f"{policy}: {name} must be a whole number of at least {least}")
    return value


def above_zero(policy: str, name: str, value: object) -> float:
    """A finite number above 0; raises `InvalidPolicyError`."""
    if isinstance(value, int | float) and _is_of(OptionKind.NUMBER, value) and value > 0:
        return value
    raise InvalidPolicyError(f"{policy}: {name} must be a number above 0")
