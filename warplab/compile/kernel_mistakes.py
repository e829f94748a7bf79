"""Mistakes that everybody makes in a first Numba kernel, and what to write: a sentence above Numba's own message.

Numba's message says what its compiler could not do. Which mistake led there shows in the kernel's source, so that is
looked at, and only after a kernel has failed to compile.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator

_ELEMENT = "A kernel is what one thread does, so it works on elements"
_ARRAYS = frozenset({"array", "arange", "empty", "empty_like", "full", "linspace", "ones", "ones_like", "zeros"})
_NO_ARRAYS = ("NRT required", "_ol_array_allocate", "array_expr", "arrayexpr")


def hint(function: Callable, error: Exception) -> str:
    """Return what was meant and what to write, with the line; "" if the kernel has none of these mistakes."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # made by exec(): no source
        return ""
    kernel = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    if kernel is None:
        return ""
    for find in (_returned, _slices, _lists, _new_arrays, _functions_of_arrays, _whole_arrays):
        for node, text in find(kernel, str(error)):
            code = ast.unparse(node)
            return f"line {first + node.lineno - 1}: {code if len(code) < 80 else code[:77] + '...'}\n{text}"
    return ""


Found = Iterator[tuple[ast.stmt | ast.expr, str]]


def _returned(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Return) and node.value is not None:
            value = ast.unparse(node.value)
            yield (
                node,
                f"A kernel returns nothing, as nobody waits for the value: store it in an array that the kernel is "
                f"given, such as out[i] = {value if len(value) < 40 else '...'}.",
            )


def _slices(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice) for target in node.targets
        ):
            yield (
                node,
                f"{_ELEMENT}: find the thread's index, i = cuda.grid(1), guard it, if i < out.size, and write one "
                "element, such as out[i] = x[i] + y[i]. out[:] = ... is for NumPy on the host.",
            )


def _lists(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Set | ast.SetComp):
            what = "dicts" if isinstance(node, ast.Dict | ast.DictComp) else "lists"
            yield (
                node,
                f"A kernel has no Python {what}: each thread has variables, and arrays of a fixed size, such as "
                "cuda.local.array(4, numba.float32).",
            )


def _new_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    for node, name in _numpy_calls(kernel):
        if name in _ARRAYS:
            yield (
                node,
                f"A kernel cannot make arrays with np.{name}: use cuda.local.array(size, type) for one thread or "
                "cuda.shared.array(size, type) for its block, both of constant size, or pass an array from the host.",
            )


def _functions_of_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    for node, name in _numpy_calls(kernel):
        if name in error and ("ufunc" in error or any(text in error for text in _NO_ARRAYS)):
            yield node, f"np.{name} works on whole arrays, on the host. {_operator(name)}"
    if any(text in error for text in _NO_ARRAYS):
        for node, name in _numpy_calls(kernel):
            yield node, f"np.{name} works on whole arrays, on the host. {_operator(name)}"


def _whole_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    """`z = x + y` of parameters that are arrays."""
    if not any(text in error for text in _NO_ARRAYS):
        return
    parameters = {argument.arg for argument in kernel.args.args}
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp):
            names = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
            if parameters.intersection(names):
                given = ", ".join(name for name in names if name in parameters)
                yield (
                    node,
                    f"{_ELEMENT}, not on whole arrays ({given}): write x[i] + y[i] for the element i of the thread.",
                )


def _numpy_calls(kernel: ast.FunctionDef) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            module = node.func.value
            if isinstance(module, ast.Name) and module.id in ("np", "numpy"):
                yield node, node.func.attr


_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}


def _operator(name: str) -> str:
    if name in _OPERATORS:
        return f"In a kernel write the operator, on elements: x[i] {_OPERATORS[name]} y[i]."
    return f"In a kernel write what one thread does with its element, with operators or math: math.{name}(x[i])."
