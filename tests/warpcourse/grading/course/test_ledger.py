"""The ledger, and a coordinator that is killed at any moment: the next run ends in the same gradebook."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import is_grade
from sqlalchemy.orm import Session

from tests.support.class_harness import RIGHT, TINY, answered, gradebook, hand_in, tiny_course
from warpcourse.grading.course.coordinator import Grading
from warpcourse.grading.course.gradebook import Book
from warpcourse.grading.course.ledger import Ledger, LedgerError, records
from warpcourse.grading.course.nbgrader_course import Course, CourseError
from warpcourse.grading.judge import assembly
from warpcourse.grading.judge.jobs import SEED_VARIABLE, Job, Key, Result, outcome


def entry(student: str = "ada", **fields) -> dict:
    key = Key(TINY, student, "5" * 64, "7" * 64)
    return {"kind": "result", **key._asdict(), "status": "graded", **fields}


KEY = Key(TINY, "ada", "5" * 64, "7" * 64)


def test_records_and_objects_are_there_again(tmp_path):
    with Ledger(tmp_path) as ledger:
        name = ledger.put(b"a notebook")
        first = ledger.append(entry(notebook=name, scores={"test-one": [1.0, 1.0]}))
        ledger.append({"kind": "merged", "assignment": TINY, "student": "ada", "result": first["number"]})
        ledger.append(entry("bob"))
    with Ledger(tmp_path) as ledger:
        assert ledger.result(KEY) == first
        assert ledger.result(KEY._replace(submission="6" * 64)) is None
        assert ledger.result(KEY._replace(tests="6" * 64)) is None
        assert ledger.merged(TINY, "ada") == first["number"]
        assert ledger.merged(TINY, "bob") is None
        assert ledger.get(name) == b"a notebook"
        assert ledger.append(entry("eve"))["number"] == 4
    assert [record["kind"] for record in records(tmp_path)] == ["result", "merged", "result", "result"]


def test_a_torn_last_line_is_skipped_wherever_it_was_torn(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(tmp_path) as ledger:
        ledger.append(entry())
        whole = path.read_bytes()
        ledger.append(entry("bob", status="timeout"))
    both = path.read_bytes()
    for end in range(len(whole) + 1, len(both) - 1):
        path.write_bytes(both[:end])
        with Ledger(tmp_path) as ledger:
            assert ledger.damaged == 1
            assert ledger.result(KEY)["status"] == "graded"
            assert ledger.result(KEY._replace(student="bob")) is None
            ledger.append(entry("bob", status="limit"))
        with Ledger(tmp_path) as ledger:  # what was torn has not spoilt what came after it
            assert ledger.result(KEY._replace(student="bob"))["status"] == "limit"


def test_a_damaged_line_costs_its_own_record_only(tmp_path):
    with Ledger(tmp_path) as ledger:
        for student in ("ada", "bob", "eve"):
            ledger.append(entry(student, scores={"test-one": [0.0, 1.0]}))
    path = tmp_path / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"[0.0, 1.0]", b"[1.0, 1.0]")  # still JSON, but nobody graded this
    path.write_bytes(b"".join(lines))
    with Ledger(tmp_path) as ledger:
        assert ledger.damaged == 1
        assert ledger.result(KEY._replace(student="bob")) is None
        assert ledger.result(KEY._replace(student="eve")) is not None


def test_a_damaged_object_is_not_taken(tmp_path):
    with Ledger(tmp_path) as ledger:
        name = ledger.put(b"a notebook")
        next((tmp_path / "objects").glob("*/*")).write_bytes(b"another")
        with pytest.raises(LedgerError, match="damaged"):
            ledger.get(name)


def test_regrading_voids_results_before_it(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(entry())
        ledger.append(entry("bob"))
        ledger.regrade(TINY, ["ada"])
        assert ledger.result(KEY) is None
        assert ledger.result(KEY._replace(student="bob"))
        ledger.append(entry(status="limit"))
    with Ledger(tmp_path) as ledger:
        assert ledger.result(KEY)["status"] == "limit"
        ledger.regrade("another", None)
        assert ledger.result(KEY)
        ledger.regrade(TINY, None)
        assert ledger.result(KEY._replace(student="bob")) is None


def test_the_second_coordinator_is_refused(tmp_path):
    with Ledger(tmp_path), pytest.raises(LedgerError, match=rf"process {os.getpid()} on"), Ledger(tmp_path):
        pass
    with Ledger(tmp_path):  # free again
        pass


class InstantGrader:
    """Grades without running anything, by the answer's text; a job comes after the result before it was kept."""

    def __init__(self, infra_errors: Iterable[str] = ()) -> None:
        self.graded: list[str] = []
        self.infra_errors = set(infra_errors)

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        for job in jobs:
            self.graded.append(job.key.student)
            if job.key.student in self.infra_errors:
                yield Result(job.key, "infra_error", "the grader broke")
                continue
            notebook = assembly.assemble(TINY, nbformat.reads(job.master, as_version=4), job.files).notebook
            right = any(cell.source == RIGHT for cell in notebook.cells)
            for cell in notebook.cells:
                if is_grade(cell):
                    cell.execution_count = 1
                    if not right:
                        cell.outputs = [
                            nbformat.v4.new_output("error", ename="AssertionError", evalue="no", traceback=[])
                        ]
            yield Result(job.key, **outcome("graded", "", notebook))


@pytest.fixture
def tiny(tmp_path) -> Path:
    root = tiny_course(tmp_path / "course")
    hand_in(root, "ada", answered(root, RIGHT), when="2026-01-01 10:00:00 UTC")
    hand_in(root, "bob", answered(root, "def double(x):\n    return x"))
    return root


def grade(root: Path, grader: InstantGrader, students: list[str] | None = None, regrade: bool = False) -> Grading:
    course = Course(root)
    assignment = course.assignment(TINY)
    with Ledger(course.grading / "ledger") as ledger:
        if regrade:
            ledger.regrade(TINY, students)
        book = Book(course, assignment)
        try:
            grading = Grading(course, assignment, ledger, book, students)
            grading.survey()
            grading.grade(grader)
        finally:
            book.close()
    return grading


EXPECTED = {
    f"{TINY}/ada": (
        "2026-01-01 10:00:00.000000",
        None,
        [("test-one", 1.0, None, None, 0), ("test-two", 2.0, None, None, 0)],
        [("double", None, None)],
    ),
    f"{TINY}/bob": (
        None,
        None,
        [("test-one", 0.0, None, None, 0), ("test-two", 0.0, None, None, 0)],
        [("double", None, None)],
    ),
}


def test_a_second_run_grades_what_is_new_only(tiny):
    grader = InstantGrader()
    grade(tiny, grader)
    assert grader.graded == ["ada", "bob"]
    assert gradebook(tiny) == EXPECTED
    before = (tiny / "grading" / "gradebook.db").read_bytes()
    grade(tiny, grader)
    assert grader.graded == ["ada", "bob"]
    assert (tiny / "grading" / "gradebook.db").read_bytes() == before
    hand_in(tiny, "bob", answered(tiny, RIGHT))
    hand_in(tiny, "eve", answered(tiny, RIGHT))
    grade(tiny, grader)
    assert grader.graded == ["ada", "bob", "bob", "eve"]
    grade(tiny, grader, ["ada"], regrade=True)
    assert grader.graded[4:] == ["ada"]


def test_changed_tests_or_another_secret_grade_anew(tiny, monkeypatch):
    grader = InstantGrader()
    grade(tiny, grader)
    path = tiny / "solutions" / TINY / f"{TINY}.ipynb"
    path.write_text(path.read_text().replace("== 44", "== 44.0"))
    grade(tiny, grader)
    assert len(grader.graded) == 4
    monkeypatch.setenv(SEED_VARIABLE, "another secret")
    grade(tiny, grader)
    assert len(grader.graded) == 6


def test_failures_of_the_grader_are_no_scores_and_are_tried_again(tiny):
    grading = grade(tiny, InstantGrader(infra_errors=["ada"]))
    assert grading.records["ada"]["status"] == "infra_error"
    assert set(gradebook(tiny)) == {f"{TINY}/bob"}
    grader = InstantGrader()
    grade(tiny, grader)
    assert grader.graded == ["ada"]
    assert gradebook(tiny) == EXPECTED


@pytest.mark.parametrize("lost", ["gradebook.db", "autograded", "ledger/objects"])
def test_what_was_lost_is_made_again(tiny, lost):
    grade(tiny, InstantGrader())
    path = tiny / "grading" / lost
    subprocess.run(["rm", "-r", str(path)], check=True)
    grader = InstantGrader()
    grade(tiny, grader)
    assert grader.graded == (["ada", "bob"] if lost == "ledger/objects" else [])
    assert gradebook(tiny) == EXPECTED
    assert (tiny / "grading" / "autograded" / "ada" / TINY / f"{TINY}.ipynb").exists()


def test_an_unknown_student_is_named(tiny):
    with pytest.raises(CourseError, match="no submission of 'adele'"):
        grade(tiny, InstantGrader(), ["adele"])


def test_cells_added_after_the_first_grading_are_refused(tiny):
    grade(tiny, InstantGrader())
    path = tiny / "solutions" / TINY / f"{TINY}.ipynb"
    path.write_text(path.read_text().replace('"grade_id": "test-two"', '"grade_id": "test-three"'))
    with pytest.raises(CourseError, match="have changed since the first submissions were graded"):
        grade(tiny, InstantGrader())


# Killed at any moment.

POINTS = [(os, "write"), (os, "fsync"), (os, "replace"), (os, "rename"), (Session, "commit")]


def in_a_child(task: Callable[[], None]) -> int:
    """Run a task in a fork. Returns its exit code, minus the signal that killed it; 7 if it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            task()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def counted(monkeypatch, at: Callable[[int], None]) -> None:
    """Call `at` with a running number before each write, sync, rename and commit of this process."""
    count = 0

    def wrap(original):
        def wrapped(*arguments, **options):
            nonlocal count
            count += 1
            at(count)
            return original(*arguments, **options)

        return wrapped

    for owner, name in POINTS:
        monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))


def test_killed_at_any_point_it_goes_on_to_the_same_gradebook(tmp_path, monkeypatch):
    template = tiny_course(tmp_path / "course")
    hand_in(template, "ada", answered(template, RIGHT), when="2026-01-01 10:00:00 UTC")
    expected = {name: entry for name, entry in EXPECTED.items() if name.endswith("ada")}
    total = tmp_path / "total"

    def all_points():
        with monkeypatch.context() as patch:
            counted(patch, lambda count: total.write_text(str(count)))
            grade(copy_of(template, tmp_path / "whole"), InstantGrader())

    assert in_a_child(all_points) == 0
    assert gradebook(tmp_path / "whole") == expected
    points = int(total.read_text())
    assert points > 20  # they are what is tried

    for point in range(1, points + 1):
        root = copy_of(template, tmp_path / f"killed{point}")

        def killed(root=root, point=point):
            with monkeypatch.context() as patch:
                counted(patch, lambda count: os.kill(os.getpid(), signal.SIGKILL) if count == point else None)
                grade(root, InstantGrader())

        assert in_a_child(killed) == -signal.SIGKILL, point
        kept = list(records(root / "grading" / "ledger")) if (root / "grading" / "ledger").exists() else []
        grader = InstantGrader()
        grade(root, grader)
        assert gradebook(root) == expected, point
        done = any(record["kind"] == "result" for record in kept)
        assert grader.graded == ([] if done else ["ada"]), point
        folder = root / "grading" / "autograded" / "ada"
        assert [path.name for path in folder.iterdir()] == [TINY], point


def copy_of(course: Path, to: Path) -> Path:
    """A copy of a course whose gradebook's address is its own."""
    subprocess.run(["cp", "-r", str(course), str(to)], check=True)
    return to


def test_a_gradebook_in_use_is_waited_for_then_named(tiny, capsys):
    from warpcourse.grading.course import grade_command

    grade(tiny, InstantGrader())
    hand_in(tiny, "bob", b"no notebook")  # refused without a judge
    with sqlite3.connect(tiny / "grading" / "gradebook.db") as database:
        database.execute("begin exclusive")
        assert grade_command.main([TINY, "--course", str(tiny), "--no-feedback"]) == 2
        database.rollback()
    assert "gradebook cannot be used" in capsys.readouterr().err
