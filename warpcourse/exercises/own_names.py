"""The names that an exercise's own cells define, given back to each of these cells where a learner's cell took one.

Answers and tests share one process: a helper called as one of the tests' would change what they test, unseen. So would
`checks.kernel = ...`: the functions, classes and modules in the modules that the tests use are given back, too; and so
is, without a word, what their lists and dicts held.

This is for accidents. What nobody does by accident, such as another `__code__` for `checks.kernel`, is let through: it
fools its author alone, since a class's judge keeps its checks in a process that answers do not reach.
"""

import hashlib
import sys
from collections.abc import Collection, Iterable
from types import ModuleType
from typing import Any

NOTE = "The tests take the exercise's own "


def guard(shell: Any, own: Collection[str]) -> None:
    """Watch the cells that the IPython `shell` runs: those of `own`, by `key`, get their names back and keep them."""
    kept: dict[str, Any] = {}
    before: dict[str, Any] = {}
    held: list[tuple[Any, Any]] = []  # lists and dicts with copies of them
    functions: dict[str, dict[str, Any]] = {}

    def give_back(info: Any) -> None:
        if key(info.raw_cell) in own:
            names = shell.user_ns
            taken = [name for name, value in kept.items() if names.get(name, value) is not value]
            if taken := taken + _restored(functions):
                print(f"{NOTE}{', '.join(taken)}, not what a cell of yours calls so. Give yours another name.")
            names.update(kept)
            for value, contents in held:
                value.clear()
                value.update(contents) if isinstance(value, dict) else value.extend(contents)
            before.clear()
            before.update(names)

    def keep(result: Any) -> None:
        if key(result.info.raw_cell) in own:
            own_names = {name: value for name, value in shell.user_ns.items() if not name.startswith("_")}
            kept.update({name: value for name, value in own_names.items() if before.get(name, before) is not value})
            functions.update(_functions(kept.values()))
            held[:] = [(value, value.copy()) for value in kept.values() if type(value) in (list, dict)]

    shell.events.register("pre_run_cell", give_back)
    shell.events.register("post_run_cell", keep)


def _functions(values: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return, by module and name, the functions and classes of the modules among `values`, and of all of the course."""
    used = {value.__name__ for value in values if isinstance(value, ModuleType)}
    used |= {name for name in sys.modules if name.partition(".")[0] in ("warplab", "warpcourse", "kernels")}
    return {
        module: {
            name: value
            for name, value in vars(sys.modules[module]).items()
            if callable(value) or isinstance(value, ModuleType)
        }
        for module in used & sys.modules.keys()
    }


def _restored(functions: dict[str, dict[str, Any]]) -> list[str]:
    """Give `functions` back to their modules; return the names of those that were others."""
    taken = []
    for module, own in functions.items():
        names = vars(sys.modules[module]) if module in sys.modules else own
        taken += [f"{module}.{name}" for name, value in own.items() if names.get(name) is not value]
        names.update(own)
    return taken


def key(source: str) -> str:
    """Return what stands for a cell's text."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]
