"""Several policies, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turnfold.domain.policies.draft import Draft
from turnfold.domain.policies.options import Option, OptionKind
from turnfold.domain.policies.policy import Policy, PolicyInput, PolicyResult, Reach


@dataclass(frozen=True, slots=True)
class CompositePolicy:
    """Applies its policies in order, each to what the one before it left. Flags add up."""

    policies: Sequence[Policy] = ()

    name: ClassVar[str] = "composite"
    OPTIONS: ClassVar[tuple[Option, ...]] = (Option("policies", OptionKind.POLICIES),)

    @property
    def reach(self) -> Reach:
        """See `Policy`. What the first policy cannot reach, no later one sees."""
        return self.policies[0].reach if self.policies else Reach()

    def options(self) -> dict[str, Any]:
        """See `Policy`."""
        return {"policies": [{"name": one.name, **one.options()} for one in self.policies]}

    def apply(self, given: PolicyInput) -> PolicyResult:
        """See `Policy`."""
        result = Draft(given).result()
        for policy in self.policies:
            result = _after(given, result, policy)
        return result


def _after(given: PolicyInput, so_far: PolicyResult, policy: Policy) -> PolicyResult:
    """What a policy makes of the result of the ones before it, told in places of the input."""
    origins = so_far.origins
    protected = given.protected_from
    if protected is not None:
        protected = sum(origin is None or origin < protected for origin in origins)
    times = given.times and [None if one is None else given.times[one] for one in origins]
    step = policy.apply(
        replace(given, messages=so_far.messages, times=times, protected_from=protected)
    )
    return PolicyResult(
        messages=step.messages,
        origins=tuple(None if one is None else origins[one] for one in step.origins),
        size=len(given.messages),
        flags=so_far.flags | step.flags,
    )
