"""What a learner's notebook has and the shipped one has not: the way to the next one, marks where an answer goes.

The shipped notebooks stay as they are, since a class gets them without the course around them.
"""

import copy
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.desk.course_order import EXERCISE, Shipped, link
from warpcourse.paths import COURSE

PROGRESS = PurePosixPath("progress.ipynb")
DESK = "desk"  # the tag of cells that are neither the course's text nor the learner's
_LINK = re.compile(r"(exercises/(\d\d_\w+)/)(?=\2\.ipynb)")
_ANSWER = (
    '<div style="border-left: 4px solid #e69f00; padding-left: 0.6em"><b>Your answer</b> goes into the next cell. '
    "Run it, then the {checks} below it.</div>"
)
_SCORE = """## Your score

Save (Ctrl+S), then run the next cell: it runs the saved notebook from the top in a fresh Python process and shows \
your points by problem, with the message of the first check that fails. Do it before you hand a notebook in: cells \
that were run out of order can pass here and fail there."""


def own_version(notebook: Shipped, order: Sequence[Shipped], course: Path = COURSE) -> NotebookNode:
    """Return the learner's version of a shipped notebook. `order`: all notebooks, for the links to its neighbours."""
    made = nbformat.read(course / notebook.path, as_version=4)
    cells = []
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = _LINK.sub(rf"\1{EXERCISE}", cell.source)
        elif cell.cell_type == "code":
            _as_not_run(cell)
            if is_answer(cell):
                checks = "test cells" if notebook.is_exercise else "check"
                cells.append(_text(f"answer-{cell.id}"[:64], _ANSWER.format(checks=checks)))
        cells.append(cell)
    way = _way(notebook, order)
    end = []
    if notebook.is_exercise:
        end = [
            _text("desk-score", _SCORE),
            _desk(nbformat.v4.new_code_cell(f'from warplab import check\n\ncheck("{notebook.number}")'), "desk-check"),
        ]
    made.cells = [_text("desk-way-top", way), *cells, *end, _text("desk-way-bottom", way)]
    return made


def _as_not_run(cell: NotebookNode) -> None:
    """Drop the numbers of the run that was saved, so that a number tells what the learner ran; hide a check's code."""
    for numbered in [cell, *cell.outputs]:
        if "execution_count" in numbered:
            numbered.execution_count = None
    if "check" in cell.metadata.get("tags", []):
        cell.metadata.setdefault("jupyter", {})["source_hidden"] = True


def is_answer(cell: NotebookNode) -> bool:
    """Return whether a learner is to write into this cell."""
    nbgrader = cell.metadata.get("nbgrader", {})
    return "your-turn" in cell.metadata.get("tags", []) or bool(nbgrader.get("solution") and not nbgrader.get("locked"))


def is_desk(cell: NotebookNode) -> bool:
    """Return whether the cell is one that `own_version` adds."""
    return DESK in cell.metadata.get("tags", [])


def _way(notebook: Shipped, order: Sequence[Shipped]) -> str:
    """Link to the notebook before, the progress page and the notebook after."""
    place = list(order).index(notebook)
    before, after = order[max(place - 1, 0) : place], order[place + 1 : place + 2]
    links = [f"[← {one.title}]({link(notebook.own, one.own)})" for one in before]
    links.append(f"[What is done, what is next]({link(notebook.own, PROGRESS)})")
    links += [f"[{one.title} →]({link(notebook.own, one.own)})" for one in after]
    return " · ".join(links)


def _text(name: str, source: str) -> NotebookNode:
    return _desk(nbformat.v4.new_markdown_cell(source), name)


def _desk(cell: NotebookNode, name: str) -> NotebookNode:
    cell.id = name
    cell.metadata = nbformat.from_dict({"tags": [DESK], "editable": False, "deletable": False})
    return cell


def sources(notebook: NotebookNode) -> list[tuple[str, str, str]]:
    """Return what counts as a notebook's content: id, kind and text of each cell that is not the desk's."""
    return [(cell.get("id", ""), cell.cell_type, cell.source.rstrip()) for cell in notebook.cells if not is_desk(cell)]


def merge(base: NotebookNode, mine: NotebookNode, new: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """Put what a learner changed in `mine`, made of `base`, into `new`, a later version of `base`.

    A cell that the learner changed and the course did not gets the learner's text; cells of the learner's own follow
    the cell that they followed. Returns the notebook and the ids of changed cells that need the learner's eye, because
    the course changed them, too, or dropped them.
    """
    merged = copy.deepcopy(new)
    before = {cell.id: cell for cell in base.cells}
    open_ids = []
    behind = None
    for cell in mine.cells:
        if is_desk(cell):
            continue
        if cell.id not in before:
            own = copy.deepcopy(cell)
            taken = {other.id for other in merged.cells}
            if own.id in taken:
                own.id = f"own-{own.id}"[:64]
            place = next((k for k, other in enumerate(merged.cells) if other.id == behind), len(merged.cells) - 2)
            merged.cells.insert(place + 1, own)
            behind = own.id
            continue
        behind = cell.id if any(other.id == cell.id for other in merged.cells) else behind
        if cell.source.rstrip() == before[cell.id].source.rstrip():
            continue
        target = next((other for other in merged.cells if other.id == cell.id), None)
        if target is not None and target.source == before[cell.id].source:
            target.source = cell.source
            target.update({"outputs": [], "execution_count": None} if cell.cell_type == "code" else {})
        elif target is None or target.source.rstrip() != cell.source.rstrip():
            open_ids.append(cell.id)
    return merged, open_ids
