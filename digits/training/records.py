"""What the files of a run may say, checked as they are read: a folder that was copied from somebody may hold anything.

Statuses are known ones, numbers are numbers, names of figures are identifiers; the page shows them as they are.
"""

import math
from pathlib import Path
from typing import Any

from digits.files import DigitsError, read_json
from digits.jobs import ALIVE

ENDED = ("paused", "stopped", "done", "failed", "killed", "broken")
PARTS = ("train", "validation")
EMPTY: dict[str, Any] = {
    "status": "broken",
    "pid": None,
    "step": 0,
    "steps": None,
    "epoch": 0.0,
    "epochs": None,
    "seconds": 0.0,
    "remaining": None,
    "message": "",
    "last": {},
    "best": None,
    "notes": [],
}
_NUMBERS = ("pid", "step", "steps", "epoch", "epochs", "seconds", "remaining")
_LARGEST = 2**53


def read_state(path: Path) -> dict[str, Any]:
    """Return the state in the file at `path`, with every key of EMPTY and no other. DigitsError if it is no state."""
    value = read_json(path)
    state = {key: value.get(key, default) for key, default in EMPTY.items()}
    wrong = [name for name in _NUMBERS if not (state[name] is None or _is_count(state[name]))]
    wrong += [name for name in ("step", "epoch", "seconds") if state[name] is None]
    if not (isinstance(state["status"], str) and state["status"] in ALIVE + ENDED):
        wrong.append("status")
    if not isinstance(state["message"], str):
        wrong.append("message")
    if not (isinstance(state["notes"], list) and all(isinstance(note, str) for note in state["notes"])):
        wrong.append("notes")
    last = state["last"]
    if not (isinstance(last, dict) and all(part in PARTS and is_point(point) for part, point in last.items())):
        wrong.append("last")
    if not (state["best"] is None or is_point(state["best"])):
        wrong.append("best")
    if wrong:
        raise DigitsError(f"{path.name} of {path.parent.name} is damaged: {wrong[0]} is wrong. Delete the run.")
    return state


def is_point(line: Any) -> bool:
    """Return whether `line` is a point of a curve; see digits.training.curves. A figure may be NaN or infinite."""
    if not isinstance(line, dict) or line.get("part") not in PARTS:
        return False
    if type(line.get("step")) is not int or not (_is_count(line["step"]) and _is_count(line.get("epoch"))):
        return False
    return all(_is_name(name) and _is_number(value) for name, value in line.items() if name != "part")


def is_load(line: Any) -> bool:
    """Return whether `line` is a sample; see digits.training.load."""
    if not isinstance(line, dict) or not _is_count(line.get("time")):
        return False
    gpus = line.get("gpus", [])
    if not (isinstance(gpus, list) and all(isinstance(gpu, dict) and isinstance(gpu.get("name"), str) for gpu in gpus)):
        return False
    numbers = [line, *gpus]
    texts = ("gpus", "name")
    return all(_is_name(key) and _is_count(one) for part in numbers for key, one in part.items() if key not in texts)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) <= _LARGEST


def _is_count(value: Any) -> bool:
    """Return a finite number from 0."""
    return _is_number(value) and math.isfinite(value) and value >= 0
