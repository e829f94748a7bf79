"""Submissions: read from their folders, and put together with the instructor's notebook for grading.

Nothing in a submission is trusted. Files are read with limits and without following links; of its notebook only the
text of cells is used, and of that what the learner may write.
"""

from __future__ import annotations

import copy
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution, is_task, parse_utc

from warplab.exercises import score
from warplab.exercises.score import cell_id
from warplab.grading.judge.hidden import without_hidden_tests

MAX_FILES = 500
MAX_BYTES = 64 * 2**20  # all files together
MAX_NOTEBOOK = 32 * 2**20
MAX_CELLS = 2000
MAX_TEXT = 2**20  # characters, all cells together
TIMESTAMP = "timestamp.txt"  # written by nbgrader when it collects
LEFT_OUT = {".ipynb_checkpoints", "__pycache__", "feedback"}  # as in nbgrader's CourseDirectory.ignore


class Unusable(Exception):
    """Why a submission can't be graded, for its author to read. `status`: its status, see `judge.STATUSES`."""

    def __init__(self, reason: str, status: str = "student_crash") -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Submission:
    """What one student handed in for one assignment.

    `files`: path relative to the folder, with "/" -> content. `timestamp`: when, in UTC, None if unknown. `hash`: of
    paths and contents, without the timestamp. `notes`: what was left out and why. `unusable`: (reason, status) where
    the folder breaks the limits; `files` is empty then.
    """

    student: str
    files: dict[str, bytes]
    timestamp: datetime | None
    hash: str
    notes: tuple[str, ...] = ()
    unusable: tuple[str, str] | None = None


def read(student: str, folder: Path) -> Submission:
    """The submission in `folder`. Links are left out, never followed; so is what is not a plain file."""
    notes: list[str] = []
    sizes: dict[str, int] = {}
    for path in _walk(folder, notes):
        sizes[path] = os.lstat(folder / path).st_size
        if len(sizes) > MAX_FILES:
            break
    timestamp = _timestamp(folder, notes)
    sizes.pop(TIMESTAMP, None)
    excess = _excess(sizes)
    if excess:
        digest = hashlib.sha256(repr(sorted(sizes.items())).encode())
        return Submission(student, {}, timestamp, digest.hexdigest(), tuple(notes), (excess, "limit"))
    files = {}
    digest = hashlib.sha256()
    for path in sorted(sizes):
        content = _content(folder / path, MAX_BYTES)
        if content is None:
            notes.append(f"{path} is not a plain file and was left out.")
            continue
        files[path] = content
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return Submission(student, files, timestamp, digest.hexdigest(), tuple(notes))


def _walk(folder: Path, notes: list[str]) -> list[str]:
    """Relative paths of plain files; at most one more than `MAX_FILES`."""
    found: list[str] = []
    left = [""]
    while left and len(found) <= MAX_FILES:
        inside = left.pop()
        for entry in sorted(os.scandir(folder / inside), key=lambda entry: entry.name):
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                continue
            if _encodable(entry.name) != entry.name:
                notes.append(f"{_encodable(path)} has a name that is not UTF-8 and was left out.")
            elif entry.is_symlink():
                notes.append(f"{path} is a link and was left out.")
            elif entry.is_dir(follow_symlinks=False):
                left.append(path)
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
            else:
                notes.append(f"{path} is not a plain file and was left out.")
    return found


def _excess(sizes: Mapping[str, int]) -> str:
    """Which limit a submission of these sizes breaks, "" if none."""
    if len(sizes) > MAX_FILES:
        return f"The submission has more than {MAX_FILES} files."
    for path, size in sizes.items():
        if path.endswith(".ipynb") and size > MAX_NOTEBOOK:
            allowed = MAX_NOTEBOOK // 2**20
            return f"{path} has {size / 2**20:.0f} MiB, and a notebook may have {allowed}: clear its outputs."
    total = sum(sizes.values())
    if total > MAX_BYTES:
        return f"The submission has {total / 2**20:.0f} MiB, and {MAX_BYTES // 2**20} are allowed."
    return ""


def _content(path: Path, limit: int) -> bytes | None:
    """Content of a plain file of at most `limit` bytes; None if it became something else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def _timestamp(folder: Path, notes: list[str]) -> datetime | None:
    content = _content(folder / TIMESTAMP, 1000)
    text = (content or b"").decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        return parse_utc(text)
    except (ValueError, OverflowError):
        notes.append(f"{TIMESTAMP} holds no date ({text[:40]!r}): taken as handed in at an unknown time.")
        return None


@dataclass
class Assembled:
    """A notebook ready to be graded. `notes`: what was changed in the learner's, for learner and instructor."""

    notebook: NotebookNode
    notes: list[str] = field(default_factory=list)


def assemble(name: str, master: NotebookNode, files: Mapping[str, bytes]) -> Assembled:
    """The learner's notebook of assignment `name` with the instructor's tests in it. Raises `Unusable`.

    `master`: the instructor's notebook, hidden tests in it. See `checks.grade.assemble` for what comes from whom.
    """
    submitted, notes = _notebook(name, master, files)
    notebook = score.assemble(submitted, master)
    for index, cell in enumerate(notebook.cells):
        if cell_id(cell) is None:
            cell.id = f"own-{index}"  # ids must differ, and a learner's may not
    return Assembled(notebook, notes + _changes(submitted, master))


def refused(master: NotebookNode, reason: str) -> NotebookNode:
    """The notebook of a submission that could not be graded: no answers, and `reason` as every test's failure."""
    notebook = copy.deepcopy(master)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
            if is_grade(cell):
                cell.outputs = [nbformat.v4.new_output("error", ename="NotGraded", evalue=reason, traceback=[reason])]
    return notebook


def _notebook(name: str, master: NotebookNode, files: Mapping[str, bytes]) -> tuple[NotebookNode, list[str]]:
    """The notebook of the assignment among the files: by its name, else the only one that has its cells."""
    wanted = f"{name}.ipynb"
    ids = {cell_id(cell) for cell in master.cells} - {None}
    if wanted in files:
        submitted = parse(files[wanted])
        if not ids & {cell_id(cell) for cell in submitted.cells}:
            raise Unusable(f"{wanted} has no cell of this assignment: is it the notebook of another one?")
        return submitted, []
    others = {}
    for path, content in files.items():
        if path.endswith(".ipynb"):
            try:
                submitted = parse(content)
            except Unusable:
                continue
            if ids & {cell_id(cell) for cell in submitted.cells}:
                others[path] = submitted
    if len(others) == 1:
        ((path, submitted),) = others.items()
        return submitted, [f"{wanted} is missing; {path} has its cells and was graded."]
    if others:
        raise Unusable(f"{wanted} is missing, and several notebooks have its cells: {', '.join(sorted(others))}.")
    raise Unusable(f"{wanted} is missing from the submission.")


def parse(content: bytes) -> NotebookNode:
    """A notebook from its bytes, rebuilt from the text of its cells and the ids that nbgrader gave them.

    Outputs, kernel, and all other metadata are left behind. Raises `Unusable`.
    """
    try:
        raw = nbformat.converter.convert(nbformat.reader.reads(content.decode("utf-8-sig")), 4)
        given = list(raw["cells"])
        cells = [_cell(cell) for cell in given[: MAX_CELLS + 1]]
    except Exception as error:  # malformed JSON and malformed notebooks fail in a dozen ways
        raise Unusable(f"This is not a Jupyter notebook ({type(error).__name__}). Save it anew.") from error
    if len(given) > MAX_CELLS:
        raise Unusable(f"The notebook has {len(given)} cells, and {MAX_CELLS} are allowed.", "limit")
    if sum(len(cell.source) for cell in cells) > MAX_TEXT:
        raise Unusable(f"The cells of the notebook hold more than {MAX_TEXT:,} characters.", "limit")
    return nbformat.v4.new_notebook(cells=cells)


def _cell(raw: Mapping) -> NotebookNode:
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[raw["cell_type"]]
    source = raw["source"]
    text = source if isinstance(source, str) else "".join(source)
    cell = make(source=_encodable(text))
    nbgrader = raw.get("metadata", {}).get("nbgrader", {})
    if isinstance(nbgrader, Mapping):
        name = nbgrader.get("grade_id")
        if isinstance(name, str):
            cell.metadata["nbgrader"] = {"grade_id": name, "solution": bool(nbgrader.get("solution"))}
    attachments = raw.get("attachments")
    if cell.cell_type == "markdown" and isinstance(attachments, Mapping):
        cell["attachments"] = {
            _encodable(str(name)): {_encodable(str(mime)): _encodable(data) for mime, data in bundle.items()}
            for name, bundle in attachments.items()
            if isinstance(bundle, Mapping) and all(isinstance(data, str) for data in bundle.values())
        }
    return cell


def _encodable(text: str) -> str:
    """JSON may hold halves of surrogate pairs, which no file and no message takes."""
    return text.encode("utf-8", "replace").decode()


def _changes(submitted: NotebookNode, master: NotebookNode) -> list[str]:
    """What a learner did to the cells that are the instructor's."""
    notes = []
    found: dict[str, list[NotebookNode]] = {}
    for cell in submitted.cells:
        if cell_id(cell):
            found.setdefault(cell_id(cell), []).append(cell)
    for given in master.cells:
        name = cell_id(given)
        if name is None:
            continue
        copies = found.get(name, [])
        if len(copies) > 1:
            notes.append(f"Cell {name!r} was there {len(copies)} times: the last one counted.")
        if is_locked(given):
            if not copies:
                notes.append(f"Cell {name!r} was deleted: put back.")
            elif copies[-1].source.rstrip() not in (without_hidden_tests(given.source).rstrip(), given.source.rstrip()):
                notes.append(f"Cell {name!r} was edited: the instructor's was used.")
        elif not copies and (is_solution(given) or is_task(given)):
            notes.append(f"The answer cell {name!r} is missing.")
    order = [cell_id(cell) for cell in submitted.cells if cell_id(cell)]
    order = [name for index, name in enumerate(order) if name not in order[index + 1 :]]
    given_order = [cell_id(cell) for cell in master.cells if cell_id(cell) in found]
    if [name for name in order if name in given_order] != given_order:
        notes.append("Cells of the exercise were moved: graded in their own order.")
    return notes
