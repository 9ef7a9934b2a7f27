"""The policies by name, open to own classes, and how one is made from JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turnfold.domain.errors import InvalidPolicyError
from turnfold.domain.estimators import BY_CHARACTERS, Estimator
from turnfold.domain.policies.composite import CompositePolicy
from turnfold.domain.policies.lexical import BY_WORDS
from turnfold.domain.policies.limit_count import LimitCountPolicy
from turnfold.domain.policies.message_window import MessageWindowPolicy
from turnfold.domain.policies.options import Option, OptionKind, options_from_text, read_options
from turnfold.domain.policies.policy import Policy
from turnfold.domain.policies.relevancy import Relevance, RelevancyPolicy
from turnfold.domain.policies.summarization import Condenser, SummarizationPolicy
from turnfold.domain.policies.time_window import TimeWindowPolicy
from turnfold.domain.policies.token_limit import TokenLimitPolicy
from turnfold.domain.policies.token_window import TokenWindowPolicy

PROGRESSIVE = "progressive"
"""Working memory itself, assembled by regions: no policy over messages, so not made here."""

MAX_POLICIES = 10
MAX_DEPTH = 4
"""Policies of one composite, and composites inside one another; more are a mistake."""

SERVICE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "limit_count": {"keep_first_user_message": False},
    "token_limit": {"token_ratio": None},
}
"""Where the service's defaults are not Odin's: a limit gives the newest messages and nothing else
unless asked, and tokens are counted exactly."""


@dataclass(frozen=True, slots=True)
class PolicyKit:
    """What policies work with. `defaults` are options by policy name, used where none is given."""

    estimator: Estimator = BY_CHARACTERS
    relevance: Relevance = BY_WORDS
    condenser: Condenser | None = None
    memory_role: str = "system"
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


type Build = Callable[[Mapping[str, Any], PolicyKit], Policy]
"""Makes a policy of its options. May raise `InvalidPolicyError`."""


@dataclass(frozen=True, slots=True)
class _Entry:
    options: tuple[Option, ...]
    build: Build
    required: tuple[str, ...] = ()


_entries: dict[str, _Entry] = {
    "message_window": _Entry(
        MessageWindowPolicy.OPTIONS,
        lambda options, _kit: MessageWindowPolicy(**options),
        required=("max_messages",),
    ),
    "token_window": _Entry(
        TokenWindowPolicy.OPTIONS,
        lambda options, kit: TokenWindowPolicy(**options, estimator=kit.estimator),
        required=("max_tokens",),
    ),
    "token_limit": _Entry(
        TokenLimitPolicy.OPTIONS,
        lambda options, kit: TokenLimitPolicy(**options, estimator=kit.estimator),
    ),
    "limit_count": _Entry(
        LimitCountPolicy.OPTIONS, lambda options, _kit: LimitCountPolicy(**options)
    ),
    "time_window": _Entry(
        TimeWindowPolicy.OPTIONS, lambda options, _kit: TimeWindowPolicy(**options)
    ),
    "relevancy": _Entry(
        RelevancyPolicy.OPTIONS,
        lambda options, kit: RelevancyPolicy(**options, relevance=kit.relevance),
    ),
    "summarization": _Entry(
        SummarizationPolicy.OPTIONS,
        lambda options, kit: SummarizationPolicy(
            **options, condenser=kit.condenser, role=kit.memory_role
        ),
    ),
    "composite": _Entry(
        CompositePolicy.OPTIONS,
        lambda options, _kit: CompositePolicy(tuple(options["policies"])),
        required=("policies",),
    ),
}


def register_policy(name: str, build: Build, options: Sequence[str | Option] = ()) -> None:
    """Let a policy of one's own be named wherever policies are.

    `build` gets the options and a `PolicyKit`. Of an `Option` the kind is checked before, of an
    option given by its name it is not: `build` says what it takes. A name that is in use raises
    `ValueError`.
    """
    if name in _entries or name == PROGRESSIVE:
        raise ValueError(f"there is a policy {name!r} already")
    if not name.strip():
        raise ValueError("a policy needs a name")
    known = tuple(Option(one, OptionKind.ANY) if isinstance(one, str) else one for one in options)
    _entries[name] = _Entry(known, build)


def unregister_policy(name: str) -> None:
    """Forget a policy of one's own, for tests."""
    _entries.pop(name, None)


def policy_names() -> tuple[str, ...]:
    """All names that `policy` may have."""
    return (PROGRESSIVE, *_entries)


def parse_policy(spec: object, kit: PolicyKit | None = None) -> Policy:
    """The policy of a JSON object with `name` and options, or of a name alone.

    Raises `InvalidPolicyError` naming the allowed ones for an unknown name, an unknown or missing
    option, and an option of another kind or out of range.
    """
    return _parse(spec, kit or PolicyKit(), MAX_DEPTH)


def check_policy(spec: object) -> dict[str, Any]:
    """The policy as an object, if it can be made; `progressive` has no options.

    Raises `InvalidPolicyError` as `parse_policy` does.
    """
    policy = _as_object(spec)
    if policy["name"] != PROGRESSIVE:
        parse_policy(policy)
    elif len(policy) > 1:
        raise InvalidPolicyError(f"{PROGRESSIVE} has no options")
    return policy


def policy_from_query(name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The policy that a query string names, its options as texts. `progressive` takes none.

    Raises `InvalidPolicyError` for an unknown name; options are checked by `parse_policy`.
    """
    if name == PROGRESSIVE:
        return {"name": name}
    options = _entry(name).options
    known = {one for option in options for one in (option.name, *option.aliases)}
    asked = {key: text for key, text in parameters.items() if key in known}
    return {"name": name, **options_from_text(options, asked)}


def _parse(spec: object, kit: PolicyKit, depth: int) -> Policy:
    policy = _as_object(spec)
    name = policy.pop("name")
    entry = _entry(name)
    options = {**kit.defaults.get(name, {}), **read_options(name, entry.options, policy)}
    missing = [one for one in entry.required if one not in options]
    if missing:
        raise InvalidPolicyError(f"{name} needs {', '.join(missing)}")
    if name == CompositePolicy.name:
        options["policies"] = _parts(options["policies"], kit, depth)
    return entry.build(options, kit)


def _parts(specs: Sequence[object], kit: PolicyKit, depth: int) -> list[Policy]:
    if len(specs) > MAX_POLICIES or depth <= 1:
        raise InvalidPolicyError(
            f"composite may hold {MAX_POLICIES} policies, and others in {MAX_DEPTH} levels"
        )
    return [_parse(one, kit, depth - 1) for one in specs]


def _entry(name: str) -> _Entry:
    entry = _entries.get(name)
    if entry is None:
        names = ", ".join(_entries)
        raise InvalidPolicyError(f"unknown policy {name[:64]!r}; the policies are {names}")
    return entry


def _as_object(spec: object) -> dict[str, Any]:
    if isinstance(spec, str):
        return {"name": spec}
    if not isinstance(spec, Mapping):
        raise InvalidPolicyError("a policy must be an object with a name")
    name = spec.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidPolicyError(f"a policy needs a name: one of {', '.join(policy_names())}")
    return dict(spec)
