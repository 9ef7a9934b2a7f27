"""What a client of chat completions sent, told apart: its history, and what is new.

Some clients send only what is new, others the whole conversation each time. What a session has
already is recognised by its words, so that it is neither sent nor committed twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from turnfold.domain.errors import IncompleteTurnError, InvalidMessagesError
from turnfold.domain.message_rules import check_exchanges, check_turn, message_fault
from turnfold.domain.messages import Message, is_leading, split_leading, tool_calls
from turnfold.domain.transcript import canonical
from turnfold.domain.turns import Turn

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)

MAX_HISTORY_MESSAGES = 20_000
"""What a client may send with a request: its body has at most 10 MB."""


@dataclass(frozen=True, slots=True)
class ClientMessages:
    """What was sent: `system` messages, `history` and the `question` that is to be answered.

    `question_at` is the place of the question's first message in the request.
    """

    system: tuple[Message, ...]
    history: tuple[Message, ...]
    question: tuple[Message, ...]
    question_at: int


def read_client_messages(value: object) -> ClientMessages:
    """Tell the messages apart. The question begins with the last user messages in a row.

    An assistant message that says nothing is left out: a model that ran out of tokens leaves one in
    a client's history. Raises `InvalidMessagesError`.
    """
    if not isinstance(value, list) or not value:
        raise InvalidMessagesError([("messages", "must be a list of at least one message")])
    if len(value) > MAX_HISTORY_MESSAGES:
        msg = f"must hold at most {MAX_HISTORY_MESSAGES} messages"
        raise InvalidMessagesError([("messages", msg)])
    placed = [(at, one) for at, one in enumerate(value) if not _says_nothing(one)]
    faults = [fault for at, one in placed if (fault := message_fault(one, f"messages[{at}]"))]
    if faults:
        raise InvalidMessagesError(faults)
    system, conversation = split_leading([one for _, one in placed])
    places = [at for at, _ in placed[len(system) :]]
    for at, one in zip(places, conversation, strict=True):
        if is_leading(one):
            msg = "system and developer messages stand before all others"
            raise InvalidMessagesError([(f"messages[{at}]", msg)])
    if not conversation or conversation[-1]["role"] not in ("user", "tool"):
        msg = "must end with a user message or with the answers to all tool calls"
        raise InvalidMessagesError([("messages", msg)])
    start = _question_start(conversation)
    return ClientMessages(system, conversation[:start], conversation[start:], places[start])


def _says_nothing(message: Any) -> bool:  # noqa: ANN401 - not checked yet
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return False
    content = message.get("content")
    blank = content is None or (isinstance(content, str) and not content.strip())
    return blank and not (message.get("tool_calls") or message.get("refusal"))


def _question_start(conversation: Sequence[Message]) -> int:
    """Where the last user messages in a row begin; 0 if there are none, as after a tool call."""
    at = len(conversation)
    while at and conversation[at - 1]["role"] != "user":
        at -= 1
    while at and conversation[at - 1]["role"] == "user":
        at -= 1
    return at


class Known(NamedTuple):
    """The first `messages` of a client's history are known; they end with the session's `turn`."""

    messages: int = 0
    turn: int = 0


def known_through(history: Sequence[Message], turns: Sequence[Turn]) -> Known:
    """How much of a client's history the session has.

    A client repeats a conversation in order, so all up to the last turn that is recognised is
    known, also where turns before it were folded or are unknown here. Tool exchanges are not looked
    at, since clients leave them out of their histories. A history that was cut to its end may begin
    in the middle of a turn.
    """
    spoken = _spoken(history)
    words = [one for _, one in spoken]
    ends = ((_end_of(_turn_words(turn), words), turn.number) for turn in turns)
    end, number = max(ends, key=lambda one: one[0], default=(0, 0))
    return Known(spoken[end - 1][0] + 1, number) if end else Known()


def known_further(history: Sequence[Message], known: Known, turns: Sequence[Turn]) -> Known:
    """The same, where `turns` are those that follow the last known one.

    They were folded, so only the one before them could be recognised. A client that is behind, or
    begins each request with the same examples, repeats them in order.
    """
    spoken = _spoken(history[known.messages :])
    begin, at = known.messages, 0
    for turn in turns:
        words = _turn_words(turn)
        if [one for _, one in spoken[at : at + len(words)]] != words:
            break
        at += len(words)
        known = Known(begin + spoken[at - 1][0] + 1, turn.number)
    return known


def _spoken(history: Sequence[Message]) -> list[tuple[int, tuple[str, bytes]]]:
    """The words of what was spoken, with their places."""
    return [(at, _words(one)) for at, one in enumerate(history) if _is_spoken(one)]


def _end_of(turn: list[tuple[str, bytes]], words: list[tuple[str, bytes]]) -> int:
    """Where the turn ends in those words; 0 if it does not occur."""
    for end in range(len(words), 0, -1):
        length = min(len(turn), end)
        whole = length == len(turn) or end == length
        if length and whole and words[end - length : end] == turn[-length:]:
            return end
    return 0


def _turn_words(turn: Turn) -> list[tuple[str, bytes]]:
    return [_words(one) for one in turn.conversation if _is_spoken(one)]


def _is_spoken(message: Message) -> bool:
    return message["role"] in ("user", "assistant") and not tool_calls(message)


def _words(message: Message) -> tuple[str, bytes]:
    """Role and content; a text and a list of one text are the same.

    Blanks around a text do not count, nor does what a model thought before it spoke: many clients
    keep neither.
    """
    content = message.get("content") or message.get("refusal")
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        content = content[0]["text"]
    if isinstance(content, str):
        content = _THOUGHTS.sub("", content).strip()
    return message["role"], canonical(content)


def new_turns(history: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """The turns of a history that the session does not have.

    What an assistant said before the first user message belongs to no turn and is left out. Raises
    `IncompleteTurnError` for a turn without its answer, or for a call or a result without its
    other half, which no provider takes.
    """
    starts = [
        at
        for at, one in enumerate(history)
        if one["role"] == "user" and (at == 0 or history[at - 1]["role"] != "user")
    ]
    turns = tuple(tuple(history[a:b]) for a, b in pairwise([*starts, len(history)]))
    try:
        before = history[: starts[0]] if starts else history
        if check_exchanges(before):
            raise IncompleteTurnError([("messages", "tool calls have no answer")])
        for turn in turns:
            check_turn(turn)
    except InvalidMessagesError as error:
        msg = f"a turn before the last user message is not finished: {error.errors[0][1]}"
        raise IncompleteTurnError([("messages", msg)]) from None
    return turns


def continued(begun: Sequence[Message], question: Sequence[Message]) -> tuple[Message, ...] | None:
    """What a question adds to an open turn; None if it begins another turn.

    Clients repeat the open turn, or a part of its end, or send only the answers to its calls.
    """
    ours, theirs = [_form(one) for one in begun], [_form(one) for one in question]
    for length in range(min(len(ours), len(theirs)), 0, -1):
        if ours[-length:] == theirs[:length]:
            return tuple(question[length:])
    return None if question[0]["role"] == "user" else tuple(question)


def _form(message: Message) -> object:
    calls = [one["id"] for one in tool_calls(message)]
    # What a model says beside its calls is lost by many clients; the ids tell the message.
    return calls or (*_words(message), message.get("tool_call_id"))


def check_answerable(conversation: Sequence[Message], question: ClientMessages) -> None:
    """Raise `InvalidMessagesError` unless a model can answer the turn so far."""
    offset = question.question_at + len(question.question) - len(conversation)
    if conversation[0]["role"] != "user":
        msg = "answers nothing: no open turn waits for it, and no user message stands before it"
        raise InvalidMessagesError([(f"messages[{question.question_at}]", msg)])
    open_ids = check_exchanges(conversation, offset=offset)
    if open_ids:
        msg = "must end with a user message or with the answers to all tool calls"
        raise InvalidMessagesError([("messages", msg)])
