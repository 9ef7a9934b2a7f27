"""A driver and an optional policy: Odin's memory manager."""

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self

from turnfold.domain.messages import Message, is_leading
from turnfold.domain.policies.policy import Policy, PolicyInput
from turnfold.domain.policies.registry import PolicyKit, parse_policy
from turnfold.library.drivers import Driver, InMemoryDriver

type PolicyLike = Policy | Mapping[str, Any] | str | None
"""A policy, or what names one: `{"name": "limit_count", "max_count": 20}`."""


class MemoryManager:
    """Keeps messages in a driver and shows them through a policy.

    The policy never touches what the driver keeps. Its result is kept until something changes.
    Messages without a `created_at` are stamped with the time when they are added, which the time
    window policy goes by.
    """

    def __init__(
        self,
        driver: Driver | None = None,
        policy: PolicyLike = None,
        *,
        kit: PolicyKit | None = None,
    ) -> None:
        """Without a driver the messages live in this process.

        `kit` gives policies named by words what they work with: an estimator, a relevance, a
        condenser. Raises `InvalidPolicyError` (a `ValueError`) for a policy that cannot be made.
        """
        self._driver: Driver = InMemoryDriver() if driver is None else driver
        self._kit = kit or PolicyKit()
        self._policy = self._made(policy)
        self._processed: list[Message] | None = None

    @property
    def policy(self) -> Policy | None:
        """The policy, if there is one."""
        return self._policy

    def add(self, message: Message) -> Self:
        """Append a message; a system message goes to its own list."""
        if is_leading(message):
            return self.add_system(message)
        self._driver.add_message(_stamped(message))
        return self._changed()

    def add_system(self, message: Message) -> Self:
        """Append a system message. All are kept, and none is dropped by a policy."""
        self._driver.add_system_message(message)
        return self._changed()

    def messages(self) -> list[Message]:
        """All ordinary messages, whatever the policy."""
        return self._driver.get_messages()

    def system_messages(self) -> list[Message]:
        """All system messages."""
        return self._driver.get_system_messages()

    def processed_messages(self) -> list[Message]:
        """The system messages, then the ordinary ones, through the policy."""
        if self._processed is None:
            messages = [*self.system_messages(), *self.messages()]
            if self._policy is not None:
                messages = list(self._policy.apply(PolicyInput(messages)).messages)
            self._processed = messages
        return copy.deepcopy(self._processed)

    def clear(self) -> Self:
        """Forget all messages."""
        self._driver.clear()
        return self._changed()

    def set_policy(self, policy: PolicyLike) -> Self:
        """Use another policy, or none. Raises `InvalidPolicyError`."""
        self._policy = self._made(policy)
        return self._changed()

    def apply_policy(self) -> Self:
        """Run the policy now, although nothing has changed."""
        self._changed()
        self.processed_messages()
        return self

    def _changed(self) -> Self:
        self._processed = None
        return self

    def _made(self, policy: PolicyLike) -> Policy | None:
        if isinstance(policy, str | Mapping):
            return parse_policy(policy, self._kit)
        return policy


def _stamped(message: Message) -> Message:
    if "created_at" in message:
        return message
    return {**message, "created_at": datetime.now(UTC).isoformat()}
