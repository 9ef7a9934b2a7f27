"""The limits of the service, each with its reason. Emulators enforce none, so our code does."""

MAX_TURN_BYTES = 1024 * 1024
"""Serialised messages of one turn. API Gateway takes 10 MB, but a context has to be answered within
Lambda's 6 MB, with several turns in it."""

MAX_TURN_MESSAGES = 500
"""Messages of one turn: far above any agent's loop, and few enough to check in milliseconds."""

MAX_NESTING = 32
"""Levels of nested JSON; DynamoDB refuses more, and deep values break naive clients."""

MAX_ID_CHARACTERS = 256
"""Session and user ids (api.md). 256 characters of four bytes still fit a key of 2 KB."""

MAX_INLINE_TURN_BYTES = 64 * 1024
"""A turn above this stays out of the table and is read from the transcript: an item may have 400"
" KB,
and every write unit pays for 1 KB."""

MAX_PROFILE_BYTES = 256 * 1024
"""System messages and metadata of a session, which live in one item of at most 400 KB."""

MAX_PIN_CHARACTERS = 2000
"""A pin is a short sentence; operators may write a longer one by hand."""

MAX_PINS = 200
"""Active pins of one session, so that the working memory stays one small query."""

MAX_PAGE = 100
DEFAULT_PAGE = 20

MAX_CONTEXT_BYTES = 5 * 1024 * 1024
"""A Lambda answer may have 6 MB; the rest is framing and JSON escaping."""

IDEMPOTENCY_SECONDS = 48 * 3600
"""A client that has not repeated a request within two days does not repeat it."""

ERASURE_ANSWER_SECONDS = 48 * 3600
"""For as long, a repeated DELETE of what is gone already is answered with the first erasure."""

MODEL_ANSWER_SECONDS = 24 * 3600
"""A paid answer is kept for as long as a crashed compaction may take to come back."""

MAX_IDEMPOTENCY_KEY_CHARACTERS = 255
"""As long as a UUID, a ULID or a hash with a prefix needs; longer ones are mistakes."""

DUE_SHARDS = 8
"""Partitions of the sweeper's index: enough for some thousand due sessions a second."""

SWEEP_GRACE_SECONDS = 120
"""A doorbell that was not answered within this time is taken for lost."""
