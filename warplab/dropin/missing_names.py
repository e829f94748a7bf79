"""What a notebook says of a NameError: the kernel was not compiled, has another name, or its cell was not run."""

from __future__ import annotations

import difflib
import functools
import linecache
import re
import traceback
from types import TracebackType

from warplab.compile.short_traceback import short_traceback
from warplab.compile.source_files import is_cell

not_compiled: set[str] = set()  # kernels of %%cuda cells that ended with an error


def register(shell) -> None:
    """Let an IPython shell end a NameError with its `explanation`: the learner's line, the error, what to do."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), _show)


def _show(shell, kind: type, error: NameError, trace: TracebackType, tb_offset: int | None = None) -> None:
    cells = [frame.filename for frame in traceback.extract_tb(trace) if is_cell(frame.filename)]
    if cells and error.name and error.name not in shell.user_ns and not hasattr(error, "_render_traceback_"):
        kernels = [name for name, value in shell.user_ns.items() if hasattr(value, "_warplab_source")]
        text = explanation(error.name, "".join(linecache.getlines(cells[0])), kernels)
        if text:
            shown = functools.partial(_lines, error, text)
            setattr(error, "_render_traceback_", shown)  # noqa: B010 - what IPython asks for
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _lines(error: NameError, text: str) -> list[str]:
    return [*short_traceback(error), text]


def explanation(name: str, cell: str, kernels: list[str]) -> str:
    """Return what is missing where `cell` uses the undefined `name`; "" if `name` is not used as a kernel or function.

    `kernels`: names of those that are defined.
    """
    if name in not_compiled:
        return (
            f"{name} was not compiled: the %%cuda cell that defines it ended with an error. Mend that cell and run "
            "it, then this one."
        )
    if not re.search(rf"\b{name}\s*[\[(]|\.(kernel|function|examples)\(\s*{name}\b", cell):
        return ""
    near = difflib.get_close_matches(name, kernels, 1)
    if near:
        return (
            f"There is no {name}, but a kernel {near[0]}. Has the cell that defines {name} been run, without an "
            f"error, and does a %%cuda cell begin with both per cent signs? If renamed: here it is called {name}."
        )
    return f"There is no {name} yet. Run the cell that defines it, then this one. Renamed? Give it this name again."
