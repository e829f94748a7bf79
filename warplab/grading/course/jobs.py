"""What goes to a judge and what comes back: plain data, the same over a pipe and over a cluster."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import determine_grade, is_grade

from warplab.exercises.score import cell_id
from warplab.grading.course.ledger import Key
from warplab.grading.sandbox.limits import Limits

# graded: run to its end. student_crash: the submission could not be run to its end, or is no notebook of this
# assignment. timeout: it ran out of time. limit: out of memory, processes, output, or size. These four are scores.
# infra_error: the grader itself failed; no score, a person must look.
STATUSES = ("graded", "student_crash", "timeout", "limit", "infra_error")

MAX_MESSAGE = 512 * 2**20
MAX_TEXT = 500  # characters of one failure in a result


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    `master`: the instructor's notebook as JSON, hidden tests in it. `files`: the student's, path -> content; `given`:
    the instructor's, which win. `seed`: the course's secret for hidden inputs. `cell_seconds`: limit of one cell.
    `require_sandbox`: refuse without one.
    """

    key: Key
    master: str
    files: dict[str, bytes]
    given: dict[str, bytes]
    seed: str
    limits: Limits = field(default_factory=Limits)
    cell_seconds: int = 120
    require_sandbox: bool = False

    @property
    def longest_seconds(self) -> float:
        """What the student's cells and the test cells may take together, each up to its limit."""
        cells = json.loads(self.master)["cells"]
        tests = sum(bool(cell["metadata"].get("nbgrader", {}).get("grade")) for cell in cells)
        return self.limits.wall_seconds + tests * self.cell_seconds

    def as_message(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in ("master", "seed", "cell_seconds", "require_sandbox")}
        files = {name: _encoded(getattr(self, name)) for name in ("files", "given")}
        return {"key": list(self.key), "limits": self.limits.as_dict(), **fields, **files}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Job:
        converted = {
            "key": Key(*message["key"]),
            "limits": Limits(**message["limits"]),
            "files": _decoded(message["files"]),
            "given": _decoded(message["given"]),
        }
        return cls(**{**message, **converted})


@dataclass(frozen=True)
class Result:
    """How a submission was graded.

    `status`: of `STATUSES`. `reason`: for the student, "" where it ran to its end. `scores`: test cell -> (points,
    possible). `failures`: test cell -> first line of what went wrong; `kinds`: test cell -> which kind of failure, of
    `verdicts.SENTENCES` or "process", where that is known. `notes`: see `submissions.Assembled`. `notebook`: as
    executed, JSON; None for an infra_error. `kernels`: name -> PTX, for the report on similarity. `seconds`: it took.
    `sandbox`: which protection the student's code ran under. `memory`: the judge's peak so far, bytes.
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
    seconds: float = 0.0
    sandbox: str = ""
    memory: int = 0

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")

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
    """Fields of a `Result` that follow from an executed notebook.

    `details`: test cell -> what went wrong, for the instructor; else what the cell's outputs say. `kinds`: as there.
    """
    scores, failures = {}, {}
    for cell in notebook.cells:
        if is_grade(cell):
            points, possible = determine_grade(cell)
            if points is not None:  # None waits for a person
                scores[cell_id(cell)] = (float(points), possible)
                if points < possible:
                    failures[cell_id(cell)] = _failure(cell, details or {})
    return {
        "status": status,
        "reason": reason,
        "scores": scores,
        "failures": failures,
        "kinds": {cell: kind for cell, kind in (kinds or {}).items() if cell in failures},
        "notebook": nbformat.writes(notebook),
    }


def _failure(cell: NotebookNode, details: Mapping[str, str]) -> str:
    """First line of what went wrong in a test cell."""
    text = details.get(cell_id(cell), "")
    for output in cell.get("outputs", []):
        if not text and output.output_type == "error":
            text = f"{output.ename}: {output.evalue}"
    for name in ("CheckFailed: ", "NotGraded: "):
        text = text.removeprefix(name)
    return (text.strip() or "partial credit").splitlines()[0][:MAX_TEXT]


def pack(message: dict[str, Any]) -> bytes:
    """A message as it stands in a pipe: length in 8 bytes, most significant first, then JSON."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(8, "big") + body


def unpack(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message of a pipe, None at its end. Raises ValueError for what is no message."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes")
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None


def _encoded(files: dict[str, bytes]) -> dict[str, str]:
    return {path: base64.b64encode(content).decode() for path, content in files.items()}


def _decoded(files: dict[str, str]) -> dict[str, bytes]:
    return {path: base64.b64decode(content) for path, content in files.items()}
