"""The cells of an exercise in a notebook that lost the names which nbgrader gives to them.

Colab and VS Code have saved notebooks without cell metadata, and a learner who copies an answer into a new cell leaves
its name behind. The cells are found again by their text, then by their place between others.

Kinds of evidence, the strongest first: the name; the whole text; the id that Jupyter gives to a cell; lines that no
other cell of the exercise has, such as the head of a function; and for answers the place.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from warpcourse.exercises.score import cell_id

_NAME, _TEXT, _ID, _LINES = 1000.0, 100.0, 20.0, 1.0  # weights: of all cells together, an order with more is better
_MOST = 0.5  # of its own lines make a cell recognisable in any place
_ENOUGH = 0.25  # of the exercise's cells make a notebook without names one of this exercise


@dataclass
class Recognised:
    """What was recognised in a notebook: plain data, apart from it.

    `places`: name -> index of the cell that had lost it, in the exercise's order. `by_place`: the names for which only
    the place speaks. `renamed`: name -> what it was. `nameless`: no answer and no test had a name of this exercise.
    """

    places: dict[str, int] = field(default_factory=dict)
    by_place: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    nameless: bool = False

    @property
    def by_text(self) -> list[str]:
        """Return the names that are known by the text."""
        return [name for name in self.places if name not in self.by_place]

    def notes(self) -> list[str]:
        """Return what to tell about it, in sentences."""
        placed = [f"Cell {one!r} was recognised by its place: look whether it is the answer." for one in self.by_place]
        if self.nameless and self.places:
            told = (
                "The notebook has lost the names that nbgrader gives to cells, as Colab and VS Code may save it; they "
                f"were recognised by their text and order ({len(self.places)} cells)."
            )
            return [told, *placed]
        notes = []
        for name in self.by_text:
            what = f"has another name, {self.renamed[name]!r}," if name in self.renamed else "has lost its name"
            notes.append(f"Cell {name!r} {what} and was recognised by its text.")
        return notes + placed


def restore(submitted: NotebookNode, release: NotebookNode, found: Recognised) -> None:
    """Give the cells that were recognised their names, in `submitted` itself."""
    given = {cell_id(cell): cell for cell in release.cells}
    for name, index in found.places.items():
        submitted.cells[index].metadata["nbgrader"] = dict(given[name].metadata["nbgrader"])


def recognise(submitted: NotebookNode, release: NotebookNode) -> Recognised:
    """Find the cells of `release` that `submitted` has without their names.

    A cell that has a name of the exercise keeps it. In a notebook without names that has too little of the release's
    text, none is recognised. It may take seconds for what an attacker makes.
    """
    missing = {name for cell in release.cells if (name := cell_id(cell))}
    # Not the others: many an exercise begins with a locked cell "setup".
    telling = {cell_id(cell) for cell in release.cells if is_grade(cell) or is_solution(cell) or is_task(cell)}
    last = {cell_id(cell): index for index, cell in enumerate(submitted.cells) if cell_id(cell) in missing}
    found = Recognised(nameless=not last.keys() & telling)
    missing -= last.keys()
    if not missing:
        return found
    search = _Search(submitted, release, last)
    if found.nameless and not search.enough():
        return found
    for index, given in enumerate(release.cells):
        name = cell_id(given)
        if name in missing and index in search.places:
            found.places[name] = search.places[index]
            if before := cell_id(submitted.cells[search.places[index]]):
                found.renamed[name] = before
            if index in search.by_place:
                found.by_place.append(name)
    return found


class _Search:
    """`places`: index of a cell in the release -> in the submitted notebook; `by_place`: those for lack of a better."""

    def __init__(self, submitted: NotebookNode, release: NotebookNode, last: dict[str | None, int]) -> None:
        self._given, self._cells, self._last = release.cells, submitted.cells, last
        self._texts = [_normal(cell.source) for cell in submitted.cells]
        self._wanted = [_normal(cell.source) for cell in release.cells]
        count = Counter(line for text in self._wanted for line in _lines(text))
        self._own = [{line for line in _lines(text) if count[line] == 1} for text in self._wanted]
        self._held = [set(_lines(text)) for text in self._texts]
        self._named = set(last.values())
        weights = self._weights()
        self.places = _in_order(weights, len(self._given), len(self._cells))
        self._sure = sum(weights[pair] >= _TEXT or self._share(*pair) >= _MOST for pair in self.places.items())
        self.by_place: set[int] = set()
        self._moved(weights)
        self._between()

    def enough(self) -> bool:
        """Return whether a notebook without names has enough of the release's text to be one of this exercise."""
        return self._sure >= max(2, _ENOUGH * len(self._given))

    def _weights(self) -> dict[tuple[int, int], float]:
        found = {}
        for index, given in enumerate(self._given):
            name = cell_id(given)
            if name in self._last:
                found[index, self._last[name]] = _NAME
                continue
            for place, cell in enumerate(self._cells):
                if place not in self._named and cell.cell_type == given.cell_type:
                    weight = self._weight(index, place)
                    if weight:
                        found[index, place] = weight
        return found

    def _weight(self, index: int, place: int) -> float:
        """Return how much speaks for a pair of cells, both without a name."""
        given, wanted = self._given[index], self._wanted[index]
        if wanted and wanted == self._texts[place]:
            return _TEXT
        if cell_id(given) is None:
            return 0.0
        if given.get("id") and given.get("id") == self._cells[place].get("id"):
            return _ID
        share = self._share(index, place)
        if is_locked(given) and share < _MOST:
            return 0.0
        return _LINES + share if share else 0.0

    def _share(self, index: int, place: int) -> float:
        """Return which part of the lines that only this cell of the release has are in a submitted cell."""
        own = self._own[index]
        return sum(line in self._held[place] for line in own) / len(own) if own else 0.0

    def _moved(self, weights: dict[tuple[int, int], float]) -> None:
        """Add cells that are recognisable by themselves but stand out of order, the best first."""
        taken = set(self.places.values())
        sure = [pair for pair, weight in weights.items() if weight >= _ID or self._share(*pair) >= _MOST]
        for index, place in sorted(sure, key=lambda pair: (-weights[pair], pair)):
            if index not in self.places and place not in taken and cell_id(self._given[index]):
                self.places[index] = place
                taken.add(place)

    def _between(self) -> None:
        """Add answers by their place: the cells that nothing else is known of, between the same neighbours."""
        for index, given in enumerate(self._given):
            if index in self.places or cell_id(given) is None or is_locked(given):
                continue
            before = max((self.places[other] for other in range(index) if other in self.places), default=-1)
            later = [self.places[other] for other in range(index + 1, len(self._given)) if other in self.places]
            taken = set(self.places.values())
            for place in range(before + 1, min(later, default=len(self._cells))):
                cell = self._cells[place]
                if place not in taken and cell.cell_type == given.cell_type and self._texts[place]:
                    self.places[index] = place
                    self.by_place.add(index)
                    break


def _in_order(weights: dict[tuple[int, int], float], rows: int, columns: int) -> dict[int, int]:
    """Return the pairs, row -> column, both increasing, that weigh the most together."""
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        here, below = best[row], best[row + 1]
        for column in reversed(range(columns)):
            weight = weights.get((row, column), 0.0)
            here[column] = max(below[column], here[column + 1], weight + below[column + 1] if weight else 0.0)
    found, row, column = {}, 0, 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            found[row] = column
            row, column = row + 1, column + 1
    return found


def _normal(text: str) -> str:
    """Return text without what editors change: line ends, and white space at the end of lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def _lines(text: str) -> list[str]:
    """Return the lines that say something, without white space around them."""
    return [line.strip() for line in text.split("\n") if re.search(r"\w\W*\w", line)]
