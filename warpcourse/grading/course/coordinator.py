"""The coordinator: the one process that writes. It hands out submissions, records results in the ledger, merges them.

If it is killed at any moment, the next run continues from the ledger. A submission whose result is there is not graded
again, and a result that is not yet in the gradebook is merged, even if its merge was under way.
"""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.exercises.score import cell_id
from warpcourse.grading.course import machine
from warpcourse.grading.course.gradebook import Book, write_autograded
from warpcourse.grading.course.ledger import Ledger, write_synced
from warpcourse.grading.course.nbgrader_course import Assignment, Course, CourseError
from warpcourse.grading.course.submissions import Submission, beside, problem_with_name, read
from warpcourse.grading.course.workers import Executor, NoJudge
from warpcourse.grading.judge import inert
from warpcourse.grading.judge.assembly import refused
from warpcourse.grading.judge.jobs import MAX_TEXT, SEED_VARIABLE, Job, Key, Result, outcome
from warpcourse.grading.sandbox.limits import SubmissionLimits

HELD_BYTES = 1 << 30  # of submissions that wait to be graded


def course_secret(course: Course) -> str:
    """Return the seed of hidden inputs: WARPLAB_GRADING_SEED, else grading/secret, which is drawn the first time."""
    given = os.environ.get(SEED_VARIABLE)
    if given:
        return given
    path = course.grading / "secret"
    if not path.exists():
        write_synced(path, f"{secrets.token_hex(32)}\n".encode(), 0o600)
    text = path.read_text().strip()
    if not text:
        raise CourseError(f"{path} is empty; remove it to have a new secret drawn, or set {SEED_VARIABLE}.")
    return text


def _failed(student: str, reason: str) -> dict[str, Any]:
    """Return a record, which is in no ledger, of a submission that could not even be read or entered."""
    unknown: dict[str, Any] = {"scores": {}, "failures": {}, "kinds": {}, "notes": [], "seconds": 0.0, "sandbox": ""}
    return {"kind": "result", "student": student, "status": "infra_error", "reason": reason, "notebook": None} | unknown


def _not_graded(result: Result, cells: list[str]) -> Result:
    """Return what becomes of a submission if the simulator fails in `cells` whoever answers."""
    last = result.traces[cells[0]].strip().splitlines()[-1]
    reason = f"The simulator fails in {', '.join(cells)}, on the instructor's solution, too: {last}"[:MAX_TEXT]
    return Result(
        result.key, "infra_error", reason, traces=result.traces, seconds=result.seconds, sandbox=result.sandbox
    )


def tests_hash(assignment: Assignment, secret: str) -> str:
    """Return a hash of what a score depends on besides the submission: tests, instructor's files, secret."""
    return hmac.new(secret.encode(), assignment.hash.encode(), hashlib.sha256).hexdigest()


@dataclass
class Grading:
    """The grading of one assignment. `students`: whom to grade, None for all who handed in. `dated`: as in `read`."""

    course: Course
    assignment: Assignment
    ledger: Ledger
    book: Book
    students: list[str] | None = None
    limits: SubmissionLimits = field(default_factory=SubmissionLimits)
    require_sandbox: bool = False
    dated: bool = False
    on_result: Callable[[dict[str, Any]], None] = lambda record: None

    def __post_init__(self) -> None:
        self._secret = course_secret(self.course)
        self._tests = tests_hash(self.assignment, self._secret)
        self._master = nbformat.writes(self.assignment.master)
        self._held: dict[str, Submission] = {}  # submissions that have been read and not yet graded
        self.records: dict[str, dict[str, Any]] = {}  # student -> the current result
        self.waiting: list[str] = []  # students to grade
        self.unread: set[str] = set()  # students whose submissions could not even be read

    def survey(self) -> None:
        """Find the submissions, take results from the ledger, and merge those that are not yet merged."""
        for student in self.students or ():
            self.course.must_have(student, self.assignment.name)
        present = self.course.students(self.assignment.name)
        held = self.book.holds()
        timestamps = {}
        for student in present if self.students is None else self.students:
            with self._apart(student):
                if problem := problem_with_name(student):
                    self.records[student] = _failed(student, problem)
                    self.unread.add(student)
                    continue
                submission = self._read(student)
                record = self.ledger.result(self._key(submission))
                if record is None or not self._counts(record):
                    self.waiting.append(student)
                    continue
                self.records[student] = record
                timestamps[student] = submission.timestamp
                if student not in held or self.ledger.merged(self.assignment.name, student) != record["number"]:
                    self._merge(record, submission)
                elif not self._autograded(student).exists():
                    self._write(record, submission, self._trimmed(record))
                self._held.pop(student, None)
        self.book.update_lateness(timestamps)

    def _counts(self, record: dict[str, Any]) -> bool:
        """Return whether a result in the ledger need not be made again."""
        bare = self.require_sandbox and record["sandbox"] == "limits"
        return not bare and record["status"] != "infra_error" and self.ledger.has(record["notebook"])

    def grade(self, executor: Executor) -> None:
        """Grade the waiting students. Each result is in ledger and gradebook before the next one is taken."""
        doubtful = []
        for result in self._refused():
            self._keep(result)
        if self.waiting:
            for result in executor.run(self._jobs()):
                if result.traces:
                    doubtful.append(result)
                else:
                    self._keep(result)
        if doubtful:
            traces = self._traces_of_solution(executor)
            for result in doubtful:
                common = sorted(result.traces.keys() & traces)
                self._keep(_not_graded(result, common) if common else result)

    def _traces_of_solution(self, executor: Executor) -> set[str]:
        """Return the test cells in which the simulator fails on the instructor's own kernels, too."""
        name = f"{self.assignment.name}.ipynb"
        files = {name: (self.course.source(self.assignment.name) / name).read_bytes()}
        key = Key(self.assignment.name, "the instructor's solution", "", self._tests)
        (result,) = executor.run([self._job(key, files)])
        return set(result.traces) if result.notebook else {str(cell_id(cell)) for cell in self.assignment.master.cells}

    @contextlib.contextmanager
    def _apart(self, student: str) -> Iterator[None]:
        """Keep what one submission does to the grader from the others: it becomes that student's infra_error.

        What no submission can be the cause of, such as a full disk or a gradebook in use, is raised.
        """
        try:
            yield
        except (CourseError, NoJudge):
            raise
        except Exception as error:
            if machine.at_fault(error):
                raise
            told = str(error).strip().splitlines() or [""]
            reason = f"{type(error).__name__}: {told[0]}"[:MAX_TEXT]
            folder = self.course.submitted(student, self.assignment.name)
            advice = f"If that happens again, the cause is in {folder}: have it handed in anew, or grade it by hand."
            self.records[student] = _failed(student, f"{reason} {advice}")
            self.unread.add(student)
            if student in self.waiting:
                self.on_result(self.records[student])

    def _refused(self) -> Iterator[Result]:
        """Yield results of submissions that need no judge."""
        for student in list(self.waiting):
            with self._apart(student):
                submission = self._read(student)
                if submission.unusable:
                    self.waiting.remove(student)
                    reason, status = submission.unusable
                    fields = (
                        {"status": status, "reason": reason}
                        if status == "infra_error"
                        else outcome(status, reason, refused(self.assignment.master, reason))
                    )
                    yield Result(self._key(submission), notes=list(submission.notes), **fields)

    def _jobs(self) -> Iterator[Job]:
        """Yield jobs as workers become free, so that a class need not fit into memory."""
        ours = (*self.assignment.files, f"{self.assignment.name}.ipynb")
        for student in self.waiting:
            with self._apart(student):
                submission = self._read(student)
                yield self._job(self._key(submission), beside(submission.files, ours))

    def _job(self, key: Key, files: dict[str, bytes]) -> Job:
        return Job(
            key,
            self._master,
            files,
            self.assignment.files,
            self._secret,
            self.limits,
            int(self.course.config.Execute.get("timeout") or Job.cell_seconds),
            self.require_sandbox,
        )

    def _read(self, student: str) -> Submission:
        """Return what a student handed in. It is read from disk once, unless a class hands in more than HELD_BYTES."""
        if (submission := self._held.get(student)) is None:
            submission = read(student, self.course.submitted(student, self.assignment.name), self.dated)
            if submission.size + sum(held.size for held in self._held.values()) <= HELD_BYTES:
                self._held[student] = submission
        return submission

    def _key(self, submission: Submission) -> Key:
        return Key(self.assignment.name, submission.student, submission.hash, self._tests)

    def _autograded(self, student: str) -> Path:
        return self.course.autograded(student, self.assignment.name) / f"{self.assignment.name}.ipynb"

    def _keep(self, result: Result) -> None:
        with self._apart(result.key.student):
            submission = self._read(result.key.student)
            record = {"kind": "result", **result.key._asdict()}
            for name in ("status", "reason", "scores", "failures", "kinds", "traces", "seconds", "sandbox"):
                record[name] = getattr(result, name)
            record["notes"] = [*submission.notes, *(note for note in result.notes if note not in submission.notes)]
            record["notebook"] = record["kernels"] = None
            if result.notebook is not None:
                record["notebook"] = self.ledger.put(result.notebook.encode())
            if result.kernels:
                record["kernels"] = self.ledger.put(json.dumps(result.kernels, sort_keys=True).encode())
            record = self.ledger.append(record)
            if record["status"] != "infra_error":
                self._merge(record, submission)
            self.records[result.key.student] = record
            self._held.pop(result.key.student, None)
            self.on_result(record)

    def _merge(self, record: dict[str, Any], submission: Submission) -> None:
        """Write the gradebook, then the autograded folder, then record in the ledger that both are done."""
        trimmed = self._trimmed(record)
        graded = any(cell.get("execution_count") for cell in trimmed.cells)
        self.book.merge(submission.student, trimmed, submission.timestamp, graded)
        self._write(record, submission, trimmed)
        merged = {"assignment": self.assignment.name, "student": submission.student, "result": record["number"]}
        self.ledger.append({"kind": "merged", **merged})

    def _trimmed(self, record: dict[str, Any]) -> NotebookNode:
        """Return the executed notebook, with the grader's notes for the student as its first cell."""
        executed = nbformat.reads(self.ledger.get(record["notebook"]).decode(), as_version=4)
        notes = [note for note in (record["reason"], *record["notes"]) if note]
        if notes:
            lines = ["**Notes from the grader**", "", *(f"- {inert.plain(note)}" for note in notes)]
            executed.cells.insert(0, nbformat.v4.new_markdown_cell("\n".join(lines), id="notes-from-the-grader"))
        return self.book.trimmed(executed)

    def _write(self, record: dict[str, Any], submission: Submission, trimmed: NotebookNode) -> None:
        files = submission.files if submission.hash == record["submission"] else {}
        write_autograded(self.course, self.assignment, submission.student, trimmed, files)
