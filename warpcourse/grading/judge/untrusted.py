"""What must read a student's notebook byte by byte: a parser, a sanitizer and a renderer, under limits of their own.

    reading = Reading()                         # per submission
    reading.notebook(content)                   # its cells; raises Unusable
    reading.names(notebook, master)             # of cells that lost theirs; raises Unusable
    reading.html(text), reading.markdown(text, attachments)    # inert; never fail

The functions run in one process per judge (`sandbox.limited`), which is replaced when hostile input has ended it.
"""

import base64
import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.exercises.recognise import Recognised, recognise
from warpcourse.exercises.score import cell_id
from warpcourse.grading.exchange.artefacts import clean_text
from warpcourse.grading.judge import inert
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.judge.inert import inert_html, inert_markdown, literally  # noqa: F401  # called by name
from warpcourse.grading.sandbox.limited import Limited, TooCostly

SECONDS = 20.0  # of processor time for one submission; an exercise's notebook needs less than 0.1
CALL_SECONDS = 10.0
MEMORY = 1 << 30  # bytes
MAX_CELLS = 2000
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # as in nbformat's schema, by which it refuses a whole notebook
MAX_TEXT = 2**20  # characters, all cells together
MAX_ATTACHMENTS = 8 * 2**20  # characters of base64, all cells together
LEFT_OUT = "[HTML is left out: it takes too long to read]"
_TOO_LONG = "[This cell is shown without its layout, which takes too long to work out.]\n\n"


class Unusable(Exception):
    """A submission cannot be graded. The message tells its author why. `status`: as in `jobs.STATUSES`."""

    def __init__(self, reason: str, status: str = "student_crash") -> None:
        super().__init__(reason)
        self.status = status


@functools.cache
def _process() -> Limited:
    """Return this process's reader, which ends with it."""
    return Limited(__name__, CALL_SECONDS, MEMORY)


class Reading:
    """The reading of one submission."""

    def __init__(self) -> None:
        self._left = SECONDS
        self.not_utf8 = False

    def notebook(self, content: bytes) -> list[dict[str, Any]]:
        """Return the cells of a notebook: cell_type, source, and if there are any id, grade_id, solution, attachments.

        `not_utf8` then says whether its text had to be guessed. Outputs, kernel and all other metadata are dropped.
        Raises `Unusable`.
        """
        try:
            found = self._call("cells_of", base64.b64encode(content).decode())
        except TooCostly as error:
            reason = f"This notebook cannot be read ({error}); clear its outputs and save it again."
            raise Unusable(reason, "limit") from error
        if "cells" in found:
            self.not_utf8 = found["not_utf8"]
            return found["cells"]
        raise Unusable(found["reason"], found["status"])

    def names(self, submitted: NotebookNode, master: NotebookNode) -> Recognised:
        """Return which cells of the instructor's notebook `submitted` has without their names. Raises `Unusable`."""
        names = {name for cell in master.cells if (name := cell_id(cell))}
        if names <= {cell_id(cell) for cell in submitted.cells}:
            return Recognised()
        given = [_brief(cell, without_hidden_tests(cell.source)) for cell in master.cells]
        try:
            found = self._call("recognised", [_brief(cell, cell.source) for cell in submitted.cells], given)
        except TooCostly as error:
            raise Unusable(f"Its cells have lost their names and cannot be recognised ({error}).", "limit") from error
        return Recognised(**found)

    def html(self, text: str) -> str:
        """Return inert HTML."""
        try:
            return self._call("inert_html", text)
        except (TooCostly, RuntimeError):
            return LEFT_OUT

    def markdown(self, source: str, attachments: Mapping[str, Any] | None = None) -> str:
        """Return inert markdown, which shows the attachments by itself."""
        try:
            return self._call("inert_markdown", source, dict(attachments or {}))
        except TooCostly:
            return inert.literally(_TOO_LONG + source)
        except RuntimeError:  # nbconvert cannot render it, and would not in the formgrader either
            return inert.literally(source)

    def _call(self, function: str, *arguments: Any) -> Any:
        limited = _process()
        try:
            return limited(function, *arguments, seconds=self._left)
        finally:
            self._left -= limited.used


# -- in the process ----------------------------------------------------------------------------------------------


def cells_of(content: str) -> dict[str, Any]:
    """Return what `Reading.notebook` does, for a notebook in base64, or the reason and the status of `Unusable`."""
    try:
        text, not_utf8 = _text(base64.b64decode(content))
        raw = json.loads(text)
        if raw["nbformat"] != 4:
            raw = nbformat.converter.convert(nbformat.reader.reads(json.dumps(raw)), 4)
        given = list(raw["cells"])
        room = [MAX_ATTACHMENTS]
        cells = [_cell(cell, room) for cell in given[: MAX_CELLS + 1]]
    except MemoryError:
        raise
    except Exception as error:  # malformed JSON and malformed notebooks fail in a dozen ways
        what = f"is not a Jupyter notebook ({type(error).__name__})" if content else "is empty: it has 0 bytes"
        told = f"The file {what}. Open it in JupyterLab, save it there, and hand it in again."
        return {"reason": told, "status": "student_crash"}
    if len(given) > MAX_CELLS:
        return {"reason": f"The notebook has {len(given)} cells, and {MAX_CELLS} are allowed.", "status": "limit"}
    if sum(len(cell["source"]) for cell in cells) > MAX_TEXT:
        return {"reason": f"The cells of the notebook hold more than {MAX_TEXT:,} characters.", "status": "limit"}
    return {"cells": cells, "not_utf8": not_utf8}


def _text(content: bytes) -> tuple[str, bool]:
    """Decode a notebook. Return also whether it is no Unicode, as a program on Windows may have saved it."""
    try:
        return content.decode(json.detect_encoding(content)), False  # PowerShell writes UTF-16
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), True  # Latin-1, and the quotation marks that it lacks


def recognised(submitted: list[dict[str, Any]], release: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of what `recognise` finds, for two lists of cells as `_brief` makes them."""
    notebooks = [nbformat.from_dict({"cells": cells}) for cells in (submitted, release)]
    return dataclasses.asdict(recognise(*notebooks))


def _brief(cell: NotebookNode, source: str) -> dict[str, Any]:
    """Return the parts of a cell by which it is recognised."""
    brief = {"cell_type": cell.cell_type, "source": source, "metadata": {}}
    if cell_id(cell):
        brief["metadata"] = {"nbgrader": dict(cell.metadata["nbgrader"])}
    return brief | ({"id": cell["id"]} if "id" in cell else {})


def _cell(raw: Mapping, room: list[int]) -> dict[str, Any]:
    if raw["cell_type"] not in ("code", "markdown", "raw"):
        raise ValueError(raw["cell_type"])
    source = raw["source"]
    cell = {"cell_type": raw["cell_type"], "source": clean_text(source if isinstance(source, str) else "".join(source))}
    if isinstance(raw.get("id"), str) and _ID.fullmatch(raw["id"]):
        cell["id"] = raw["id"]
    nbgrader = raw.get("metadata", {}).get("nbgrader", {})
    if isinstance(nbgrader, Mapping):
        name = nbgrader.get("grade_id")
        if isinstance(name, str):
            cell |= {"grade_id": name, "solution": bool(nbgrader.get("solution"))}
    attachments = raw.get("attachments")
    if cell["cell_type"] == "markdown" and isinstance(attachments, Mapping):
        kept = {}
        for name, bundle in attachments.items():
            if isinstance(bundle, Mapping) and all(isinstance(data, str) for data in bundle.values()):
                room[0] -= sum(map(len, bundle.values()))
                if room[0] >= 0:
                    kept[clean_text(name)] = {clean_text(mime): clean_text(data) for mime, data in bundle.items()}
        if kept:
            cell["attachments"] = kept
    return cell
