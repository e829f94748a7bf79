"""`python -m warplab grade TOPIC`: grade the submissions of a class."""

import argparse
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from warpcourse.grading.course import feedback, machine, platforms, summary
from warpcourse.grading.course.coordinator import Grading
from warpcourse.grading.course.gradebook import Book
from warpcourse.grading.course.ledger import Ledger, LedgerError
from warpcourse.grading.course.nbgrader_course import Course, CourseError, add_assignment
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.workers import DaskWorkers, Executor, LocalWorkers, NoJudge
from warpcourse.grading.sandbox.zygote_client import SandboxError


def main(argv: list[str] | None = None) -> int:
    """Grade a class. Return 0; 1 if the grader failed on a submission; 2 for wrong use; 130 if interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return _grade(arguments, Course(arguments.course))
    except (CourseError, LedgerError, NoJudge, SandboxError) as error:
        _say(f"error: {error}")
    except KeyboardInterrupt:
        print("\nInterrupted. Results so far are kept; run the same command again to continue.", file=sys.stderr)
        return 130
    except Exception as error:
        if not (machine.at_fault(error) or isinstance(error, OSError | SQLAlchemyError)):
            raise
        _say(f"error: {machine.told(error, arguments.course / 'grading')}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warplab grade",
        description="Grade the submissions of an assignment, each in a sandbox. Results go to nbgrader's gradebook, "
        "feedback to the students. After an interruption, the same command continues where it stopped.",
    )
    add_assignment(parser)
    parser.add_argument(
        "--workers",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="processes (default: one per core)",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="grade on this dask cluster, such as tcp://host:8786")
    parser.add_argument("--require-sandbox", action="store_true", help="refuse to grade without bubblewrap")
    parser.add_argument("--student", action="append", metavar="ID", help="grade only this one; may be repeated")
    parser.add_argument("--regrade", action="store_true", help="grade again what is already graded")
    told = "believe each timestamp.txt, because you wrote them; otherwise only those that nbgrader wrote"
    parser.add_argument("--dated", action="store_true", help=told)
    parser.add_argument("--no-feedback", action="store_true", help="write no feedback pages")
    told = "also write a table of the class; canvas or moodle: what that platform imports, after `collect --roster`"
    parser.add_argument("--csv", type=Path, metavar="FILE", help=told)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {value}")
    return value


def _grade(arguments: argparse.Namespace, course: Course) -> int:
    assignment = course.assignment(course.name_of(arguments.assignment))
    started, failed = time.monotonic(), []
    platform = str(arguments.csv) if str(arguments.csv) in platforms.NAMES else ""
    collected = platforms.Collected.load(course, assignment.name, platform)
    if arguments.csv and arguments.student:
        raise CourseError("--csv is of the whole class, so leave out --student; what is graded is not graded again")
    with Ledger(course.grading / "ledger") as ledger:
        if ledger.damaged:
            lines = "ledger line" if ledger.damaged == 1 else "ledger lines"
            _say(f"Skipped {ledger.damaged} damaged {lines}; those submissions will be graded again.")
        for student in arguments.student or ():
            course.must_have(student, assignment.name)
        if arguments.regrade:
            ledger.regrade(assignment.name, arguments.student)
        book = Book(course, assignment)
        try:
            chosen = None if arguments.student is None else sorted(set(arguments.student))
            grading = Grading(course, assignment, ledger, book, chosen, dated=arguments.dated)
            grading.require_sandbox = arguments.require_sandbox
            grading.survey()
            done, waiting = len(grading.records) - len(grading.unread), len(grading.waiting)
            if not grading.records and not waiting:
                folder = course.submitted("STUDENT", assignment.name)
                raise CourseError(f"nothing has been handed in; submissions belong into {folder}")
            _say(f"{assignment.name}: {waiting} to grade" + (f", {done} already graded" if done else ""))
            if waiting:
                executor = _executor(arguments, waiting)
                progress = ProgressLine(waiting)
                grading.on_result = progress
                grading.grade(executor)
                progress.end()
            standings, due = book.standings(), book.due
            if not arguments.no_feedback:
                failed += _write_feedback(course, grading, standings, arguments.workers)
            empty = collected.empty() - standings.keys()
            missing = (book.students() | collected.missing()) - standings.keys() - empty
        finally:
            book.close()
        records = dict(sorted(grading.records.items()))
        if chosen is None:
            print(summary.text(assignment.name, assignment.master, records, standings, missing, due, empty))
        else:
            print(summary.of_students(records, standings, due))
        if platform:
            _say(collected.write_back(course, assignment.name, records, standings))
        elif arguments.csv:
            summary.write_csv(arguments.csv, assignment.master, records, standings)
    failed += [student for student, record in records.items() if record["status"] == "infra_error"]
    _say(f"{time.monotonic() - started:.0f} s; gradebook: {course.db_url}")
    bare = sorted(student for student, record in records.items() if record["sandbox"] == "limits")
    if bare:
        _say(f"*** WARNING *** graded without a sandbox, so their code could do harm: {_named(bare)}")
    if failed:
        _say(f"The grader failed on {_named(failed)}; read the reasons above, then run the same command again.")
    return 1 if failed else 0


def _executor(arguments: argparse.Namespace, waiting: int) -> Executor:
    """Return who grades, and print what keeps submissions from doing harm. Raises `CourseError` if it is too little."""
    if arguments.scheduler:
        return DaskWorkers(arguments.scheduler, say=_say)
    workers = LocalWorkers(min(arguments.workers, waiting))
    found = workers.look()
    if not found["holds"] and arguments.require_sandbox:
        workers.close()
        raise CourseError(
            "nothing was graded, because --require-sandbox was given and bubblewrap is missing or leaks; install "
            f"it (Debian, Ubuntu: sudo apt install bubblewrap). Without it:\n{found['told']}"
        )
    if found["refusal"]:
        workers.close()
        raise CourseError(found["refusal"])
    _say(found["told"] if found["holds"] else f"\n*** WARNING ***\n{found['told']}\n")
    return workers


def _write_feedback(course: Course, grading: Grading, standings: dict, processes: int) -> list[str]:
    """Write the pages and return the students whose pages could not be written."""
    mine = [standings[student] for student in grading.records if student in standings]
    pages = list(feedback.write_pages(course, grading.assignment, grading.ledger, mine, processes))
    problems = {student: problem for student, problem in pages if problem}
    if len(pages) > len(problems):
        _say(f"{len(pages) - len(problems)} feedback pages written")
    for student, problem in problems.items():
        folder = course.feedback(student, grading.assignment.name)
        _say(f"No feedback page for {_named([student])} ({problem}); move what is in {folder} elsewhere")
    return sorted(problems)


class ProgressLine:
    """Progress of the grading: one changing line on a terminal, elsewhere a new line now and then."""

    EVERY = 15.0  # seconds between lines if the output is no terminal

    def __init__(self, total: int) -> None:
        self.total, self.done, self.failed = total, 0, 0
        self.started = self.said = time.monotonic()
        self.live = sys.stderr.isatty()

    def __call__(self, record: dict[str, Any]) -> None:
        self.done += 1
        self.failed += record["status"] == "infra_error"
        now = time.monotonic()
        if not self.live and now - self.said < self.EVERY and self.done < self.total:
            return
        self.said = now
        left = (now - self.started) / self.done * (self.total - self.done)
        minutes, seconds = divmod(round(left), 60)
        remaining = f"about {minutes} min {seconds:02} s left" if self.done < self.total else "done"
        text = f"{self.done}/{self.total} graded, {remaining}"
        text += f", the grader failed on {self.failed}" if self.failed else ""
        print(f"\r{text:<70}" if self.live else text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.live:
            print(file=sys.stderr)


def _named(students: Iterable[str]) -> str:
    return ", ".join(on_terminal(student, lines=False) for student in sorted(set(students)))


def _say(text: str) -> None:
    start = "\r" if sys.stderr.isatty() else ""  # over the line of `ProgressLine`
    print(f"{start}{on_terminal(text):<{70 if start else 0}}", file=sys.stderr, flush=True)
