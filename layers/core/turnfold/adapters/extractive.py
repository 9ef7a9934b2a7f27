"""The summariser that needs no model: it quotes the sentences that carry most of a conversation."""

import heapq
import re
import unicodedata
from bisect import insort
from collections.abc import Iterator, Sequence

from turnfold.adapters.sentence_scores import (
    SPEAKER_LABELS,
    Candidate,
    score_sentences,
    visible_text,
)
from turnfold.domain.identifiers import extract_identifiers, kept_line, missing_identifiers
from turnfold.domain.languages import language_of
from turnfold.domain.passages import Passage
from turnfold.domain.tokens import CountText

ELLIPSIS = "…"
"""Stands where a sentence was cut, and for a source that is nothing but encoded bytes."""

_KEPT_SHARE = 3
_LEAST_FOR_LABELS = 40
_LANGUAGE_SAMPLE = 20_000
# The rest of a conversation is not counted once it is known to be far longer than the summary.
_SAMPLED_PER_TOKEN = 16
_COUNTER_SLACK = 8
_REFUSALS_IN_A_ROW = 40
_LEAST_WORTH_FILLING = 6
_REDUNDANCY = 0.75
_SAME_PASSAGE = 0.8
_WORTH_CUTTING = 0.4
_CLAUSE_END = re.compile(r"[,;:，；：、،]")
_WORD_END = re.compile(r"\s+")
_UNSPACED_END = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef।॥؟۔.!?]\Z")
_UNSPACED_START = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_ENDED = re.compile(r"[.!?…。！？；;:：,，।॥؟۔][\"'”’»)\]」』）】》]*\Z")


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "ZC"


def _has_visible(text: str) -> bool:
    return any(map(_visible, text))


class ExtractiveSummariser:
    """Summaries made of whole sentences of the source. The same input gives the same summary."""

    def __init__(self, count: CountText) -> None:
        """Measure with `count`."""
        self._count = count

    def summarise(self, passages: Sequence[Passage], max_tokens: int) -> str:
        """The most telling sentences in their order, and a `Kept:` line of lost identifiers.

        At most `max_tokens` tokens by the counter, and fewer than the passages joined by line ends
        have, unless those have one or two. Not empty if any passage has visible text and a single
        character of it fits. The `Kept:` line takes at most a third of the cap. A sentence is cut,
        and then marked by an ellipsis, only where none fits whole or much room is left.
        """
        source = "\n".join(passage.text for passage in passages)
        if not _has_visible(source):
            return ""
        cap = self._cap(source, max_tokens)
        candidates = score_sentences(passages)
        summary = _Selection(candidates, self._labels(source, candidates, cap), self._count, cap)
        summary.fill(_ranked_identifiers(passages))
        return summary.text() or self._smallest(source, cap)

    def _cap(self, source: str, max_tokens: int) -> int:
        sample = source[: _SAMPLED_PER_TOKEN * max(1, max_tokens) + 1000]
        if len(sample) < len(source) and self._count(sample) > max_tokens + _COUNTER_SLACK:
            return max_tokens
        tokens = self._count(source)
        return min(max_tokens, max(tokens - 1, min(tokens, 2)))

    def _labels(
        self, source: str, candidates: Sequence[Candidate], cap: int
    ) -> dict[str, str]:
        several = len({candidate.speaker for candidate in candidates}) > 1
        if cap < _LEAST_FOR_LABELS or not several:
            return {}
        return SPEAKER_LABELS.get(language_of(source[:_LANGUAGE_SAMPLE]) or "", {})

    def _smallest(self, source: str, cap: int) -> str:
        """A single character, where not even a cut word fits."""
        for character in (*filter(_visible, visible_text(source)[:1000]), ELLIPSIS):
            if self._count(character) <= cap:
                return character
        return ""


def _ranked_identifiers(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Every identifier once: what people and summaries said first, bare numbers and tools last."""
    ranks: dict[str, tuple[int, int]] = {}
    speakers = {"user": 0, "summary": 0, "assistant": 2, "tool": 4}
    for passage in passages:
        for identifier in extract_identifiers(passage.text):
            bare = all(c.isdigit() or c in ".,-" for c in identifier)
            rank = speakers.get(passage.speaker, 0) + (3 if bare else 0)
            known = ranks.get(identifier)
            if known is None or rank < known[0]:
                ranks[identifier] = (rank, known[1] if known else len(ranks))
    return tuple(sorted(ranks, key=lambda identifier: ranks[identifier]))


class _Selection:
    """Sentences chosen so far, and what they cost."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        labels: dict[str, str],
        count: CountText,
        cap: int,
    ) -> None:
        self._candidates = candidates
        self._labels = labels
        self._label_tokens = {speaker: count(label) + 1 for speaker, label in labels.items()}
        self._count = count
        self._cap = cap
        self._chosen: list[tuple[int, Candidate]] = []
        self._latest: list[Candidate] = []
        self._covered: set[str] = set()
        self._of_passage: dict[int, int] = {}
        self._used = 0
        self._kept = ""

    def text(self) -> str:
        """The summary; at most the cap."""
        return self._joined(self._body(), self._kept)

    def fill(self, identifiers: Sequence[str]) -> None:
        """Choose within the cap: sentences, then lost identifiers, then sentences in what is left."""
        share = self._cap // _KEPT_SHARE
        reserve = self._count(line) if (line := kept_line(identifiers, share, self._count)) else 0
        self._choose(self._cap - reserve)
        self._keep(identifiers, share)
        left = self._cap - self._count(self.text())
        if left >= _LEAST_WORTH_FILLING and self._choose(self._used + left):
            self._keep(identifiers, share)
        while self._latest and self._count(self.text()) > self._cap:
            self._drop_latest()
        if not self._latest:
            self._cut_one(self._cap)
        elif (left := self._cap - self._count(self.text())) > _WORTH_CUTTING * self._cap:
            self._cut_one(left)
        self._keep(identifiers, share)

    def _keep(self, identifiers: Sequence[str], share: int) -> None:
        body = self._body()
        missing = missing_identifiers(identifiers, body)
        room = min(share, self._cap - self._count(body) - 1)
        self._kept = kept_line(missing, room, self._count) if missing and room > 0 else ""
        while self._kept and self._count(self._joined(body, self._kept)) > self._cap:
            room -= 1
            self._kept = kept_line(missing, room, self._count)

    def _choose(self, budget: int) -> bool:
        """Take the best sentences that fit; whether any was taken.

        A score only sinks while others are chosen, so a stale entry of the heap is an upper bound
        and only the topmost has to be looked at again.
        """
        taken = {candidate.order for candidate in self._latest}
        heap = [
            (-candidate.score, candidate.order, candidate)
            for candidate in self._candidates
            if candidate.order not in taken
        ]
        heapq.heapify(heap)
        before, refused = len(self._latest), 0
        while heap and refused < _REFUSALS_IN_A_ROW and budget - self._used >= 2:
            stale, order, candidate = heapq.heappop(heap)
            score = -self._worth(candidate)
            if heap and score > heap[0][0]:
                if score > stale:
                    heapq.heappush(heap, (score, order, candidate))
                    continue
            if self._used + self._cost(candidate) > budget:
                refused += 1
                continue
            refused = 0
            self._take(candidate)
        return len(self._latest) > before

    def _worth(self, candidate: Candidate) -> float:
        repeated = len(candidate.terms & self._covered) / (len(candidate.terms) or 1)
        neighbours = self._of_passage.get(candidate.passage, 0)
        return float(
            candidate.score * (1 - _REDUNDANCY * repeated) * _SAME_PASSAGE**neighbours
        )

    def _cost(self, candidate: Candidate) -> int:
        # At most two labels more: its own, and one for a run that it splits.
        label = self._label_tokens.get(candidate.speaker, 0)
        return self._count(candidate.text) + 1 + label

    def _take(self, candidate: Candidate) -> None:
        insort(self._chosen, (candidate.order, candidate), key=lambda entry: entry[0])
        self._latest.append(candidate)
        self._covered |= candidate.terms
        self._of_passage[candidate.passage] = self._of_passage.get(candidate.passage, 0) + 1
        self._used += self._cost(candidate)

    def _drop_latest(self) -> None:
        dropped = self._latest.pop()
        self._chosen = [entry for entry in self._chosen if entry[1] is not dropped]

    def _cut_one(self, max_tokens: int) -> None:
        pass

    def _lines(self) -> Iterator[tuple[str, list[str]]]:
        speaker, line = None, []
        for _, candidate in self._chosen:
            if candidate.speaker != speaker:
                if line:
                    yield speaker or "", line
                speaker, line = candidate.speaker, []
            line.append(candidate.text)
        if line:
            yield speaker or "", line

    def _body(self) -> str:
        return "\n".join(
            self._labels.get(speaker, "") + _flowing(line) for speaker, line in self._lines()
        )

    def _joined(self, body: str, kept: str) -> str:
        return f"{body}\n{kept}" if body and kept else body or kept
