"""What a learner has done of each lesson and exercise, and what is next: shipped notebooks against what was kept."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from warpcourse.desk.course_order import Shipped, shipped
from warpcourse.learner import numbers, record
from warpcourse.paths import COURSE

_PREDICTION = re.compile(r"""\bpredict\(\s*["'](\d\d/[a-z0-9-]+)["']""")
# What the saved output of a prediction says; in a loop the source does not have the keys.
_SHOWN = re.compile(r"""\bpredict\(["'](\d\d/[a-z0-9-]+)["'], \.\.\., answer=""")
_TASK = re.compile(r"""\battempt\(\s*["'](\d\d/[a-z0-9-]+)["']""")


@dataclass(frozen=True)
class Prediction:
    """One prediction as it is shown; `result`: "" before the learner has seen it."""

    question: str
    predicted: str
    result: str


@dataclass(frozen=True)
class NotebookProgress:
    """One notebook with what is done of it and what there is to do.

    `points`: of an exercise. `open_tasks`, `open_predictions`: names of those that are not done, in order. `at`: when
    the learner last did something of it, in ISO 8601; "" if never.
    """

    notebook: Shipped
    predictions: int = 0
    open_predictions: tuple[str, ...] = ()
    tasks: int = 0
    open_tasks: tuple[str, ...] = ()
    points: float = 0.0
    possible: float = 0.0
    made: tuple[Prediction, ...] = ()
    at: str = ""

    @property
    def is_done(self) -> bool:
        """Return whether all that can be counted is done. A lesson without counts holds nobody up."""
        return not self.open_predictions and not self.open_tasks and self.points >= self.possible

    @property
    def open(self) -> str:
        """Return what is left, in words; "" where nothing is."""
        if self.notebook.is_exercise:
            left = self.possible - self.points
            return f"{left:g} of {self.possible:g} points to earn" if left > 0 else ""
        left_over = [("prediction", self.open_predictions), ("task", self.open_tasks)]
        return " and ".join(
            f"{len(names)} {kind}{'s' if len(names) > 1 else ''} ({', '.join(names[:3])}{' …' * (len(names) > 3)})"
            for kind, names in left_over
            if names
        )


def steps(course: Path = COURSE) -> list[NotebookProgress]:
    """Return each notebook of the course in order, with what the learner did of it."""
    kept = record.read()
    return [_step(one, course, kept) for one in shipped(course)]


def next_step(found: Sequence[NotebookProgress]) -> NotebookProgress | None:
    """Return where to go on: from the notebook worked in last, the first with something to do; None if all is done.

    What was left open before that holds nobody up until the end.
    """
    last = max(range(len(found)), key=lambda place: (found[place].at, -place), default=0)
    return next((step for step in [*found[last:], *found[:last]] if not step.is_done), None)


def _step(one: Shipped, course: Path, kept: record.Record) -> NotebookProgress:
    path = course / one.path
    predictions, tasks, possible = _offered(path, path.stat().st_mtime_ns)
    if one.is_exercise:
        fields = kept["exercises"].get(one.path.stem, {})
        points = sum(_points(problem) for problem in fields.get("problems", {}).values())
        return NotebookProgress(one, points=min(points, possible), possible=possible, at=_at([fields] * (points > 0)))
    answered = [key for key in predictions if "answer" in kept["predictions"].get(key, {})]
    done = [key for key in tasks if kept["tasks"].get(key, {}).get("done")]
    return NotebookProgress(
        one,
        len(predictions),
        tuple(_name(key) for key in predictions if key not in answered),
        len(tasks),
        tuple(_name(key) for key in tasks if key not in done),
        made=tuple(_prediction(kept["predictions"][key]) for key in answered),
        at=_at([kept["predictions"][key] for key in answered] + [kept["tasks"][key] for key in done]),
    )


@functools.cache
def _offered(path: Path, _changed: int) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """Return the keys of a notebook's predictions and tasks, and its points."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    said = (output.get("data", {}).get("text/plain", "") for cell in cells for output in cell.get("outputs", ()))
    predictions = _PREDICTION.findall(code) + _SHOWN.findall("\n".join(said))
    points = sum(float(cell.metadata.get("nbgrader", {}).get("points", 0)) for cell in cells)
    return tuple(dict.fromkeys(predictions)), tuple(dict.fromkeys(_TASK.findall(code))), points


def _prediction(fields: dict) -> Prediction:
    unit = f" {fields['unit']}" if fields.get("unit") else ""
    result = f"{_shown(fields['seen'])}{unit}" if "seen" in fields else ""
    return Prediction(str(fields.get("question", "")), f"{_shown(fields['answer'])}{unit}", result)


def _shown(value: object) -> str:
    return numbers.show(value) if isinstance(value, float | int) else str(value)


def _points(pair: object) -> float:
    """Return the points of one problem; 0 for what no version of the course wrote."""
    if isinstance(pair, list) and pair and isinstance(pair[0], float | int):
        return float(pair[0])
    return 0.0


def _at(entries: Sequence[dict]) -> str:
    return max((str(fields.get("at", "")) for fields in entries), default="")


def _name(key: str) -> str:
    return key.partition("/")[2]
