"""Classes graded by real judges: every kind of submission, killed processes, a cluster, and nbgrader beside it."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from distributed import Client
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde

from tests.support.class_harness import (
    CANARY,
    RIGHT,
    TINY,
    answered,
    gradebook,
    hand_in,
    scores,
    tiny_cell,
    tiny_course,
    tiny_release,
)
from tests.support.exercise_answers import cells_by_id
from tests.support.grading_harness import HereWorkers
from tests.support.waiting import HANG, until
from warpcourse.grading.course import grade_command
from warpcourse.grading.course.ledger import records
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.course.workers import DaskWorkers, NoJudge
from warpcourse.paths import COURSE
from warpcourse.processes.tree import descendants, is_running, processes

WRONG = "def double(x):\n    return x"
BOTH, FIRST, NONE = [1.0, 2.0], [1.0, 0.0], [0.0, 0.0]


class Expected(NamedTuple):
    """Scores of the two tests, status, and a word of the reason or of the notes."""

    scores: list[float]
    status: str = "graded"
    word: str = ""


EXPECTED = {
    "another": Expected(NONE, "student_crash", "notebook of another"),
    "blank": Expected(NONE),
    "cell-renamed": Expected(BOTH, word="'double' has another name, 'mine'"),
    "copied-right": Expected(BOTH, word="2 times"),
    "deleted": Expected(BOTH, word="put back"),
    "edited-right": Expected(BOTH, word="edited"),
    "edited-wrong": Expected(NONE, word="edited"),
    "exits": Expected(NONE, "student_crash", "ended"),
    "half": Expected(FIRST),
    "link": Expected(BOTH, word="link"),
    "list": Expected(NONE, "student_crash", "not a Jupyter notebook"),
    "missing": Expected(NONE, "student_crash", "is missing"),
    "moved": Expected(BOTH, word="moved"),
    "nested": Expected(NONE, "student_crash", "not a Jupyter notebook"),
    "nameless": Expected(BOTH, word="lost the names that nbgrader gives to cells"),
    "no-answer": Expected(NONE, word="answer cell 'double' is missing"),
    "raises": Expected(BOTH),
    "renamed": Expected(BOTH, word="homework.ipynb has its cells"),
    "right": Expected(BOTH),
    "surrogate": Expected(BOTH),
    "torn": Expected(NONE, "student_crash", "not a Jupyter notebook"),
    "warns": Expected(BOTH),
    "vast": Expected(NONE, "limit", "33 MiB"),
    "wrong": Expected(NONE),
}


def all_kinds(root: Path) -> Path:
    """Make a tiny course in which each kind of submission was handed in."""
    course = tiny_course(root)

    def submit(student, answer=RIGHT, edit=None):
        return hand_in(course, student, answered(course, answer, edit))

    def delete(notebook):
        notebook.cells = [cell for cell in notebook.cells if "test" not in cell.id]

    def edit(notebook):
        for name in ("test-one", "test-two"):
            cells_by_id(notebook)[name].source = "pass"

    def move(notebook):
        notebook.cells.reverse()

    def copy_tests(notebook):
        for name in ("test-one", "double"):
            notebook.cells.append(nbformat.from_dict({**cells_by_id(notebook)[name], "id": f"copy-of-{name}"}))

    def remove_answer(notebook):
        notebook.cells.remove(cells_by_id(notebook)["double"])

    def rename(notebook):
        cells_by_id(notebook)["double"].metadata.nbgrader.grade_id = "mine"

    def save_elsewhere(notebook):
        """As Colab and VS Code have done."""
        for cell in notebook.cells:
            cell.metadata = {}
            cell.pop("id")
        notebook.nbformat_minor = 0

    def raise_later(notebook):
        notebook.cells.append(nbformat.v4.new_code_cell("1 / 0"))

    submit("right")
    submit("wrong", WRONG)
    submit("half", "def double(x):\n    return {2: 4, 21: 42}.get(x)")
    hand_in(course, "blank", tiny_release(course))
    submit("copied-right", edit=copy_tests)
    submit("deleted", edit=delete)
    submit("edited-right", edit=edit)
    submit("edited-wrong", WRONG, edit)
    submit("exits", f"{RIGHT}\n\nimport os\nos._exit(0)")
    submit("link").joinpath("passwd").symlink_to("/etc/passwd")
    submit("moved", edit=move)
    submit("no-answer", edit=remove_answer)
    submit("raises", edit=raise_later)
    submit("cell-renamed", edit=rename)
    submit("nameless", edit=save_elsewhere)
    folder = submit("renamed")
    folder.joinpath(f"{TINY}.ipynb").rename(folder / "homework.ipynb")
    folder = submit("missing")
    folder.joinpath(f"{TINY}.ipynb").rename(folder / "homework.txt")
    text = nbformat.writes(answered(course, RIGHT + "  # mark"))
    hand_in(course, "surrogate", text.replace("# mark", r"# \ud800").encode())
    hand_in(course, "torn", text.encode()[:-100])
    hand_in(course, "list", b"[1, 2]")
    hand_in(course, "nested", b'{"nbformat": 4, "nbformat_minor": 5, "cells": ' + b"[" * 200_000)
    submit("warns", "import warnings\n\n\ndef double(x):\n    warnings.warn(str(x))\n    return 2 * x")
    hand_in(course, "vast", b" " * (33 * 2**20))
    other = nbformat.v4.new_notebook(cells=[tiny_cell("elsewhere", "1", solution=True)])
    hand_in(course, "another", other)
    return course


SOME = ("another", "edited-wrong", "exits", "half", "link", "missing", "moved", "nested", "no-answer")
SOME += ("renamed", "right", "vast", "wrong")


FEW = ("edited-wrong", "exits", "half", "missing", "moved", "right", "wrong")


def some_kinds(root: Path, students: tuple[str, ...] = SOME) -> Path:
    """Make the same course with fewer students, for tests that are not about the submissions."""
    course = all_kinds(root)
    for folder in (course / "grading" / "submitted").iterdir():
        if folder.name not in students:
            shutil.rmtree(folder)
    return course


def handed_in(course: Path) -> dict[str, Expected]:
    return {path.name: EXPECTED[path.name] for path in (course / "grading" / "submitted").iterdir()}


def results(course: Path) -> dict[str, dict]:
    """Student -> the last result in the ledger."""
    found = records(course / "grading" / "ledger")
    return {record["student"]: record for record in found if record["kind"] == "result"}


def assert_as_expected(course: Path) -> None:
    assert scores(course) == {student: expected.scores for student, expected in handed_in(course).items()}
    for student, record in results(course).items():
        told = " ".join([record["reason"], *record["notes"]])
        assert record["status"] == EXPECTED[student].status, (student, told)
        assert EXPECTED[student].word in told, (student, told)
        assert record["sandbox"] in ("bubblewrap", "limits", ""), student


@pytest.fixture
def here(monkeypatch, zygotes):
    """Let the command grade in this process. The tests that kill something have judges in processes of their own."""
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))


def test_every_kind_of_submission_gets_its_score_and_a_reason(tmp_path, capsys, here):
    course = all_kinds(tmp_path)
    table = tmp_path / "class.csv"
    assert grade_command.main([TINY, "--course", str(course), "--workers", "1", "--csv", str(table)]) == 0
    assert_as_expected(course)
    assert not any(grade[4] for entry in gradebook(course).values() for grade in entry[2])  # nothing left to do by hand

    with open(table, newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows.keys() == EXPECTED.keys()
    for student, row in rows.items():
        assert float(row["points"]) == sum(EXPECTED[student].scores)
        assert (row["possible"], row["status"]) == ("3", EXPECTED[student].status)
    summary = capsys.readouterr().out
    assert f"{TINY}: {len(EXPECTED)} submissions" in summary
    assert "1. Double" in summary
    assert "vast: limit. " in summary

    for student in EXPECTED:
        page = (course / "grading" / "feedback" / student / TINY / f"{TINY}.html").read_text()
        assert f"Score: {float(sum(EXPECTED[student].scores))} / 3.0" in page
        assert "HIDDEN TESTS" not in page
        assert CANARY not in page
        text = html.unescape(re.sub("<[^>]*>", "", page))
        assert "assert double(2) == 4" in text
        assert EXPECTED[student].word in text
        assert ("Notes from the grader" in text) == bool(EXPECTED[student].word)
    assert not (course / "grading" / "autograded" / "link" / TINY / "passwd").exists()


# The command, which stops itself when the ledger has so many results by judges.
STOPPING = """
import os, signal, sys
from warplab.__main__ import main
from warpcourse.grading.course.coordinator import Grading
keep, stops = Grading._keep, list(map(int, sys.argv.pop(1).split()))
def keep_and_stop(self, result):
    keep(self, result)
    if sum(record["sandbox"] != "" for record in self.records.values()) in stops:
        os.kill(os.getpid(), signal.SIGSTOP)
Grading._keep = keep_and_stop
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def grading(course: Path, *arguments: str, stops: str = "") -> Iterator[subprocess.Popen]:
    """Run the command in a process of its own, of which nothing is left afterwards.

    `stops`: after so many results by judges it stops itself, at each of these numbers.
    """
    options = [TINY, "--course", str(course), "--no-feedback", *arguments]
    command = [sys.executable, "-c", STOPPING, stops, "grade", *options]
    process = subprocess.Popen(command, cwd=COURSE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until_stopped(process: subprocess.Popen) -> None:
    def stopped() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return processes().get(process.pid, [""])[0] == "T"

    until(stopped, "the next result")


def below(pid: int) -> list[int]:
    """Return the processes that a process started, and theirs."""
    return descendants(pid, processes())


def wait_until_all_end(pids: list[int]) -> None:
    until(lambda: not any(is_running(pid) for pid in pids), f"the end of {pids}")


def test_a_killed_grading_goes_on_and_leaves_no_process(tmp_path, here):
    course = some_kinds(tmp_path, FEW)
    with grading(course, "--workers", "2", stops="3") as process:
        wait_until_stopped(process)
        started = below(process.pid)
        assert len(started) >= 4  # two judges, and below each a sandbox
        process.kill()
        process.wait()
        wait_until_all_end(started)
    before = results(course)
    assert sum(record["sandbox"] != "" for record in before.values()) == 3
    assert grade_command.main([TINY, "--course", str(course), "--no-feedback"]) == 0
    assert_as_expected(course)
    again = [record["number"] for record in results(course).values() if record["student"] in before]
    assert sorted(again) == sorted(record["number"] for record in before.values())  # not graded twice


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Start a dask cluster. Yields the scheduler's address and the processes, the scheduler first."""
    file = folder / "scheduler.json"
    options = ["--scheduler-file", str(file)]
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    one = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    commands = [["dask_scheduler", "--port", "0", *local], *[["dask_worker", *one, *local]] * workers]
    log = open(folder / "log", "wb")  # noqa: SIM115 - closed below, after the processes that write to it
    parts = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", *rest, *options], cwd=COURSE, stdout=log, stderr=log
        )
        for name, *rest in commands
    ]
    try:
        until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler")
        address = json.loads(file.read_text())["address"]
        with Client(address, timeout=HANG, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=HANG)
        yield address, parts
    finally:
        for part in parts:
            part.kill()
            part.wait()
        log.close()


def test_a_cluster_loses_a_worker_then_its_scheduler(tmp_path):
    """The other worker goes on; without a scheduler the command says so, and the ledger keeps what was graded."""
    course = some_kinds(tmp_path / "course")
    with cluster(tmp_path, 2) as (address, (scheduler, *workers)):
        with grading(course, "--scheduler", address, stops="2 8") as process:
            wait_until_stopped(process)
            victim = next(worker for worker in workers if below(worker.pid))
            judges = below(victim.pid)
            victim.kill()
            victim.wait()
            wait_until_all_end(judges)
            process.send_signal(signal.SIGCONT)
            wait_until_stopped(process)
            judges = below(next(worker.pid for worker in workers if worker is not victim))
            scheduler.kill()
            process.send_signal(signal.SIGCONT)
            output, _ = process.communicate(timeout=HANG)
        assert process.returncode == 2, output
        said = [line for line in output.splitlines() if not re.match(rf"{TINY}: |\d+/\d+ graded", line)]
        lost, error = said
        assert re.fullmatch(
            r"Worker tcp://127\.0\.0\.1:\d+ was lost; what it was grading goes to another one: .+", lost
        )
        assert set(lost.rpartition(": ")[2].split(", ")) <= EXPECTED.keys()
        assert error == f"error: the scheduler at {address} was lost; restart it and run the same command again"
        found = results(course)
        assert sum(record["sandbox"] != "" for record in found.values()) >= 8
    wait_until_all_end(judges)
    for student, record in found.items():
        assert (list(record["scores"].values()), record["status"]) == (
            [[points, possible] for points, possible in zip(EXPECTED[student].scores, BOTH, strict=True)],
            EXPECTED[student].status,
        )


def test_a_scheduler_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NoJudge, match="no dask scheduler answers at tcp:"):
        list(DaskWorkers("tcp://127.0.0.1:9", wait_seconds=0.5).run([]))


def test_lateness_and_grades_by_hand_are_as_nbgrader_keeps_them(tmp_path, capsys, here):
    """A class graded again after the due date was set and some grades were given by hand: by us, by nbgrader alone."""
    ours = tiny_course(tmp_path / "ours", "c.LateSubmissionPlugin.penalty_method = 'zero'")
    hand_in(ours, "late", answered(ours, RIGHT), when="2026-01-02 12:30:00.000000 UTC")
    hand_in(ours, "extended", answered(ours, RIGHT), when="2026-01-02 12:30:00 UTC")
    hand_in(ours, "unknown", answered(ours, WRONG))
    assert grade_command.main([TINY, "--course", str(ours), "--workers", "1", "--no-feedback"]) == 0
    assert {entry[1] for entry in gradebook(ours).values()} == {None}  # no due date, no penalty

    with Gradebook(f"sqlite:///{ours}/grading/gradebook.db", "warplab") as book:
        book.update_or_create_assignment(TINY, duedate="2026-01-02 12:00:00 UTC")
        book.grant_extension(TINY, "extended", hours=1)
        grade = book.find_grade("test-one", TINY, TINY, "unknown")
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 0.5, 0.25, False
        book.find_comment("double", TINY, TINY, "unknown").manual_comment = "Look at 2 again."
        book.db.commit()
    stock = tmp_path / "stock"
    shutil.copytree(ours, stock)

    autograde(stock)
    assert grade_command.main([TINY, "--course", str(ours), "--workers", "1", "--regrade"]) == 0
    found = gradebook(ours)
    assert found == gradebook(stock)
    assert found[f"{TINY}/late"][:2] == ("2026-01-02 12:30:00.000000", 3.0)
    assert found[f"{TINY}/extended"][:2] == ("2026-01-02 12:30:00.000000", None)
    assert found[f"{TINY}/unknown"][2][0] == ("test-one", 0.0, 0.5, 0.25, 1)
    page = (ours / "grading" / "feedback" / "unknown" / TINY / f"{TINY}.html").read_text()
    assert "Score: 0.75 / 3.0" in page
    assert "Look at 2 again." in page

    # A grade by hand is looked at again when the submission was graded again, and not merely because somebody ran us.
    with Gradebook(f"sqlite:///{ours}/grading/gradebook.db", "warplab") as book:
        book.find_grade("test-one", TINY, TINY, "unknown").needs_manual_grade = False
        book.db.commit()
    capsys.readouterr()
    assert grade_command.main([TINY, "--course", str(ours)]) == 0
    assert gradebook(ours)[f"{TINY}/unknown"][2][0] == ("test-one", 0.0, 0.5, 0.25, 0)
    assert "late: late by 30 min, penalty 3" in capsys.readouterr().out


def autograde(root: Path) -> None:
    """`nbgrader autograde --force` with nbgrader's own preprocessors."""
    course = Course(root)
    course.config.pop("Autograde")
    course.directory.assignment_id = TINY
    Autograde(coursedir=course.directory, config=course.config, force=True).start()
