"""Sentences in which people state something lasting about themselves, in several languages.

Precise rather than complete. A sentence counts by its own beginning, which keeps out what is
reported about others, quoted, or embedded in a story.
"""

from turnfold.adapters import statement_patterns as patterns
from turnfold.domain.phrases import Phrases

_STRONG = Phrases(patterns.STRONG)
_PLAIN = Phrases(patterns.PLAIN)
_PASSING = Phrases(patterns.PASSING)
_HYPOTHETICAL = Phrases(patterns.HYPOTHETICAL)
_QUESTION = Phrases(patterns.QUESTION)


def is_question(sentence: str) -> bool:
    """Whether the sentence asks something."""
    return _QUESTION.occur_in(sentence)


def speaks_of_themselves(sentence: str) -> bool:
    """Whether it begins like a lasting statement, even if it turns into a question."""
    return _STRONG.begin(sentence) or _PLAIN.begin(sentence)


def is_asked_to_be_kept(sentence: str) -> bool:
    """Whether it asks to be remembered, or states a name, an allergy, a budget or a deadline."""
    return (
        _STRONG.begin(sentence)
        and not is_question(sentence)
        and not _HYPOTHETICAL.occur_in(sentence)
    )


def is_lasting_statement(sentence: str) -> bool:
    """Whether the speaker states a stable fact, preference, constraint or decision of their own.

    Questions, suppositions and passing remarks are none.
    """
    if is_asked_to_be_kept(sentence):
        return True
    return (
        _PLAIN.begin(sentence)
        and not is_question(sentence)
        and not _HYPOTHETICAL.occur_in(sentence)
        and not _PASSING.occur_in(sentence)
    )
