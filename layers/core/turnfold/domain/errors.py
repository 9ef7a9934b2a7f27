"""Every error of Turnfold, as one tree.

    TurnfoldError
    ├── BadJsonError                      the body is no JSON that can be stored
    ├── InvalidDoorbellError              a queue message that no doorbell wrote
    ├── InvalidInputError                 the caller has to change the request
    │   ├── InvalidMessagesError          a message is malformed; carries (loc, msg) pairs
    │   │   ├── IncompleteTurnError       well-formed, but not a finished turn
    │   │   └── InvalidImportError        nothing of an import can be taken
    │   ├── InvalidIdError                a session or user id is blank, too long or has controls
    │   ├── InvalidSettingsError          a setting is unknown or out of range
    │   ├── InvalidPolicyError            a policy or one of its options is unknown or out of range
    │   ├── InvalidPinError               a pin's text or status cannot be taken
    │   ├── InvalidCursorError            a page cursor was not made by this service
    │   ├── BudgetTooSmallError           the parts that are never dropped exceed the budget
    │   ├── IdempotencyMismatchError      the key was used before with another body
    │   ├── UserMismatchError             the session belongs to another user id
    │   ├── TurnTooLargeError             over the size limit of one turn
    │   └── ContextTooLargeError          over what one answer can carry
    ├── NotFoundError
    │   ├── SessionNotFoundError
    │   ├── TurnNotFoundError
    │   ├── UserNotFoundError
    │   ├── ErasureNotFoundError
    │   ├── PinNotFoundError
    │   └── OpenTurnNotFoundError
    ├── ConflictError
    │   ├── CommitConflictError           another commit was faster; try again
    │   ├── SessionErasingError           the session is being erased; wait
    │   ├── LegalHoldError                the session may not be erased
    │   ├── PinFoldedError                another pin says now what this one said
    │   ├── SessionExistsError            a copy needs an id that is not in use
    │   └── StaleEtagError                If-Match does not hold any more
    ├── ModelError
    │   ├── ModelFailedError              the upstream model failed, with its status where known
    │   │   └── ModelRefusedError         it does not take this very request; with its words
    │   ├── ModelNotConfiguredError       there is no model to ask
    │   └── RejectedAnswerError           the model answered, but the answer must not be used
    └── StoreError
        ├── StoreUnavailableError         a store did not answer; nothing is known to be written
        │   └── VectorsUnavailableError   the vector index cannot be used, now or with this model
        ├── ThrottledError                a store asked to slow down
        ├── DamagedRecordError            a record of the transcript cannot be read
        └── GuardFailedError              a conditional write lost against another writer

`GuardFailedError` never reaches a user: use cases turn it into a conflict or read again. Nor does
`RejectedAnswerError`: they ask once more or do without the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class TurnfoldError(Exception):
    """The root of the tree."""


class BadJsonError(TurnfoldError):
    """The body is not JSON that can be stored; the text says why."""


class InvalidDoorbellError(TurnfoldError):
    """A queue message that no doorbell wrote; it can only be thrown away."""


class InvalidInputError(TurnfoldError):
    """The request was understood but cannot be taken; the text says what to change."""


class InvalidMessagesError(InvalidInputError):
    """One or more messages are malformed.

    `errors` pairs the place of each fault with what to change. No text of a message is repeated.
    """

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        """Keep the faults; the first becomes the error's text."""
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{loc}: {msg}" for loc, msg in self.errors[:3]))


class IncompleteTurnError(InvalidMessagesError):
    """The messages are well-formed, but an answer is missing."""


class InvalidImportError(InvalidMessagesError):
    """Nothing of an import can be taken, so nothing was stored; the places are its lines."""


class InvalidIdError(InvalidInputError, ValueError):
    """A session or user id must have 1 to 256 characters, not blank, without controls."""


class InvalidSettingsError(InvalidInputError):
    """A setting is unknown or out of range; the text names the allowed ones."""


class InvalidPolicyError(InvalidInputError, ValueError):
    """A context policy or one of its options is unknown or out of range."""


class InvalidPinError(InvalidInputError):
    """A pin cannot be taken as it is."""


class InvalidCursorError(InvalidInputError):
    """The cursor is not one that this service handed out for this list."""


class BudgetTooSmallError(InvalidInputError):
    """What is never dropped needs `needed` tokens, more than the `budget`."""

    def __init__(self, needed: int, budget: int, what: str) -> None:
        """Say what does not fit and how many tokens it would take."""
        self.needed = needed
        self.budget = budget
        super().__init__(f"{what} needs {needed} tokens, max_tokens is {budget}")


class IdempotencyMismatchError(InvalidInputError):
    """The Idempotency-Key was used before with another body."""


class UserMismatchError(InvalidInputError):
    """A session's user id is set once; another value is refused."""


class TurnTooLargeError(InvalidInputError):
    """A turn is over the size limit."""


class ContextTooLargeError(InvalidInputError):
    """A context without a budget is over what one answer can carry."""


class NotFoundError(TurnfoldError):
    """Unknown in this tenant."""


class SessionNotFoundError(NotFoundError):
    """No such session in this tenant."""


class TurnNotFoundError(NotFoundError):
    """The session has no turn of that number."""


class UserNotFoundError(NotFoundError):
    """No session in this tenant belongs to that user."""


class ErasureNotFoundError(NotFoundError):
    """No such erasure in this tenant."""


class PinNotFoundError(NotFoundError):
    """The session has no such pin."""


class OpenTurnNotFoundError(NotFoundError):
    """The session has no open turn, or its time is over."""


class ConflictError(TurnfoldError):
    """The state moved; the caller may try again."""


class CommitConflictError(ConflictError):
    """Other commits were faster several times in a row. Nothing was stored; try again."""


class SessionErasingError(ConflictError):
    """The session is being erased; writes wait until that is done."""

    def __init__(
        self, said: str = "the session is being erased; try again when that is done"
    ) -> None:
        """Say so, or that it is done already."""
        super().__init__(said)


class SessionExistsError(ConflictError):
    """There is a session of that id already, so nothing can be copied to it."""


class LegalHoldError(ConflictError):
    """The session is under a legal hold, so it may not be erased; nothing was removed."""


class PinFoldedError(ConflictError):
    """The pin was folded into another, whose text would go on saying it; the text names that."""


class StaleEtagError(ConflictError):
    """The state named by If-Match is not the current one."""


class ModelError(TurnfoldError):
    """The language model could not be used."""


REFUSED_STATUSES = (400, 413, 422)


class ModelFailedError(ModelError):
    """The model gave no usable answer. `status` is the upstream's HTTP status, if any."""

    def __init__(self, reason: str, status: int | None = None, *, passing: bool = False) -> None:
        """Keep a reason without any text of the conversation.

        `passing` says that the same request may well do a little later.
        """
        self.status = status
        self.passing = passing
        super().__init__(reason if status is None else f"{reason} (upstream status {status})")

    @property
    def refused_request(self) -> bool:
        """Whether the endpoint answered that it does not take this very request.

        Its content was filtered or is too long, so another request may well be answered.
        """
        return self.status in REFUSED_STATUSES


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an endpoint said when it refused a request. `message` may quote what the caller wrote.

    So it is for that caller alone, and for no log.
    """

    message: str
    kind: str | None = None
    code: str | None = None
    param: str | None = None
    retry_after: str | None = None


class ModelRefusedError(ModelFailedError):
    """The endpoint does not take this very request, or not now; `refusal` is for the caller."""

    def __init__(self, reason: str, status: int, refusal: Refusal) -> None:
        """Keep the reason, which quotes nobody, apart from what the endpoint said."""
        self.refusal = refusal
        super().__init__(reason, status)


class ModelNotConfiguredError(ModelError):
    """No model is set up."""

    def __init__(self, said: str = "no chat model is set up; set OPENAI_API_KEY") -> None:
        """Say what is missing: the chat model, or another one."""
        super().__init__(said)


class RejectedAnswerError(ModelError):
    """An answer of the model must not be used. `reason` is one stable word for logs.

    The words: "finish" (it did not end normally), "refusal", "blank", "echo" (of the prompt),
    "encoded" (base64), "too_long", "not_shorter" (than its source), "language" (another one than
    the source's), "schema" (not JSON of the shape that was asked for), "coverage" (a pin is lost or
    folded twice), "not_fewer" (as many pins as before), "unsafe" (it instructs
    a model, or holds a secret).
    """

    def __init__(self, reason: str) -> None:
        """Keep the word; no text of the answer is repeated."""
        self.reason = reason
        super().__init__(f"the model's answer was rejected: {reason}")


class StoreError(TurnfoldError):
    """A store could not do what was asked."""


class StoreUnavailableError(StoreError):
    """A store did not answer. `retry_after` is a wish in seconds."""

    retry_after = 1


class VectorsUnavailableError(StoreUnavailableError):
    """The vector index is absent, is being built, or holds vectors of other dimensions."""


class ThrottledError(StoreError):
    """A store asked to slow down. `retry_after` is a wish in seconds."""

    retry_after = 1


class DamagedRecordError(StoreError):
    """A record of the transcript was changed, or is missing; `verify` names it."""


class GuardFailedError(StoreError):
    """A conditional write lost. `failed` names the parts whose condition did not hold."""

    def __init__(self, *failed: str) -> None:
        """Name the parts of the write whose condition failed."""
        self.failed = frozenset(failed)
        super().__init__(f"condition failed: {', '.join(sorted(failed))}")
