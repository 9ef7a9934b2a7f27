"""BM25 over turns and their neighbours, and fusion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnfold.domain.recall.corpora import DocumentCorpus
from turnfold.domain.recall.documents import make_document
from turnfold.domain.recall.fusion import fuse
from turnfold.domain.recall.ranking import Hit, Search, Statistics, parse_query

NAMES = ("lantern", "harbour", "cabinet", "xylograph", "ferry", "ticket", "red", "北京", "the", "a")
WORDS = st.sampled_from(NAMES)
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), min_size=1, max_size=12)


def search(texts: list[str], query: str, limit: int = 10) -> tuple[Hit, ...]:
    corpus = DocumentCorpus(make_document([text]) for text in texts)
    return Search(corpus, parse_query(query)).best(limit)


def test_the_document_with_the_word_is_first_and_says_so() -> None:
    hits = search(
        ["a red lamp", "the xylograph stands here", "a blue lamp"], "Where is the Xylographs?"
    )
    assert hits[0].document == 1
    assert hits[0].matched_by == ("xylographs",)
    assert {hit.document: hit.matched_by for hit in hits[1:]} == {
        0: ("near:xylographs",),
        2: ("near:xylographs",),
    }


def test_the_answer_after_the_question_is_found_by_the_questions_words() -> None:
    texts = [
        "lunch?",
        "what colour is the lighthouse",
        "white, with stripes",
        "ok",
        "and so on",
        "x",
    ]
    assert [hit.document for hit in search(texts, "lighthouse colour")][:2] == [1, 2]


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    texts = ["ferry", "ferry", "-", "-", "-", "ferry", "-", "-", "-", "lantern"]
    assert search(texts, "ferry lantern")[0].document == 9


def test_function_words_matter_only_alone() -> None:
    texts = ["who will come", "-", "-", "-", "the ferry leaves"]
    assert search(texts, "who will")[0].document == 0
    assert [hit.document for hit in search(texts, "who will see the ferry")] == [4, 3, 2]


def test_nothing_is_found_where_no_word_occurs() -> None:
    assert search(["a red lamp"], "quetzalcoatlus") == ()
    assert search(["a red lamp"], "") == ()
    assert search([], "lamp") == ()


@given(TEXTS, st.lists(WORDS, max_size=5).map(" ".join), st.integers(1, 5))
def test_hits_are_few_scored_above_zero_and_in_order(
    texts: list[str], query: str, limit: int
) -> None:
    hits = search(texts, query, limit)
    assert len(hits) <= limit
    assert all(hit.score > 0 and hit.matched_by for hit in hits)
    assert [(-hit.score, hit.document) for hit in hits] == sorted(
        (-hit.score, hit.document) for hit in hits
    )
    assert len({hit.document for hit in hits}) == len(hits)
    assert hits == search(texts, query, 100)[:limit]


@given(TEXTS, st.lists(WORDS, min_size=1, max_size=4))
def test_the_order_of_a_querys_words_does_not_matter(texts: list[str], words: list[str]) -> None:
    def scores(query: list[str]) -> dict[int, float]:
        return {hit.document: round(hit.score, 9) for hit in search(texts, " ".join(query), 100)}

    assert scores(words) == scores(words[::-1])


@given(TEXTS, WORDS)
def test_every_document_with_the_word_is_found(texts: list[str], word: str) -> None:
    found = {hit.document for hit in search(texts, word, 100)}
    assert found >= {at for at, text in enumerate(texts) if word in text.split()}


@given(TEXTS, TEXTS, st.lists(WORDS, min_size=1, max_size=3).map(" ".join))
def test_two_corpora_are_scored_as_one_collection(
    one: list[str], other: list[str], query: str
) -> None:
    searches = [
        Search(
            DocumentCorpus(make_document([text]) for text in texts), parse_query(query), {0: 1.0}
        )
        for texts in (one, other)
    ]
    together = sum((each.statistics for each in searches), Statistics(0, 0, {}))
    apart = [hit.score for each in searches for hit in each.best(100, together)]
    corpus = DocumentCorpus(make_document([text]) for text in one + other)
    whole = [hit.score for hit in Search(corpus, parse_query(query), {0: 1.0}).best(100)]
    assert [round(score, 9) for score in sorted(apart)] == [round(s, 9) for s in sorted(whole)]


RANKINGS = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=10), max_size=3)


@given(RANKINGS)
def test_fusion_keeps_everything_once_and_in_order(rankings: list[list[int]]) -> None:
    fused = fuse(*rankings)
    assert {thing for thing, _ in fused} == {thing for ranking in rankings for thing in ranking}
    assert len(fused) == len({thing for thing, _ in fused})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


@given(st.lists(st.integers(), unique=True, max_size=20))
def test_the_fusion_of_a_ranking_with_itself_or_nothing_is_that_ranking(ranking: list[int]) -> None:
    assert [thing for thing, _ in fuse(ranking, ranking)] == ranking
    assert [thing for thing, _ in fuse(ranking, [])] == ranking


def test_what_both_rankings_name_comes_before_what_one_names_first() -> None:
    assert [thing for thing, _ in fuse(["a", "b"], ["c", "b"])] == ["b", "a", "c"]
