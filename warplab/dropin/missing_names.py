"""What a notebook says after a NameError: the kernel was not compiled, has another name, or its cell was not run."""

from __future__ import annotations

import difflib
import functools
import re

not_compiled: set[str] = set()  # kernels of %%cuda cells that ended with an error

_REGISTERED = "_warplab_missing_names"


def register(shell) -> None:
    """Let an IPython shell print `explanation` below a NameError."""
    if not getattr(shell, _REGISTERED, False):
        shell.events.register("post_run_cell", functools.partial(_after, shell))
        setattr(shell, _REGISTERED, True)


def _after(shell, result) -> None:
    error = result.error_in_exec
    if isinstance(error, NameError) and error.name and error.name not in shell.user_ns:
        kernels = [name for name, value in shell.user_ns.items() if hasattr(value, "_warplab_source")]
        text = explanation(error.name, result.info.raw_cell, kernels)
        if text:
            print(text)


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
