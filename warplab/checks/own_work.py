"""An exercise's answers are the learner's own work: `own_work` refuses cells that take them from the course.

It also refuses predictions that the cell which writes them gets from a run.

A cell is refused before it runs, so that the names which it would define are missing, in a notebook, in `warplab check`
and where a class is graded. It looks at what a cell says: whoever hides an import on purpose may as well copy the text.
"""

import ast
import dis
import re
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warplab.checks.errors import CheckFailed

_FOLDER = Path(__file__).parents[2]  # what the engine's package lies in


def packages(course: Path = _FOLDER) -> list[str]:
    """List the packages with the course's own work: kernels, and each application, a folder beside it with a lab.py."""
    return ["kernels", *sorted(path.parent.name for path in course.glob("*/lab.py"))]


_PACKAGES = packages()
_COURSE = f"(?:{'|'.join(map(re.escape, _PACKAGES))})"
_LAUNCHING = {"warplab", "numba", "cupy"}  # packages that kernels, and what launches or counts them, come from
_WORK_OUT = "the values of prediction: numbers, or Python that works them out without kernels"
_GLOBAL = {"LOAD_NAME", "LOAD_GLOBAL", "STORE_NAME", "STORE_GLOBAL"}
_MARK = "_own_work"  # in the notebook's namespace: the modules that its exercise gives
_PATH = re.compile(rf"[^\w\s]*(?:[\w.~-]*/)*{_COURSE}((?:\.\w+)+|(?:/[\w.-]+)+/?)[^\w\s]*")
_OPTION = re.compile(rf"-I\S*\b{_COURSE}(/\S*)?")
_IMPORT = re.compile(rf"^[ \t]*(?:from|import)[ \t]+({_COURSE}(?:\.\w+)+)", re.MULTILINE)
_INCLUDE = re.compile(rf'#\s*include\s*["<]([^">]*\b{_COURSE}/[^">]*)')


def own_work(*given: str) -> None:
    """Refuse every later cell of this notebook that takes something from `packages`, except from the modules `given`.

    To be called at the end of an exercise's setup cell. What the notebook has from other modules of theirs by then is
    removed; `CheckFailed` names it. Does nothing outside a notebook.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    shell.user_ns[_MARK] = frozenset(given)
    if not any(isinstance(found, _OwnWork) for found in shell.ast_transformers):
        shell.ast_transformers.append(_OwnWork(shell))
    taken = {name: module for name, value in shell.user_ns.items() if (module := _taken(value, given))}
    for name in taken:
        del shell.user_ns[name]
    if taken:
        name, module = next(iter(taken.items()))
        raise CheckFailed(_problem(module), got=f"{name}, which is removed", look_at=_look_at(given))


class _OwnWork:
    """What IPython shows each cell to before it runs."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def visit(self, tree: ast.Module) -> ast.Module:
        given = self._shell.user_ns.get(_MARK)
        if given is not None:
            for module in from_course(tree):
                if module not in given:
                    raise _rejection(f"{_problem(module)}\n  look at   {_look_at(given)}")
            for name in run_for_predictions(tree, self._shell.user_ns):
                raise _rejection(
                    f"A prediction comes before the run, but this cell uses {name}.\n  look at   {_WORK_OUT}"
                )
        return tree


def from_course(tree: ast.AST) -> Iterator[str]:
    """Yield what code takes from `packages`: modules by name, files by path; docstrings and comments do not count."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_course(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _is_course(node.module):
            yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield from _in_text(node.value)


def _in_text(text: str) -> Iterator[str]:
    for word in text.split() if "\n" not in text else _IMPORT.findall(text):  # a kernel in CUDA C++ has comments
        if _PATH.fullmatch(word) or _OPTION.fullmatch(word):
            yield word.strip("\"'()<>[]{},;")
    yield from _INCLUDE.findall(text)


def run_for_predictions(tree: ast.Module, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names, in a cell that writes `prediction`, of kernels and of what launches or counts them."""
    if any(map(_writes_prediction, ast.walk(tree))):
        try:
            code = compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, RecursionError):  # the cell will not run
            return
        for name in _global_names(code):
            value = names.get(name)
            if {module.split(".")[0] for module in (_module(value), type(value).__module__)} & _LAUNCHING:
                yield name


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code means by those of its notebook: a function's own variables are others."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in _GLOBAL)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _writes_prediction(node: ast.AST) -> bool:
    """Return whether it is `prediction = ...`, `prediction[...] = ...` or `prediction.update`."""
    place = node.value if isinstance(node, ast.Subscript | ast.Attribute) else node
    stored = isinstance(getattr(node, "ctx", None), ast.Store) or getattr(node, "attr", "") == "update"
    return stored and isinstance(place, ast.Name) and place.id == "prediction"


def _module(value: Any) -> str:
    """Return the name of the module that a value is, or comes from; "" if it has none."""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


def _is_course(module: str) -> bool:
    return module.split(".")[0] in _PACKAGES


def _taken(value: Any, given: tuple[str, ...]) -> str:
    """Return what a value takes from the course; "" for one that takes nothing, and for what the exercise gives."""
    if isinstance(value, types.FunctionType) and not _is_course(value.__module__ or ""):
        return next((found for found in _named(value.__code__) if found not in given), "")
    module = _module(value)
    return module if _is_course(module) and module not in given else ""


def _named(code: types.CodeType) -> Iterator[str]:
    """Yield the modules of the course that a function imports when it runs."""
    yield from (name for name in code.co_names if _is_course(name) and "." in name)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named(constant)
        elif isinstance(constant, str) and constant != code.co_consts[0]:  # the first may be the docstring
            yield from _in_text(constant)


def _problem(module: str) -> str:
    return f"The answers of an exercise are your own work, and {module} is the course's."


def _look_at(given: Any) -> str:
    given = " and ".join(sorted(given)) or "nothing"
    return f"what you import or read from {' and '.join(_PACKAGES)}: the exercise gives only {given}"


def _rejection(text: str) -> Exception:
    from IPython.core.error import InputRejected

    class NotYourOwn(InputRejected):
        def _render_traceback_(self) -> list[str]:
            return [f"NotYourOwn: {self}"]

    return NotYourOwn(text)
