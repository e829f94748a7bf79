"""Jobs for a judge and their results: plain data, the same over a pipe and over a cluster."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import determine_grade, is_grade

from warpcourse.exercises.score import cell_id
from warpcourse.grading.sandbox.limits import WIDE, SubmissionLimits

# graded: ran to its end. student_crash: could not be run to its end, or is no notebook of this assignment. timeout: ran
# out of time. limit: out of memory, processes, output or size. These four give scores. infra_error: the grader itself
# failed; no score, a person must look.
STATUSES = ("graded", "student_crash", "timeout", "limit", "infra_error")

SEED_VARIABLE = "WARPLAB_GRADING_SEED"  # the course's secret, from which hidden inputs are drawn
MAX_TEXT = 500  # characters of one failure in a result


class Key(NamedTuple):
    """What a result belongs to. `submission`, `tests`: hashes in hex, the second with the course's secret."""

    assignment: str
    student: str
    submission: str
    tests: str


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    `master`: the instructor's notebook as JSON, with hidden tests. `files`: the student's, path -> content. `given`:
    the instructor's, which take precedence. `seed`: the course's secret for hidden inputs. `cell_seconds`: time limit
    of one cell. `require_sandbox`: refuse to grade without one.
    """

    key: Key
    master: str
    files: dict[str, bytes]
    given: dict[str, bytes]
    seed: str
    limits: SubmissionLimits = field(default_factory=SubmissionLimits)
    cell_seconds: int = 120
    require_sandbox: bool = False

    @property
    def longest_seconds(self) -> float:
        """Return how long the student's cells and the test cells may take together on a machine with much to do."""
        cells = json.loads(self.master)["cells"]
        tests = sum(bool(cell["metadata"].get("nbgrader", {}).get("grade")) for cell in cells)
        return WIDE * (self.limits.wall_seconds + min(tests * self.cell_seconds, self.limits.judge_seconds))

    def as_message(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in ("master", "seed", "cell_seconds", "require_sandbox")}
        files = {name: _encoded(getattr(self, name)) for name in ("files", "given")}
        return {"key": list(self.key), "limits": self.limits.as_dict(), **fields, **files}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Job:
        converted = {
            "key": Key(*message["key"]),
            "limits": SubmissionLimits(**message["limits"]),
            "files": _decoded(message["files"]),
            "given": _decoded(message["given"]),
        }
        return cls(**{**message, **converted})


@dataclass(frozen=True)
class Result:
    """The result of grading a submission.

    `status`: one of `STATUSES`. `reason`: for the student, "" if the notebook ran to its end. `scores`: test cell ->
    (points, possible). `failures`: test cell -> first line of what went wrong. `kinds`: test cell -> kind of failure, a
    key of `verdicts.SENTENCES` or "process", if known. `notes`: see `assembly.Assembled`. `notebook`: as executed, in
    JSON; None for an infra_error. `kernels`: name -> PTX, for the report on similarity. `traces`: test cell -> where
    the simulator failed on a kernel. `seconds`: duration. `sandbox`: kind of sandbox that the student's code ran in.
    `memory`: the judge's peak so far, bytes.
    """

    key: Key
    status: str
    reason: str = ""
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notebook: str | None = None
    kernels: dict[str, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    sandbox: str = ""
    memory: int = 0

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"the status must be one of {', '.join(STATUSES)}, got {self.status!r}")

    def as_message(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (field.name for field in dataclasses.fields(self))}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Result:
        scores = {cell: (points, possible) for cell, (points, possible) in message["scores"].items()}
        return cls(**{**message, "key": Key(*message["key"]), "scores": scores})


def outcome(
    status: str,
    reason: str,
    notebook: NotebookNode,
    details: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the fields of a `Result` that follow from an executed notebook.

    `details`: test cell -> what went wrong, for the instructor; by default the cell's outputs tell. `kinds`: as there.
    """
    scores, failures = {}, {}
    for cell in notebook.cells:
        if is_grade(cell) and (name := cell_id(cell)) is not None:
            points, possible = determine_grade(cell)
            if points is not None:  # None waits for a person
                scores[name] = (float(points), possible)
                if points < possible:
                    failures[name] = _failure(cell, (details or {}).get(name, ""))
    return {
        "status": status,
        "reason": reason,
        "scores": scores,
        "failures": failures,
        "kinds": {cell: kind for cell, kind in (kinds or {}).items() if cell in failures},
        "notebook": nbformat.writes(notebook),
    }


def _failure(cell: NotebookNode, text: str) -> str:
    """Return the first line of what went wrong in a test cell. `text`: what went wrong, if known."""
    for output in cell.get("outputs", []):
        if not text and output.output_type == "error":
            text = f"{output.ename}: {output.evalue}"
    for name in ("CheckFailed: ", "NotGraded: "):
        text = text.removeprefix(name)
    return (text.strip() or "partial credit").splitlines()[0][:MAX_TEXT]


def _encoded(files: dict[str, bytes]) -> dict[str, str]:
    return {path: base64.b64encode(content).decode() for path, content in files.items()}


def _decoded(files: dict[str, str]) -> dict[str, bytes]:
    return {path: base64.b64decode(content) for path, content in files.items()}
