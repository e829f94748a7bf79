"""What a notebook says of a NameError: the cell with the kernel failed or was not run, or it has another name.

What a cell that failed would have defined anew is taken away, so that no check judges the version before.
"""

import difflib
import functools
import linecache
import re
import traceback
from types import TracebackType

from warplab.compile.cuda_signature import kernels
from warplab.compile.short_traceback import short_traceback
from warplab.compile.source_files import is_cell

not_compiled: set[str] = set()  # kernels and functions of cells that ended with an error
_defined: dict[str, set[str]] = {}  # by cell, what it defined when it ran last
_renamed: dict[str, str] = {}  # what a cell defined before it was changed, and what it defines now
_FUNCTION = re.compile(r"^(?:async )?def (\w+)", re.MULTILINE)


def register(shell) -> None:
    """Let an IPython shell end a NameError with its `explanation`: the learner's line, the error, what to do."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), _show)
        shell.events.register("pre_run_cell", functools.partial(_note, shell))
        shell.events.register("post_run_cell", functools.partial(_drop, shell))


def _note(shell, info) -> None:
    """Note what the kernels and functions that a cell defines stood for before it."""
    names = {*_FUNCTION.findall(info.raw_cell), *(kernels(info.raw_cell) if "__global__" in info.raw_cell else ())}
    info.warplab_before = {name: shell.user_ns.get(name) for name in names}


def _drop(shell, result) -> None:
    """Take away the names that a failed cell left as they were before it, and say what CUDA C++ needs."""
    before = getattr(result.info, "warplab_before", {})
    not_compiled.difference_update(before)
    for name in before:
        _renamed.pop(name, None)
    if result.success and before and (cell := getattr(result.info, "cell_id", None)):
        others = set().union(*(names for other, names in _defined.items() if other != cell))
        for name in _defined.get(cell, set()) - before.keys() - others:  # or a check would judge it as the cell's
            shell.user_ns.pop(name, None)
            _renamed[name] = next(iter(before))
        _defined[cell] = set(before)
    if not result.success:
        kept = {name for name, old in before.items() if shell.user_ns.get(name) is old}
        not_compiled.update(kept | (before.keys() - shell.user_ns.keys()))
        shell.drop_by_id({name: before[name] for name in not_compiled & before.keys() & shell.user_ns.keys()})
        if isinstance(result.error_before_exec, SyntaxError) and "__global__" in result.info.raw_cell:
            print("CUDA C++? Then %%cuda, with two per cent signs, must be the first line of the cell.")


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
            f"{name} was not compiled: the cell that defines it ended with an error. Mend that cell and run it, then "
            "this one."
        )
    if name in _renamed:
        return (
            f"The cell that defined {name} defines {_renamed[name]} now. Here it is called {name}: give it that name."
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
