"""Sizes of turns in tokens, counted no more often than needed."""

from collections.abc import Iterable

from turnfold.domain.messages import chat_form
from turnfold.domain.tokens import CountText, count_messages
from turnfold.domain.turns import Turn


class Measure:
    """Counts turns as a prompt shows them; remembers each turn for as long as it lives itself."""

    def __init__(self, count: CountText) -> None:
        """Count texts by `count`."""
        self.count = count
        self._tokens: dict[str, int] = {}

    def tokens(self, turn: Turn) -> int:
        """Tokens of a turn's conversation, without the cost of the list."""
        known = self._tokens.get(turn.turn_id)
        if known is None:
            known = count_messages((chat_form(one) for one in turn.conversation), self.count)
            self._tokens[turn.turn_id] = known
        return known

    def exceeds(self, turns: Iterable[Turn], limit: int) -> bool:
        """Whether the turns together cost strictly more than `limit` tokens.

        A byte is never less than a token, so when the bytes fit nothing is counted, and no
        tokenizer is loaded.
        """
        turns = tuple(turns)
        if sum(turn.byte_bound for turn in turns) <= limit:
            return False
        return sum(self.tokens(turn) for turn in turns) > limit
