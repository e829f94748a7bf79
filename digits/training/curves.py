"""A run's curves: one JSON line for each point, and the same points for TensorBoard.

A line is {"step", "epoch", "part": "train" or "validation", "loss", the kind's figures, "rate"}: nothing that differs
between a run that was interrupted and one that was not.
"""

import json
import os
from pathlib import Path
from typing import Any

from digits.files import append_line, explained, read_lines, write_file
from digits.training.records import is_point

FILE = "curves.jsonl"


def points(run: Path) -> list[dict[str, Any]]:
    """Return the points of the run in the folder `run`, in the order they were added; what is none is skipped."""
    return [line for line in read_lines(Path(run) / FILE) if is_point(line)]


class Curves:
    """The curves of the run in the folder `run`, for the one process that writes them.

    `step` and `validated`: what the checkpoint knows, from which the run goes on; later points are dropped, for they
    will be computed again. -1 for none.
    """

    def __init__(self, run: Path, step: int = -1, validated: int = -1) -> None:
        self.path = Path(run) / FILE
        last = {"train": step, "validation": validated}
        lines = [line for line in points(run) if line["step"] <= last[line["part"]]]
        data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        write_file(self.path, lambda stream: stream.write(data))
        self.last: dict[str, dict[str, Any]] = {line["part"]: line for line in lines}
        from digits.training.events import Events  # brings TensorBoard along, which those who only read do not need

        self._events = Events(Path(run) / "events", lines)

    def add(self, line: dict[str, Any]) -> None:
        """Append a point. Raises DigitsError if the disk is full."""
        append_line(self.path, line)
        self.last[line["part"]] = line
        self._events.add(line)

    def sync(self) -> None:
        """Return once all points are on the disk: no checkpoint may be there without the points before it."""
        with explained(f"write {FILE}"), self.path.open("ab") as stream:
            os.fsync(stream.fileno())

    def close(self) -> None:
        self._events.close()
