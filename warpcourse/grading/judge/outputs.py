"""Outputs of a student's cells in the graded notebook: only valid forms, and a limited number of bytes.

The kernel that sends them is not trusted, and feedback and formgrader show them in a browser. Of rich outputs only
text, pictures and inert HTML stay.
"""

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output

from warpcourse.grading.exchange.artefacts import clean_text
from warpcourse.grading.judge.inert import BASE64, PICTURES
from warpcourse.grading.judge.untrusted import Reading

WITHHELD = "Not shown: this comes after hidden tests that called a function of the notebook."
UNHEARD = "Not shown: what functions of the notebook print while a test calls them."
_MAX_LINES = 200  # of a traceback


class Allowance:
    """An allowance of output bytes. `cell`, `notebook`: the most to keep of one cell, and of all cells.

    For the current cell, `received` counts all bytes and `lost` those not kept.
    """

    def __init__(self, cell: int, notebook: int) -> None:
        self._cell, self._notebook = cell, notebook
        self._room = self.received = self.lost = 0

    def begin(self) -> None:
        """Begin a new cell."""
        self._room, self.received, self.lost = min(self._cell, self._notebook), 0, 0

    def take(self, size: int, divisible: bool) -> int:
        """Return how many of `size` bytes may be kept: all or none if they are not divisible."""
        kept = size if size <= self._room else self._room if divisible else 0
        self._room -= kept
        self._notebook -= kept
        self.received += size
        self.lost += size - kept
        return kept


def size_of(content: Any) -> int:
    """Return the approximate number of bytes of a message's content."""
    if isinstance(content, str):
        return len(content)
    if isinstance(content, dict):
        return sum(len(str(key)) + size_of(value) for key, value in content.items())
    if isinstance(content, list):
        return sum(map(size_of, content))
    return 8


def cleaned(output: Any, count: int, reading: Reading) -> NotebookNode | None:
    """Return a valid output with the content of `output`, None if nothing can stay. `count`: the cell's number."""
    kind = output.get("output_type")
    if kind == "stream" and isinstance(output.get("text"), str):
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return new_output("stream", name=name, text=clean_text(output["text"]))
    if kind == "error":
        lines = output.get("traceback")
        lines = [clean_text(line) for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        ename, evalue = (clean_text(str(output.get(key, ""))) for key in ("ename", "evalue"))
        return new_output("error", ename=ename, evalue=evalue, traceback=lines[:_MAX_LINES])
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = _data(output["data"], reading)
        if data:
            return new_output(kind, data=data, **({"execution_count": count} if kind == "execute_result" else {}))
    return None


def _data(bundle: dict[Any, Any], reading: Reading) -> dict[str, str]:
    data = {}
    for mime, value in bundle.items():
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            value = "".join(value)
        if not isinstance(value, str):
            continue
        if mime == "text/plain":
            data[mime] = clean_text(value)
        elif mime == "text/html":
            data[mime] = reading.html(clean_text(value))
        elif mime in PICTURES and BASE64.fullmatch(value):
            data[mime] = value
    return data


def withheld() -> list[NotebookNode]:
    """Return what replaces the outputs of each cell of a process that knows inputs of hidden tests.

    Nothing in it is the process's choice, not even whether the cell had outputs.
    """
    return [new_output("stream", name="stdout", text=f"[{WITHHELD}]\n")]


def coalesced(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join adjacent pieces of the same stream."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and last.output_type == output.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined
