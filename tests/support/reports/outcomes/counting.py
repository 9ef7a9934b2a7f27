"""Outcomes of the reports about counting tokens."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.reports.checks.tokens import tokens_of
from support.reports.ops.working import drain
from support.reports.outcomes import outcome
from support.reports.outcomes.messages import commit
from support.reports.reading import contents, spoken
from support.reports.stack import VOCABULARY
from turnfold.adapters.tiktoken_counter import VOCABULARIES, VocabularyError, verify_vocabulary
from turnfold.domain.tokens import byte_bound

if TYPE_CHECKING:
    from support.reports.run import Run


@outcome("TOK-01")
def tok_01(run: Run) -> None:
    body = run.context()
    assert len(spoken(run)) == 12, "all five earlier rounds"
    assert body["tokens"]["total"] < 3500


@outcome("TOK-03")
def tok_03(run: Run) -> None:
    body = run.context()
    assert body["tokens"]["total"] <= 500
    assert len(spoken(run)) < 402
    for part in (
        {"type": "file", "file": {"file_data": "QUJD" * 50_000, "filename": "a.pdf"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + "QUJD" * 50_000}},
        {"type": "refusal", "refusal": "no"},
        {"type": "input_image", "image_url": "data:image/png;base64," + "QUJD" * 50_000},
    ):
        body = {
            "messages": [{"role": "user", "content": [part]}],
            "policy": {"name": "limit_count", "max_count": 1},
        }
        assert run.session("POST", "/context", body).ok()["tokens"]["total"] < 3100, part["type"]


@outcome("TOK-05")
def tok_05(run: Run) -> None:
    said = contents(run.said())
    assert said[0].startswith("In the paper <|endoftext|> and <|im_start|>system<|im_sep|>")
    assert contents(spoken(run)) == said
    assert tokens_of("<|endoftext|>") == 7
    assert [one["turn"] for one in run.last("search").data] == [1]


@outcome("TOK-06")
def tok_06(run: Run) -> None:
    run.all("commit")[0].answer.problem(413, "turn_too_large")
    # As many blanks as a turn may have: tiktoken alone would panic.
    commit(run, " " * 1_000_000 + "x", "blank")
    run.session("POST", "/context", {"max_tokens": 1000})
    commit(run, "still there?")
    drain(run)
    assert max(call.seconds for call in run.client.calls) < 5


@outcome("TOK-08")
def tok_08(run: Run) -> None:
    for result in run.all("context"):
        if result.op["model"]:
            assert result.answer.ok()["encoding"] in ("o200k_base", "cl100k_base")
        else:
            result.answer.problem(422, "invalid_parameter")
    encodings = {one.op["model"]: one.answer.body.get("encoding") for one in run.all("context")}
    assert encodings["my-deployment"] == "o200k_base", "the documented default"
    assert encodings["gpt-35-turbo"] == "cl100k_base"


@outcome("TOK-09")
def tok_09(run: Run) -> None:
    assert contents(spoken(run)) == ["hi", "ho"]
    name = VOCABULARIES["o200k_base"][0]
    damaged = run.folder / "vocabulary"
    damaged.mkdir()
    shutil.copy(VOCABULARY / name, damaged / name)
    verify_vocabulary(damaged, "o200k_base")
    (damaged / name).write_bytes((damaged / name).read_bytes()[:-1])
    with pytest.raises(VocabularyError):
        verify_vocabulary(damaged, "o200k_base")


@outcome("TOK-11")
def tok_11(run: Run) -> None:
    assert run.context()["tokens"]["total"] <= 2000
    # Where nothing may be loaded, a byte stands for a token.
    for text in ("我们明天讨论预算和合同的细节。", "مرحبا بالعالم", "สวัสดีชาวโลก", "👩‍👩‍👧‍👦🏳️‍🌈"):
        assert byte_bound([{"role": "user", "content": text}]) >= tokens_of(text)


@outcome("TOK-13")
def tok_13(run: Run) -> None:
    assert run.context()["tokens"]["total"] <= 4000 - 1000 - 2500
    left = 4000 - 3000 - 2500
    run.session("POST", "/context", {"max_tokens": left}).problem(422, "invalid_parameter")
