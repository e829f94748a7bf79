"""What is done and what is next, as `progress()` in a cell, as a notebook of the learner's, and as a command."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.desk.progress import NotebookProgress, next_step, steps
from warpcourse.paths import COURSE, own_folder
from warplab.text.tables import Column, Table, document

_HEADERS = ("predictions", "tasks", "points")
_LEFT = 'style="text-align:left"'  # in the cell: JupyterLab drops the style sheet of a page that was saved
_TEXT = """# What is done, what is next

Run the cell to bring this page up to date. Predictions and tasks count when their cell was run, points when an \
exercise was checked. Nobody but you sees this."""


@dataclass(frozen=True)
class Progress:
    """A learner's progress, to be printed or shown in a notebook. `folder`: where links start."""

    steps: Sequence[NotebookProgress]
    folder: Path

    def __str__(self) -> str:
        columns = [Column("", "left"), *(Column(header) for header in _HEADERS)]
        rows = [[_title(step), *_counts(step)] for step in self.steps]
        return f"{Table(columns, rows).text()}\n\n{self._next()}"

    def _repr_html_(self) -> str:
        following = next_step(self.steps)
        head = "".join(f"<th {_LEFT}>{header}</th>" for header in ("", *_HEADERS))
        rows = "".join(
            f"<tr><td {_LEFT}>{self._link(step, 'font-weight:700' if step is following else '')}</td>"
            + "".join(f"<td {_LEFT}>{count}</td>" for count in _counts(step))
            + "</tr>"
            for step in self.steps
        )
        parts = [f"<p>{self._next_html()}</p>", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"]
        return document([*parts, *(_predictions(step) for step in self.steps if step.made)])

    def _next(self) -> str:
        following = next_step(self.steps)
        if following is None:
            return "All is done."
        return f"Next: {following.notebook.title}, {following.notebook.own}: {following.open}."

    def _next_html(self) -> str:
        following = next_step(self.steps)
        if following is None:
            return "All is done."
        return f"<b>Next:</b> {self._link(following)}: {escape(following.open)}."

    def _link(self, step: NotebookProgress, style: str = "") -> str:
        target = os.path.relpath(own_folder() / step.notebook.own, self.folder)
        return f'<a href="{escape(target)}" style="{style}">{escape(step.notebook.title)}</a>'


def progress() -> Progress:
    """Return what is done of each lesson and exercise and what is next, to be shown as the last line of a cell."""
    return Progress(steps(), Path.cwd())


def page(course: Path = COURSE, own: Path | None = None) -> NotebookNode:
    """Return the notebook with the progress as it is now; it lies in the learner's folder `own`."""
    shown = Progress(steps(course), own or own_folder())
    output = nbformat.v4.new_output("execute_result", {"text/html": shown._repr_html_(), "text/plain": str(shown)})
    source = "from warplab import progress\n\nprogress()"
    cells = [
        nbformat.v4.new_markdown_cell(_TEXT, id="progress-text"),
        nbformat.v4.new_code_cell(source, id="progress", outputs=[output]),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def main(argv: list[str] | None = None) -> int:
    """Print the progress. Returns 0."""
    argparse.ArgumentParser(
        prog="python -m warplab progress",
        description="Show what is done of each lesson and exercise, and what is next.",
    ).parse_args(argv)
    print(progress())
    return 0


def _title(step: NotebookProgress) -> str:
    return f"  {step.notebook.title}" if step.notebook.is_exercise else step.notebook.title


def _counts(step: NotebookProgress) -> tuple[str, str, str]:
    """Return predictions, tasks and points, "" where there are none."""
    predicted, done = step.predictions - len(step.open_predictions), step.tasks - len(step.open_tasks)
    return (
        f"{predicted} of {step.predictions}" if step.predictions else "",
        f"{done} of {step.tasks}" if step.tasks else "",
        f"{step.points:g} of {step.possible:g}" if step.possible else "",
    )


def _predictions(step: NotebookProgress) -> str:
    """Return the predictions of a lesson, each beside what came of it."""
    columns = [Column("", "left"), Column("you predicted", "left"), Column("it is", "left")]
    rows = [[one.question, one.predicted, one.result or "not seen yet"] for one in step.made]
    summary = f"<summary>{escape(step.notebook.title)}: your predictions</summary>"
    return f"<details>{summary}{Table(columns, rows).html()}</details>"
