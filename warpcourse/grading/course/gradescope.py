"""Grade what Gradescope hands over, and write the results as it reads them.

    python -m warpcourse.grading.course.gradescope FOLDER     run_autograder, in a container of its own

    FOLDER/submission              what the student uploaded; names and archives as `collect` takes them
    FOLDER/results/results.json    a test for each graded cell, with its points and what the student is told

The submission runs as in `grade`: in bubblewrap or, where a container allows none, as a user without an account, who
can write neither the results nor to the grader. Nothing that it prints or writes is read. If the grader itself
fails there is no results.json: Gradescope then gives no points and asks for the instructor, who sees what is printed.

Source: gradescope-autograders.readthedocs.io, Autograder Specifications.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.exercises.score import cell_id
from warpcourse.grading.course import summary
from warpcourse.grading.course.archives import of_class
from warpcourse.grading.course.collect_command import Collector, Handed
from warpcourse.grading.course.coordinator import Grading
from warpcourse.grading.course.gradebook import Book
from warpcourse.grading.course.ledger import Ledger, write_synced
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.workers import LocalWorkers
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.sandbox.isolation import find, only_root_reads
from warpcourse.paths import COURSE

STUDENT = "submission"
VISIBILITY = ("visible", "after_due_date", "after_published")


class NoGrade(Exception):
    """The grader failed, and the submission is not at fault. The message says why, for the instructor."""


def main(argv: list[str] | None = None) -> int:
    """Grade the submission. Return 0, or 1 without results."""
    parser = argparse.ArgumentParser(description="Grade a submission as Gradescope lays it out.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hidden", choices=VISIBILITY, default=VISIBILITY[0])
    arguments = parser.parse_args(argv)
    folder = arguments.folder.resolve()
    results = folder / "results" / "results.json"
    results.parent.mkdir(exist_ok=True)
    results.unlink(missing_ok=True)
    try:
        _close(folder)
        course = Course(COURSE)
        (name,) = course.assignments()
        found = _graded(course, name, folder / "submission", arguments.hidden)
    except NoGrade as error:
        print(f"not graded: {error}")
        return 1
    write_synced(results, json.dumps(found, indent=1).encode(), 0o600)
    print(f"{name}: {sum(test['score'] for test in found['tests']):g} points; {found['output']}")
    return 0


def _close(folder: Path) -> None:
    """Keep the submission's user out of what holds answers, results or what others wrote. Raises `NoGrade`."""
    if find().kind == "limits":
        if os.geteuid() != 0:
            raise NoGrade(f"without bubblewrap only root can keep a submission off its results. {find().describe()}")
        if closed := only_root_reads():
            raise NoGrade(f"only root can read {closed}, so a submission would read all files. Use /usr/bin's Python.")
    for path in (folder / "results", folder / "submission", COURSE / "solutions", COURSE / "grading"):
        path.chmod(0o700)
    for path in (folder / "submission_metadata.json", COURSE / "grading" / "secret"):
        if path.exists():
            path.chmod(0o600)


def _graded(course: Course, name: str, submission: Path, hidden: str) -> dict[str, Any]:
    """Return what results.json holds. Raises `NoGrade`."""
    started, master = time.monotonic(), course.assignment(name).master
    for place in (course.submitted(STUDENT, name), course.grading / "ledger"):  # of a run before this one
        shutil.rmtree(place, ignore_errors=True)
    handed = Handed(entries=[((0, 0), entry) for entry in of_class(submission)])
    if not Collector(course, name).keep(STUDENT, handed):
        advice = f"Hand in {name}.ipynb, the notebook that you were given, with your answers in it."
        return _results(master, {}, {}, hidden, [*handed.notes, advice], started)
    with Ledger(course.grading / "ledger") as ledger:
        book = Book(course, course.assignment(name))
        try:
            grading = Grading(course, course.assignment(name), ledger, book, [STUDENT])
            grading.survey()
            grading.grade(LocalWorkers(1))
        finally:
            book.close()
        record = grading.records[STUDENT]
        if record["status"] == "infra_error":
            raise NoGrade(record["reason"])
        executed = nbformat.reads(ledger.get(record["notebook"]).decode(), as_version=4)
    told = {str(cell_id(cell)): _told(cell) for cell in executed.cells}
    notes = [note for note in (record["reason"], *handed.notes, *record["notes"]) if note]
    return _results(master, record["scores"], told, hidden, notes, started)


def _told(cell: NotebookNode) -> str:
    """Return what the student is told about a test cell, as on a feedback page: of a hidden test no input or value."""
    return "\n".join(output.evalue for output in cell.get("outputs", []) if output.output_type == "error")


def _results(
    master: NotebookNode, scores: dict, told: dict[str, str], hidden: str, notes: list[str], started: float
) -> dict[str, Any]:
    cells, tests = {str(cell_id(cell)): cell for cell in master.cells}, []
    for number, problem in enumerate(summary.problems(master), 1):
        for part, cell in enumerate(problem.cells, 1):
            points, possible = scores.get(cell, (0.0, float(cells[cell].metadata.nbgrader.points)))
            covered = without_hidden_tests(cells[cell].source) != cells[cell].source
            tests.append(
                {
                    "number": f"{number}.{part}",
                    "name": f"{problem.title}: {cell}" + " (with hidden tests)" * covered,
                    "score": points,
                    "max_score": possible,
                    "status": "passed" if points >= possible else "failed",
                    "output": told.get(cell, ""),
                    "visibility": hidden if covered else VISIBILITY[0],
                }
            )
            if scores and cell not in scores:
                tests[-1]["output"] = "Your instructor grades this answer."
    return {
        "execution_time": round(time.monotonic() - started),
        "output": "\n".join(on_terminal(note, lines=False) for note in notes) or "The notebook ran to its end.",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


if __name__ == "__main__":
    sys.exit(main())
