"""How an error looks in a notebook and under `run`: the program's own lines and the message, without internals."""

import linecache
import sys
import sysconfig
import traceback
from pathlib import Path

from warplab.compile.source_files import display_name, is_cell

_ENGINE = Path(__file__).parents[1]
_PACKAGES = (str(_ENGINE), str(_ENGINE.with_name("warpcourse")))
_NOT_THE_LEARNERS = tuple(
    {*_PACKAGES, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
)


def interrupted(error: KeyboardInterrupt, doing: str) -> None:
    """Let IPython show an interrupt as one line, which says what it interrupted, such as "f ran in the simulator"."""
    if not hasattr(error, "_render_traceback_"):
        setattr(error, "_render_traceback_", lambda: _one_line(error, doing))  # noqa: B010 - what IPython asks for


def _one_line(error: KeyboardInterrupt, doing: str) -> list[str]:
    shown = short_traceback(error)
    if len(shown) < 3 or shown[-1] != f"KeyboardInterrupt: {error}":  # no line of the learner's, or the whole traceback
        return [f"KeyboardInterrupt: interrupted while {doing}."] if len(shown) < 3 else shown
    return [f"KeyboardInterrupt: interrupted while {doing} ({shown[-3]} {shown[-2].strip()})."]


def short_traceback(error: BaseException) -> list[str]:
    """Return the lines of `error` for IPython, which asks an exception's `_render_traceback_` for them.

    In IPython its notes, which say what was meant, take the place of its message but for the first line: of some
    compilers it is long. After `%xmode Verbose` the lines are the whole traceback, as always.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and shell.InteractiveTB.mode == "Verbose":
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        number = frame.lineno or 0
        code = linecache.getline(frame.filename, number).strip()
        internal = frame.filename.startswith((*_NOT_THE_LEARNERS, "<")) and not is_cell(frame.filename)
        if internal or "get_ipython().run_cell_magic(" in code:
            continue
        lines += [f"{display_name(frame.filename)}, line {number}:", f"    {code}"]
    said, notes = f"{type(error).__name__}: {error}", getattr(error, "__notes__", ())
    if shell is not None and notes and "\n" in said.strip():
        said = f"{first_line(error)} (%xmode Verbose shows the whole message)"
    return [*lines, *notes, said]


def first_line(error: BaseException) -> str:
    """Return the class of an error, and the first line of its message that says something."""
    text = str(error).removeprefix("- Resolution failure for literal arguments:")
    said = [line.strip(" >") for line in text.splitlines() if line.strip() and "pipeline (step" not in line]
    parts = 2 if said and said[0].endswith(":") else 1  # Numba's "... found for signature:"
    return f"{type(error).__name__}: {' '.join(said[:parts])}"
