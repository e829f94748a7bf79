"""A disk that fills up at any moment: one line that says so, no result lost, nobody blamed, and the next run works.

SQLite itself refuses to grow here, as on a full disk, and each of the grader's own writes fails in turn.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator

import nbformat
import pytest
import sqlalchemy
from sqlalchemy.engine import Engine

from tests.support.class_harness import RIGHT, TINY, answered, hand_in, scores, tiny_course
from warpcourse.grading.course import grade_command
from warpcourse.grading.course.ledger import records
from warpcourse.grading.judge.assembly import refused
from warpcourse.grading.judge.jobs import Job, Result, outcome
from warplab.__main__ import main

CLASS = ("ada", "bob", "cem")


class Quick:
    """An executor without judges: all processes end by themselves."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        for job in jobs:
            reason = f"It ended: {job.key.submission}"
            nothing_ran = refused(nbformat.reads(job.master, as_version=4), reason)
            yield Result(job.key, **outcome("student_crash", reason, nothing_ran), sandbox="bubblewrap")


@pytest.fixture
def course(tmp_path, monkeypatch):
    root = tiny_course(tmp_path)
    for student in CLASS:
        hand_in(root, student, answered(root, RIGHT))
    monkeypatch.setattr(grade_command, "_executor", lambda arguments, waiting: Quick())
    return root


def grade(course) -> int:
    return main(["grade", TINY, "--course", str(course), "--no-feedback", "--csv", str(course / "class.csv")])


def says_that_the_disk_is_full(capsys, course) -> None:
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.strip().splitlines()
    assert len(lines) <= 3, said.err
    assert lines[-1].startswith("error: ")
    assert "full" in lines[-1]
    assert str(course / "grading") in lines[-1]
    assert "run the same command again" in lines[-1]
    assert "close other programs" not in said.err


def test_the_gradebook_fills_the_disk(course, capsys):
    """With room for one page more each time, until all fits."""
    everybody = [*CLASS, *(f"student{number:02}" for number in range(30))]
    assert main(["grade", TINY, "--course", str(course), "--student", "ada", "--no-feedback"]) == 0
    for student in everybody[1:]:
        hand_in(course, student, answered(course, RIGHT))
    with sqlite3.connect(course / "grading" / "gradebook.db") as database:
        (pages,) = database.execute("pragma page_count").fetchone()
    allowed = [pages]

    def limited(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"pragma max_page_count = {allowed[0]}")

    sqlalchemy.event.listen(Engine, "connect", limited)
    try:
        capsys.readouterr()
        while grade(course) != 0:
            says_that_the_disk_is_full(capsys, course)
            allowed[0] += 1
    finally:
        sqlalchemy.event.remove(Engine, "connect", limited)
    assert pages + 3 < allowed[0] < pages + 40
    assert scores(course) == {student: [0.0, 0.0] for student in everybody}


def test_every_write_fails_once(course, capsys, monkeypatch):
    """Each run fails at the next place that syncs what it wrote; every result that was synced stays."""
    sync, left = os.fsync, [0]

    def fsync(descriptor: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for number in range(1, 100):
        for student in CLASS:
            hand_in(course, student, answered(course, f"{RIGHT}  # {number} {student}"))
        left[0] = number
        code = grade(course)
        if code == 0 and left[0] > 0:
            break
        assert code == 2, number
        says_that_the_disk_is_full(capsys, course)
    assert 10 < number < 99
    assert scores(course) == {student: [0.0, 0.0] for student in CLASS}
    assert not [record for record in records(course / "grading" / "ledger") if record.get("status") == "infra_error"]
