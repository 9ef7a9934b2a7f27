"""The summariser that needs no model: it quotes the sentences that carry most of a conversation."""

import heapq
import re
import unicodedata
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import replace

from turnfold.adapters.sentence_scores import Candidate, score_sentences, visible_text
from turnfold.adapters.summary_layout import (
    ELLIPSIS,
    SPEAKER_LABELS,
    cut_to_fit,
    labelled_lines,
    layout,
)
from turnfold.domain.identifiers import extract_identifiers, kept_line, missing_identifiers
from turnfold.domain.languages import language_of
from turnfold.domain.passages import Passage
from turnfold.domain.tokens import CountText

_KEPT_SHARE = 3
_LEAST_FOR_LABELS = 40
_LANGUAGE_SAMPLE = 20_000
# A source is not counted further once it is known to be longer than the summary may be.
_SAMPLED_PER_TOKEN = 16
_COUNTER_SLACK = 8
# What stood in an earlier summary's `Kept:` line gives way to what the user said since.
_SPEAKER_RANK = {"user": 0, "summary": 1, "assistant": 2, "tool": 4}
_MANY_DIGITS = 4
_AMOUNT = re.compile(r"[~<>≤≥]?\d")
_REFUSALS_IN_A_ROW = 40
_REDUNDANCY = 0.75
_SAME_PART = 0.8
# Once this share of the room is used, sentences of less than this share of the best one's worth
# would only fill the page.
_ENOUGH = 0.5
_LEAST_WORTH = 0.1
# A cut sentence is better than a summary that leaves this share of its room unused.
_WORTH_CUTTING = 0.4
_LEAST_CUT = 24


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "ZC"


class ExtractiveSummariser:
    """Summaries made of whole sentences of the source. The same input gives the same summary."""

    def __init__(self, count: CountText) -> None:
        """Measure with `count`."""
        self._count = count

    def summarise(self, passages: Sequence[Passage], max_tokens: int) -> str:
        """The most telling sentences in their order, and a `Kept:` line of lost identifiers.

        At most `max_tokens` tokens by the counter, and fewer than the passages joined by line ends
        have, unless those have one or two. Not empty if any passage has visible text and a single
        character of it fits. The `Kept:` line takes at most a third of the cap. Where several
        speak, each part begins with a label in the conversation's language. A sentence is cut, and
        then marked by an ellipsis, only where none fits whole or much room is left.
        """
        source = "\n".join(passage.text for passage in passages)
        if not any(map(_is_visible, source)):
            return ""
        cap = self._cap(source, max_tokens)
        candidates = score_sentences(passages)
        draft = _Draft(candidates, self._labels(passages, cap), self._count, cap)
        return draft.filled(_ranked_identifiers(passages)) or self._smallest(source, cap)

    def _cap(self, source: str, max_tokens: int) -> int:
        sample = source[: _SAMPLED_PER_TOKEN * max(1, max_tokens) + 1000]
        if len(sample) < len(source) and self._count(sample) > max_tokens + _COUNTER_SLACK:
            return max_tokens
        tokens = self._count(source)
        return min(max_tokens, max(tokens - 1, min(tokens, 2)))

    def _labels(self, passages: Sequence[Passage], cap: int) -> Mapping[str, str]:
        if cap < _LEAST_FOR_LABELS:
            return {}
        # Tool output is seldom in the language of the conversation.
        spoken = "\n".join(one.text for one in passages if one.speaker != "tool")
        return SPEAKER_LABELS.get(language_of(spoken[:_LANGUAGE_SAMPLE]) or "", {})

    def _smallest(self, source: str, cap: int) -> str:
        """A single character, where not even a cut word fits."""
        for character in (*filter(_is_visible, visible_text(source)[:1000]), ELLIPSIS):
            if self._count(character) <= cap:
                return character
        return ""


def _rank(identifier: str, speaker: str) -> int:
    """Lower is kept first: what people said before what tools gave, addresses before amounts."""
    if all(c.isdigit() or c in ".,-" for c in identifier):
        return _SPEAKER_RANK.get(speaker, 0) + 3
    telling = sum(c.isdigit() for c in identifier) >= _MANY_DIGITS or not _AMOUNT.match(identifier)
    return _SPEAKER_RANK.get(speaker, 0) + (0 if telling else 1)


def _ranked_identifiers(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Every identifier once, the most telling first, else in order of appearance."""
    ranks: dict[str, int] = {}
    for passage in passages:
        summary = passage.speaker == "summary"
        for speaker, line in (
            labelled_lines(passage.text, passage.speaker)
            if summary
            else [(passage.speaker, passage.text)]
        ):
            for identifier in extract_identifiers(line):
                rank = _rank(identifier, speaker)
                ranks[identifier] = min(rank, ranks.get(identifier, rank))
    return tuple(sorted(ranks, key=lambda identifier: ranks[identifier]))


class _Draft:
    """The sentences chosen so far; they and the line of identifiers never exceed the cap."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        labels: Mapping[str, str],
        count: CountText,
        cap: int,
    ) -> None:
        self._left = {candidate.order: candidate for candidate in candidates}
        speakers = {candidate.speaker for candidate in candidates}
        self._labels = labels if len(speakers) > 1 else {}
        self._label_tokens = {speaker: count(label) for speaker, label in self._labels.items()}
        self._count = count
        self._cap = cap
        self._least_worth = _LEAST_WORTH * max((one.score for one in candidates), default=0.0)
        self._chosen: list[Candidate] = []
        self._last_taken: list[Candidate] = []
        self._covered: set[str] = set()
        self._per_part: dict[int, int] = {}

    def filled(self, identifiers: Sequence[str]) -> str:
        """Sentences, then the identifiers that they lack, then sentences in the room left over."""
        share = self._cap // _KEPT_SHARE
        reserved = kept_line(identifiers, share, self._count)
        self._choose(self._cap - self._count(reserved))
        kept = self._kept_line(identifiers, share)
        self._choose(self._cap - self._count(kept) - (1 if kept else 0))
        room = self._cap - self._count(self._with(kept))
        if not self._chosen or room > _WORTH_CUTTING * self._cap:
            self._choose_cut(self._cap - self._count(kept) - (1 if kept else 0))
        return self._with(self._kept_line(identifiers, share))

    def _body(self) -> str:
        return layout(((one.speaker, one.text) for one in self._chosen), self._labels)

    def _with(self, kept: str) -> str:
        body = self._body()
        return f"{body}\n{kept}" if body and kept else body or kept

    def _kept_line(self, identifiers: Sequence[str], share: int) -> str:
        body = self._body()
        missing = missing_identifiers(identifiers, body)
        room = min(share, self._cap - self._count(body))
        while missing and room > 0:
            kept = kept_line(missing, room, self._count)
            over = self._count(self._with(kept)) - self._cap
            if over <= 0:
                return kept
            room -= over
        return ""

    def _choose(self, budget: int) -> None:
        """Take the best sentences while the body stays within the budget.

        The worth of a sentence only sinks while others are taken, so what stands in the heap is an
        upper bound, and only the topmost has to be looked at again.
        """
        heap = [(-self._worth(one), order) for order, one in self._left.items()]
        heapq.heapify(heap)
        used, refused = self._count(self._body()), 0
        while heap and refused < _REFUSALS_IN_A_ROW and used < budget:
            bound, order = heapq.heappop(heap)
            candidate = self._left[order]
            worth = self._worth(candidate)
            if heap and -worth > heap[0][0] and -worth > bound:
                heapq.heappush(heap, (-worth, order))
                continue
            if worth < self._least_worth and used > _ENOUGH * budget:
                break
            cost = self._count(candidate.text) + 1 + self._label_tokens.get(candidate.speaker, 0)
            if used + cost > budget:
                refused += 1
                continue
            refused = 0
            used += cost
            self._take(candidate)
        # The sum is an estimate in both directions: pieces of words merge, labels are shared.
        while self._chosen and self._count(self._body()) > budget:
            self._give_back()

    def _choose_cut(self, budget: int) -> None:
        """Take as much as fits of the best sentence that does not fit whole."""
        room = budget - self._count(self._body())
        best = sorted(self._left.values(), key=lambda one: (-self._worth(one), one.order))
        for candidate in best[: 1 if self._chosen else 3]:
            room_for_text = room - (
                1 + self._label_tokens.get(candidate.speaker, 0) if self._chosen else 0
            )
            while room_for_text > 0:
                text = cut_to_fit(candidate.text, room_for_text, self._count)
                if not text or (self._chosen and len(text) < _LEAST_CUT):
                    break
                self._take(replace(candidate, text=text))
                over = self._count(self._body()) - budget
                if over <= 0:
                    return
                self._give_back()
                room_for_text -= over

    def _worth(self, candidate: Candidate) -> float:
        repeated = len(candidate.terms & self._covered) / (len(candidate.terms) or 1)
        neighbours = self._per_part.get(candidate.part, 0)
        return candidate.score * (1 - _REDUNDANCY * repeated) * float(_SAME_PART**neighbours)

    def _take(self, candidate: Candidate) -> None:
        self._left.pop(candidate.order)
        insort(self._chosen, candidate, key=lambda one: one.order)
        self._last_taken.append(candidate)
        self._covered |= candidate.terms
        self._per_part[candidate.part] = self._per_part.get(candidate.part, 0) + 1

    def _give_back(self) -> None:
        candidate = self._last_taken.pop()
        self._chosen.remove(candidate)
        self._left[candidate.order] = candidate
