"""Turnfold: conversation memory. The in-process library; each name is loaded when it is first used.

from turnfold import MemoryManager, SessionMemory
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnfold.application.condense import CallableCondenser
    from turnfold.application.message_store import MessageStore
    from turnfold.domain.estimators import (
        CallableEstimator,
        CharacterEstimator,
        Estimator,
        ExactEstimator,
        OverheadEstimator,
    )
    from turnfold.domain.policies.composite import CompositePolicy
    from turnfold.domain.policies.limit_count import LimitCountPolicy
    from turnfold.domain.policies.message_window import MessageWindowPolicy
    from turnfold.domain.policies.policy import Policy, PolicyInput, PolicyResult
    from turnfold.domain.policies.registry import PolicyKit, parse_policy, register_policy
    from turnfold.domain.policies.relevancy import RelevancyPolicy
    from turnfold.domain.policies.summarization import SummarizationPolicy
    from turnfold.domain.policies.time_window import TimeWindowPolicy
    from turnfold.domain.policies.token_limit import TokenLimitPolicy
    from turnfold.domain.policies.token_window import TokenWindowPolicy
    from turnfold.library.chat_memories import ChatMemories
    from turnfold.library.drivers import Driver, InMemoryDriver, StoreDriver
    from turnfold.library.memory_manager import MemoryManager
    from turnfold.library.message_history import MessageHistory
    from turnfold.library.session_memory import SessionMemory
    from turnfold.library.windows import MessageWindowMemory, TokenWindowMemory
    from turnfold.library.wiring import (
        aws_services,
        dynamo_messages,
        exact_estimator,
        file_messages,
        in_memory_messages,
        in_memory_services,
        policy_kit,
    )

_HOMES = {
    "turnfold.application.condense": ("CallableCondenser",),
    "turnfold.application.message_store": ("MessageStore",),
    "turnfold.domain.estimators": (
        "CallableEstimator",
        "CharacterEstimator",
        "Estimator",
        "ExactEstimator",
        "OverheadEstimator",
    ),
    "turnfold.domain.policies.composite": ("CompositePolicy",),
    "turnfold.domain.policies.limit_count": ("LimitCountPolicy",),
    "turnfold.domain.policies.message_window": ("MessageWindowPolicy",),
    "turnfold.domain.policies.policy": ("Policy", "PolicyInput", "PolicyResult"),
    "turnfold.domain.policies.registry": ("PolicyKit", "parse_policy", "register_policy"),
    "turnfold.domain.policies.relevancy": ("RelevancyPolicy",),
    "turnfold.domain.policies.summarization": ("SummarizationPolicy",),
    "turnfold.domain.policies.time_window": ("TimeWindowPolicy",),
    "turnfold.domain.policies.token_limit": ("TokenLimitPolicy",),
    "turnfold.domain.policies.token_window": ("TokenWindowPolicy",),
    "turnfold.library.chat_memories": ("ChatMemories",),
    "turnfold.library.drivers": ("Driver", "InMemoryDriver", "StoreDriver"),
    "turnfold.library.memory_manager": ("MemoryManager",),
    "turnfold.library.message_history": ("MessageHistory",),
    "turnfold.library.session_memory": ("SessionMemory",),
    "turnfold.library.windows": ("MessageWindowMemory", "TokenWindowMemory"),
    "turnfold.library.wiring": (
        "aws_services",
        "dynamo_messages",
        "exact_estimator",
        "file_messages",
        "in_memory_messages",
        "in_memory_services",
        "policy_kit",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CallableCondenser",
    "CallableEstimator",
    "CharacterEstimator",
    "ChatMemories",
    "CompositePolicy",
    "Driver",
    "Estimator",
    "ExactEstimator",
    "InMemoryDriver",
    "LimitCountPolicy",
    "MemoryManager",
    "MessageHistory",
    "MessageStore",
    "MessageWindowMemory",
    "MessageWindowPolicy",
    "OverheadEstimator",
    "Policy",
    "PolicyInput",
    "PolicyKit",
    "PolicyResult",
    "RelevancyPolicy",
    "SessionMemory",
    "StoreDriver",
    "SummarizationPolicy",
    "TimeWindowPolicy",
    "TokenLimitPolicy",
    "TokenWindowMemory",
    "TokenWindowPolicy",
    "aws_services",
    "dynamo_messages",
    "exact_estimator",
    "file_messages",
    "in_memory_messages",
    "in_memory_services",
    "parse_policy",
    "policy_kit",
    "register_policy",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'turnfold' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
