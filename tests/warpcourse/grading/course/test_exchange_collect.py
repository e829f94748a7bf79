"""`nbgrader collect`: what a student can put into the exchange to hurt another, the instructor or the class."""

import logging
import os
import pwd
from pathlib import Path

import pytest
from nbgrader.exchange import ExchangeFactory

from tests.support.class_harness import TINY, tiny_course
from warpcourse.grading.course.nbgrader_course import Course

ME = pwd.getpwuid(os.geteuid()).pw_name
OTHER = next(account for account in pwd.getpwall() if account.pw_uid not in (0, os.geteuid()))
TIMES = ("2026-03-01 12:00:00.000000 UTC", "2026-03-02 12:00:00.000000 UTC")


@pytest.fixture
def course(tmp_path):
    (tmp_path / "exchange" / "warplab" / "inbound").mkdir(parents=True)
    return tiny_course(tmp_path / "course", f"c.Exchange.root = {str(tmp_path / 'exchange')!r}")


def hand_in(course: Path, student: str, time: str = TIMES[0], text: str = "", owner: int | None = None) -> Path:
    """Put a hand-in into the exchange as a student can, without nbgrader. Return its folder."""
    folder = course.parent / "exchange" / "warplab" / "inbound" / f"{student}+{TINY}+{time}+c2VjcmV0"
    folder.mkdir()
    (folder / f"{TINY}.ipynb").write_text(text or f"of {student}")
    if owner is not None:
        os.chown(folder, owner, -1)
    return folder


def collected(root: Path) -> dict[str, str]:
    """Do what the command does, and the formgrader's button. Return {path below grading/submitted: text}."""
    course = Course(root)
    course.directory.assignment_id = TINY
    factory = ExchangeFactory(config=course.config)
    factory.Collect(coursedir=course.directory, config=course.config, parent=factory).start()
    submitted = root / "grading" / "submitted"
    return {str(path.relative_to(submitted)): path.read_text() for path in submitted.rglob("*") if path.is_file()}


def warnings(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_hand_in_under_anothers_name_is_not_collected(course, caplog):
    hand_in(course, ME)
    hand_in(course, OTHER.pw_name, text="worthless")
    assert collected(course) == {f"{ME}/{TINY}/{TINY}.ipynb": f"of {ME}"}
    (told,) = warnings(caplog)
    assert f"Did {ME} hand in for another?" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder is given to another user")
def test_it_does_not_displace_what_the_other_handed_in(course):
    hand_in(course, OTHER.pw_name, TIMES[0], text="own", owner=OTHER.pw_uid)
    hand_in(course, OTHER.pw_name, TIMES[1], text="worthless")
    assert collected(course) == {f"{OTHER.pw_name}/{TINY}/{TINY}.ipynb": "own"}


def test_no_link_is_followed_and_no_odd_file_stops_the_class(course, caplog):
    folder = hand_in(course, ME, text="mine")
    (folder / "other.ipynb").symlink_to(course / "solutions" / TINY / f"{TINY}.ipynb")
    (folder / "secret").symlink_to(course / "solutions")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text("1")
    assert collected(course) == {f"{ME}/{TINY}/{TINY}.ipynb": "mine", f"{ME}/{TINY}/data/a.csv": "1"}
    told = "\n".join(warnings(caplog))
    for odd in ("other.ipynb is a link", "secret is a link", "gone is a link", "pipe is not a plain file"):
        assert odd in told


@pytest.mark.parametrize("odd", [f"x+{TINY}+no date+y", f"x+{TINY}+", f"<b>+{TINY}+{TIMES[0]}+y"])
def test_no_odd_name_stops_the_class(course, caplog, odd):
    hand_in(course, ME)
    (course.parent / "exchange" / "warplab" / "inbound" / odd).mkdir()
    assert [*collected(course)] == [f"{ME}/{TINY}/{TINY}.ipynb"]
    (told,) = warnings(caplog)
    assert told.startswith("Not collected: ")


def test_a_folder_that_is_a_link_is_not_collected(course, caplog):
    folder = hand_in(course, ME)
    folder.rename(course.parent / "elsewhere")
    folder.symlink_to(course.parent / "elsewhere")
    assert collected(course) == {}
    assert "it is no student's folder" in warnings(caplog)[0]
