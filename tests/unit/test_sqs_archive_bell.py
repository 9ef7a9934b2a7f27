"""The archivist's messages: one group for each session, and nothing but names in them."""

from __future__ import annotations

import pytest

from turnfold.adapters.sqs_archive_bell import archive_message, parse_archive_message
from turnfold.domain.erasures import ArchiveTask, UserErasure
from turnfold.domain.errors import InvalidDoorbellError
from turnfold.domain.sessions import SessionKey

TASKS: list[ArchiveTask] = [
    SessionKey("t", "s"),
    SessionKey("t", '["t", "erasure"]'),
    SessionKey("t#", "漢" * 256),
    UserErasure("t", "s"),
    UserErasure("t", "e1"),
]


@pytest.mark.parametrize("task", TASKS)
def test_what_was_rung_for_comes_back(task: ArchiveTask) -> None:
    message = archive_message(task, "ring")
    assert parse_archive_message(message.body) == task
    assert len(message.body.encode()) < 2048


def test_groups_are_of_one_task_each_and_fit_the_queue() -> None:
    groups = [archive_message(task, "ring").group for task in TASKS]
    assert len(set(groups)) == len(TASKS)
    assert all(group.isascii() and len(group) <= 128 for group in groups)
    assert archive_message(TASKS[0], "a").group == archive_message(TASKS[0], "b").group


def test_rings_are_told_apart_by_their_ids() -> None:
    ids = {archive_message(TASKS[0], ring).deduplication_id for ring in ("a", "b", "x" * 500)}
    assert len(ids) == 3
    assert all(len(one) <= 128 for one in ids)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "x",
        "[]",
        "{}",
        '{"v": 1}',
        '{"v": 1, "tenant": "t"}',
        '{"v": 2, "tenant": "t"}',
        '{"v": 1, "tenant": "t", "session": 7}',
        '{"v": 1, "tenant": 1, "session": "s"}',
        "null",
    ],
)
def test_other_bodies_are_refused(body: str) -> None:
    with pytest.raises(InvalidDoorbellError):
        parse_archive_message(body)
