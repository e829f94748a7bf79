"""`nbgrader release_feedback`: pages of submissions that came through the exchange, and of those that did not."""

from __future__ import annotations

import errno
import logging
import shutil
from pathlib import Path

import pytest
from nbgrader.exchange import ExchangeError, ExchangeFactory
from nbgrader.utils import notebook_hash

from tests.support.class_harness import TINY, tiny_course
from warpcourse.grading.course.nbgrader_course import Course

TIME = "2026-03-01 12:00:00 UTC"


@pytest.fixture
def course(tmp_path):
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    return tiny_course(tmp_path / "course", f"c.Exchange.root = {str(exchange)!r}")


def page(course: Path, student: str, **files: str | bytes | None) -> Path:
    """Make a student's feedback folder. `files`: contents of timestamp.txt and submission_secret.txt; None: a folder"""
    folder = course / "grading" / "feedback" / student / TINY
    folder.mkdir(parents=True)
    (folder / f"{TINY}.html").write_text(f"the page of {student}")
    for name, content in files.items():
        path = folder / f"{name}.txt"
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def release(root: Path, **options: str) -> None:
    """Do what the command does, and the formgrader's button."""
    course = Course(root)
    course.directory.assignment_id = TINY
    for name, value in options.items():
        setattr(course.directory, name, value)
    factory = ExchangeFactory(config=course.config)
    factory.ReleaseFeedback(coursedir=course.directory, config=course.config, parent=factory).start()


def released(course: Path) -> set[str]:
    return {path.read_text() for path in (course.parent / "exchange" / "warplab" / "feedback").iterdir()}


def test_a_page_that_cannot_be_released_does_not_stop_the_others(course, caplog):
    page(course, "ada", timestamp=TIME, submission_secret="secret of ada")
    page(course, "by-hand")
    page(course, "by-hand-dated", timestamp=TIME)
    page(course, "folders", timestamp=None, submission_secret=None)
    page(course, "odd-bytes", timestamp=TIME, submission_secret=b"\xff\xfe")
    page(course, "zoe", timestamp=TIME, submission_secret="secret of zoe")
    page(course, "empty", timestamp=TIME, submission_secret="")
    with caplog.at_level(logging.INFO):
        release(course)
    assert released(course) == {"the page of ada", "the page of zoe"}
    name = notebook_hash(secret="secret of ada", notebook_id=TINY)
    assert (course.parent / "exchange" / "warplab" / "feedback" / f"{name}.html").read_text() == "the page of ada"
    (told,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert "5 pages were not released" in told
    for student in ("by-hand", "by-hand-dated", "folders", "odd-bytes", "empty"):
        assert str(course / "grading" / "feedback" / student / TINY / f"{TINY}.html") in told
    assert "did not come through the exchange" in told
    assert "send" in told


def test_where_all_came_through_the_exchange_nothing_is_said(course, caplog):
    page(course, "ada", timestamp=TIME, submission_secret="secret of ada")
    page(course, "bob", timestamp=TIME, submission_secret="secret of bob")
    release(course, student_id="ada")
    assert released(course) == {"the page of ada"}
    release(course)
    assert released(course) == {"the page of ada", "the page of bob"}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_students_that_are_excluded_stay_so(course, caplog):
    page(course, "ada", timestamp=TIME, submission_secret="secret of ada")
    page(course, "bob")
    release(course, student_id_exclude="bob")
    assert released(course) == {"the page of ada"}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_full_disk_is_nobodys_submission(course, monkeypatch):
    page(course, "ada", timestamp=TIME, submission_secret="secret of ada")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copy", full)
    with pytest.raises(ExchangeError, match="No space left on device"):
        release(course)
