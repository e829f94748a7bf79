"""How errors reach a learner: the message and the learner's own lines, without the bench's internals."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import traceback

from warplab.compile.source_files import display_name, is_cell
from warplab.paths import COURSE

_NOT_THE_LEARNERS = tuple(
    {str(COURSE / "warplab"), *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
)


def short_traceback(error: BaseException) -> list[str]:
    """Lines for IPython, which asks an exception's `_render_traceback_` for them.

    After `%xmode Verbose` the whole traceback, as always.
    """
    shell = sys.modules["IPython"].get_ipython()
    if shell.InteractiveTB.mode == "Verbose":
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        code = linecache.getline(frame.filename, frame.lineno).strip()
        internal = frame.filename.startswith((*_NOT_THE_LEARNERS, "<")) and not is_cell(frame.filename)
        if internal or "get_ipython().run_cell_magic(" in code:
            continue
        lines += [f"{display_name(frame.filename)}, line {frame.lineno}:", f"    {code}"]
    return [*lines, f"{type(error).__name__}: {error}"]


class ArgumentError(TypeError):
    """Arguments of a launch that do not fit the kernel's parameters."""

    _render_traceback_ = short_traceback
