"""A learner's notebook, run with the course's own test cells and scored as nbgrader does."""

import copy
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.preprocessors import Execute
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_locked, is_solution, is_task

from warpcourse.exercises import own_names
from warpcourse.exercises.release import course_config


@dataclass
class Test:
    """One test cell: its points, and the message of its failure ("" where it passed)."""

    id: str
    points: float
    possible: float
    message: str


@dataclass
class Problem:
    """One problem: the test cells below one heading."""

    title: str
    tests: list[Test] = field(default_factory=list)

    @property
    def points(self) -> float:
        return sum(test.points for test in self.tests)

    @property
    def possible(self) -> float:
        return sum(test.possible for test in self.tests)

    @property
    def message(self) -> str:
        return next((test.message for test in self.tests if test.message), "")


def cell_id(cell: NotebookNode) -> str | None:
    """Return nbgrader's name of a cell; None for an ordinary one."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def assemble(submitted: NotebookNode, release: NotebookNode) -> NotebookNode:
    """Return the release with a learner's answers and own cells in it.

    Of a submitted cell of the exercise only the text counts, and only where the learner may write (the last copy, if
    there are several). Locked and graded cells are the release's: edits are undone, copies left out, deleted cells put
    back. They keep the release's order, since a test may use what an earlier one defined, and no learner's cell may
    take its place. Any other cell stays after the exercise's cell that it follows, without nbgrader's metadata.
    """
    exercise = {name: cell for cell in release.cells if (name := cell_id(cell))}
    last = {cell_id(cell): index for index, cell in enumerate(submitted.cells)}
    texts: dict[str, NotebookNode] = {}
    own: dict[str | None, list[NotebookNode]] = {name: [] for name in (None, *exercise)}
    behind = None
    for index, cell in enumerate(submitted.cells):
        name = cell_id(cell)
        if name in exercise and last[name] == index:
            texts[name], behind = cell, name
        elif name not in exercise or not is_locked(exercise[name]):
            copied = copy.deepcopy(cell)
            copied.metadata.pop("nbgrader", None)
            own[behind].append(copied)
    cells = own[None]
    for name, given in exercise.items():
        if name in texts or is_locked(given) or is_grade(given) or is_task(given):
            cell = copy.deepcopy(given)
            if name in texts and not is_locked(given):
                cell.source = texts[name].source
                if given.cell_type == "markdown" and "attachments" in texts[name]:
                    cell.attachments = texts[name].attachments
            cells.append(cell)
        cells += own[name]
    notebook = copy.deepcopy(release)
    notebook.cells = cells
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def run(notebook: NotebookNode, folder: Path, timeout: int) -> str:
    """Run all cells in a fresh Python process started in `folder`, and put their outputs into `notebook`.

    A name of the exercise's own cells stays theirs: `own_names.guard` gives it back before each of them. `timeout`:
    seconds per cell, also for the start and late outputs; on a busy machine, in proportion more. Returns "", or why the
    run ended before the last cell. Raises RuntimeError if the process does not start.
    """
    config = course_config()
    seconds = int(timeout * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    config.Execute.timeout = config.Execute.startup_timeout = config.Execute.iopub_timeout = seconds
    config.Execute.kernel_name = "python3"
    execute, begun = Execute(config=config), []
    execute.on_cell_execute = lambda cell, cell_index: begun.append(cell)
    own = [own_names.key(cell.source) for cell in notebook.cells if cell.cell_type == "code" and is_locked(cell)]
    guard = f"from warpcourse.exercises import own_names\nown_names.guard(get_ipython(), {own})\ndel own_names"
    whole = copy.copy(notebook)
    whole.cells = [new_code_cell(guard), *notebook.cells]
    try:
        execute.preprocess(whole, {"metadata": {"path": str(folder)}})
    except DeadKernelError:
        ended = "ended"
    except CellTimeoutError:
        ended = f"gave no answer for {2 * seconds} s, even when interrupted,"
    else:
        return ""
    begun[-1].execution_count = None  # it has no error, which would count as passed
    return f"The notebook's Python process {ended} before this cell had run."


def notes(executed: NotebookNode) -> list[str]:
    """Return, each once, what `own_names.guard` told before cells of an executed notebook."""
    outputs = [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    lines = "".join(output.text for output in outputs if output.output_type == "stream").splitlines()
    return list(dict.fromkeys(line for line in lines if line.startswith(own_names.NOTE)))


def score(executed: NotebookNode, submitted: NotebookNode, release: NotebookNode, ended: str) -> list[Problem]:
    """Return points and messages by problem, in the order of the release.

    `executed`: the assembled notebook after `run`, which returned `ended`.
    """
    ran = {cell_id(cell): cell for cell in executed.cells if cell_id(cell)}
    answers = {cell_id(cell): cell for cell in submitted.cells if is_solution(cell)}
    problems: list[Problem] = []
    title, answer = "", None
    for cell in release.cells:
        if cell.cell_type == "markdown":
            heading = next((line for line in cell.source.splitlines() if line.startswith("## ")), None)
            if heading:
                title, answer = heading.removeprefix("## ").strip(), None
        if is_solution(cell):
            answer = cell
        if not is_grade(cell) or is_solution(cell):
            continue
        if not problems or problems[-1].title != title:
            problems.append(Problem(title))
        executed_answer = ran.get(cell_id(answer)) if answer else None
        problems[-1].tests.append(_result(ran[cell_id(cell)], executed_answer, answer, answers, ended))
    return problems


def _result(
    test: NotebookNode,
    executed_answer: NotebookNode | None,
    answer: NotebookNode | None,
    answers: dict[str | None, NotebookNode],
    ended: str,
) -> Test:
    name, possible = str(cell_id(test)), float(test.metadata.nbgrader["points"])
    if test.execution_count is None:
        return Test(name, 0.0, possible, ended or "This test cell did not run.")
    points, _ = determine_grade(test)
    if points == possible:
        return Test(name, points, possible, "")
    message = _failure(test)
    if answer is not None:
        undefined = re.fullmatch(r"NameError: name '(\w+)' is not defined", message)
        if undefined and re.search(rf"\b{undefined[1]}\b", answer.source):
            message = (
                f"There is no {undefined[1]}, the name by which the tests call it. "
                f"Keep the name in the answer cell {cell_id(answer)!r}."
            )
        if cell_id(answer) not in answers:
            message = f"The answer cell {cell_id(answer)!r} is missing from the notebook.\n{message}"
        elif answers[cell_id(answer)].source.strip() == answer.source.strip() and as_released(answer):
            message = f"Not written yet: the answer cell {cell_id(answer)!r} is as it was given."
        elif executed_answer is not None and _error(executed_answer):
            message = f"The answer cell {cell_id(answer)!r} fails.\n{_error(executed_answer)}"
        elif executed_answer is not None and _stderr(executed_answer):
            message += f"\nAlso, which is no failure: the answer cell {cell_id(answer)!r} printed a warning.\n"
            message += _stderr(executed_answer)
    return Test(name, points, possible, message)


def as_released(cell: NotebookNode) -> bool:
    """Return whether a cell of the release is as nbgrader wrote it.

    If a learner has no other copy, the release is the notebook in exercises/ that the answers were written into.
    """
    return compute_checksum(cell) == cell.metadata.nbgrader["checksum"]


def _failure(test: NotebookNode) -> str:
    """Return why an executed test cell failed; "" if it did not. An error says more than a warning before it."""
    warning = _stderr(test)
    return _error(test) or (
        f"The cell wrote to stderr, which nbgrader counts as a failure:\n{warning}" if warning else ""
    )


def _error(cell: NotebookNode) -> str:
    """Return the error that ended an executed cell; "" if none did."""
    for output in cell.outputs:
        if output.output_type == "error":
            if output.ename in ("CellTimeoutError", "KeyboardInterrupt"):  # it is interrupted when its time is up
                return "The cell did not end in time. Is there an endless loop?"
            if output.ename == "CheckFailed":
                return output.evalue
            return "\n".join([*_notes(output), f"{output.ename}: {output.evalue}"])
    return ""


def _notes(error: NotebookNode) -> list[str]:
    """Return what a short traceback says between the learner's lines and the message, such as what was meant."""
    head, message, _ = "\n".join(error.traceback).partition(f"\n{error.ename}: ")
    lines = head.splitlines()
    if not message or any("Traceback" in line for line in lines):  # a whole one, as Python's own errors have
        return []
    while len(lines) > 1 and lines[0].endswith(":") and lines[1].startswith("    "):  # a place, and its code
        lines = lines[2:]
    return lines


def _stderr(cell: NotebookNode) -> str:
    """Return what an executed cell wrote to stderr, such as a compiler's warning."""
    parts = [output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stderr"]
    return "".join(parts).strip()
