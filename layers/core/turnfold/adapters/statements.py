"""Sentences in which people state something lasting about themselves, in several languages.

Precise rather than complete. A sentence counts by its own beginning, which keeps out what is
reported about others, quoted, or embedded in a story.
"""

import re

from turnfold.adapters import statement_patterns as patterns
from turnfold.domain.phrases import Phrases

_STRONG = Phrases(patterns.STRONG)
_PLAIN = Phrases(patterns.PLAIN)
_PASSING = Phrases(patterns.PASSING)
_HYPOTHETICAL = Phrases(patterns.HYPOTHETICAL)
_QUESTION = Phrases(patterns.QUESTION)
_COURTESY = Phrases(patterns.CHINESE_COURTESY)
_REMARK = Phrases(patterns.CHINESE_REMARK)

_CLAUSE_MARK = re.compile("[，,]")
_END_MARK = re.compile("[。！!.]*$")


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


def bare_statement(sentence: str) -> str:
    """A Chinese sentence without the clauses that greet or only say how pleasant a thing is.

    A comma parts clauses there; where it also parts the items of a list, as in English, nothing is
    left out. The clauses that stay are word for word.
    """
    clauses = _CLAUSE_MARK.split(_END_MARK.sub("", sentence))
    kept = [
        clause
        for at, clause in enumerate(clauses)
        if not _COURTESY.begin(clause.strip()) and not (at and _REMARK.begin(clause.strip()))
    ]
    if not kept or len(kept) == len(clauses):
        return sentence
    return "，".join(kept) + (_END_MARK.search(sentence) or [""])[0]
