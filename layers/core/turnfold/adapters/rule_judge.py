"""Pin judgement without a model: sentences of the user that state something lasting."""

import re
from collections.abc import Sequence

from turnfold.adapters.statements import bare_statement, is_asked_to_be_kept, is_lasting_statement
from turnfold.domain.blobs import without_blobs
from turnfold.domain.quarantine import quarantine_reason
from turnfold.domain.sentences import split_sentences

MAX_PINS_OF_A_TURN = 3
MAX_STATEMENT_CHARACTERS = 240
"""About 60 tokens of English: a pin is one short fact."""

_LEAST_CHARACTERS = 5
# People paste articles, letters and logs that speak of somebody else's "I"; what they say
# themselves stands before or behind it.
_TYPED_AT_MOST = 3000
_EDGE = 600
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)


def _typed_sentences(text: str) -> list[str]:
    own = _QUOTED_LINE.sub("", without_blobs(text))
    if len(own) <= _TYPED_AT_MOST:
        return split_sentences(own)
    # The sentence at each cut may be half of one.
    return split_sentences(own[:_EDGE])[:-1] + split_sentences(own[-_EDGE:])[1:]


class RuleJudge:
    """Proposes pins by rules. It prefers to miss a fact over pinning a wrong one."""

    def propose(self, user_texts: Sequence[str]) -> tuple[str, ...]:
        """Up to `MAX_PINS_OF_A_TURN` sentences of the given texts of one turn.

        They are word for word, but for clauses that greet or only praise.

        Pass what the user said and nothing else. A sentence is taken that plainly states a stable
        fact, preference or constraint of the user, or asks to be remembered; those that ask come
        first where there are too many. None is over `MAX_STATEMENT_CHARACTERS`, a question, a
        supposition, a secret or an instruction to the model.
        """
        found: dict[str, bool] = {}
        for text in user_texts:
            for sentence in _typed_sentences(text):
                if self._is_worth_a_pin(sentence):
                    found.setdefault(bare_statement(sentence), is_asked_to_be_kept(sentence))
        best = sorted(found, key=lambda sentence: not found[sentence])[:MAX_PINS_OF_A_TURN]
        return tuple(sentence for sentence in found if sentence in best)

    def _is_worth_a_pin(self, sentence: str) -> bool:
        return (
            _LEAST_CHARACTERS <= len(sentence) <= MAX_STATEMENT_CHARACTERS
            and "\n" not in sentence
            and is_lasting_statement(sentence)
            and quarantine_reason(sentence) is None
        )
