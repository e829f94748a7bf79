"""Mistakes that everybody makes in a first Numba kernel, and what to write: a sentence above Numba's own message.

Numba's message says what its compiler could not do. Which mistake led there shows in the kernel's source, so that is
looked at, and only after a kernel has failed to compile.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import TypeGuard

_ELEMENT = "A kernel is what one thread does, so it works on elements"
_ARRAYS = frozenset({"array", "arange", "empty", "empty_like", "full", "linspace", "ones", "ones_like", "zeros"})
_NO_ARRAYS = ("NRT required", "_ol_array_allocate", "array_expr", "arrayexpr")


def hint(function: Callable, error: Exception) -> str:
    """Return what was meant and what to write, with the line; "" if the kernel has none of these mistakes."""
    return _first_mistake(function, _FINDERS, str(error))


def lost_result(function: Callable) -> str:
    """Return, for a kernel that compiles and stores nothing: the line with which it gives a parameter a new value, as
    in `out = x[i]`, or computes a value for nobody, and what was meant; "" if it has none."""
    return _first_mistake(function, (_rebound, _bitwise, _unused), "")


def without_effect(function: Callable) -> str:
    """Return the first line that computes a value for nobody, or names a barrier without calling it, and what was
    meant; "" without one."""
    return _first_mistake(function, (_unused,), "")


def swapped_range(function: Callable) -> str:
    """Return the line with `range(cuda.grid(1), cuda.gridsize(1), out.size)`, whose step is no number of threads, and
    what it means; "" without one."""
    return _first_mistake(function, (_other_step,), "")


def loose_guard(function: Callable) -> str:
    """Return the line with `i <= out.size`, or with `or` between two such guards, and what it lets through; "" without
    one."""
    return _first_mistake(function, (_loose,), "")


def never_set(function: Callable) -> str:
    """Return, for a kernel that adds to the elements of a local array of which it sets none: the line, and what was
    meant; "" for others.

    Numba 0.68 starts them at zero, which its documentation does not promise; CUDA C++ does not.
    """
    return _first_mistake(function, (_only_added_to,), "")


Found = Iterator[tuple[ast.stmt | ast.expr, str]]
Finder = Callable[[ast.FunctionDef, str], Found]


def _first_mistake(function: Callable, finders: Iterable[Finder], error: str) -> str:
    """Return the first mistake that one of `finders` finds: its line, and what was meant; "" if none does."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # made by exec(): no source
        return ""
    kernel = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    if kernel is None:
        return ""
    for find in finders:
        for node, text in find(kernel, error):
            return f"line {first + node.lineno - 1}: {lines[node.lineno - 1].strip()}\n{text}"
    return ""


def _returned(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Return) and node.value is not None:
            value = ast.unparse(node.value)
            stored = f"out[i] = {value if len(value) < 40 else '...'}"
            yield node, f"A kernel returns nothing: store the value in an array that it is given, such as {stored}."


def _slices(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Subscript)
            and any(isinstance(part, ast.Slice) for part in getattr(target.slice, "elts", [target.slice]))
            for target in node.targets
        ):
            yield node, f"{_ELEMENT}: out[i] = x[i] + y[i], for its number i. out[:] = ... is for NumPy on the host."


def _lists(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Set | ast.SetComp):
            what = {"D": "dicts", "S": "sets"}.get(type(node).__name__[0], "lists")
            array = "cuda.local.array(4, numba.float32)"
            yield node, f"A kernel has no Python {what}: each thread has variables, and arrays such as {array}."


def _new_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    for node, name in _numpy_calls(kernel):
        if name in _ARRAYS:
            array = "cuda.local.array or cuda.shared.array, both (constant size, type), or an array from the host"
            yield node, f"A kernel makes no arrays with np.{name}: use {array}."
    if "returning of array" in error:
        for part in ast.walk(kernel):
            if isinstance(part, ast.Attribute) and part.attr in ("ravel", "flatten", "copy", "astype"):
                yield part, f".{part.attr}() makes an array, and a kernel makes none: index the array that it is given."


def _functions_of_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    whole = any(text in error for text in _NO_ARRAYS)
    for node, name in sorted(_numpy_calls(kernel), key=lambda call: call[1] not in error):
        if whole or (name in error and "ufunc" in error):
            yield node, f"np.{name} works on whole arrays, on the host. {_operator(name)}"


def _whole_arrays(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `z = x + y` of parameters that are arrays."""
    if not any(text in error for text in _NO_ARRAYS):
        return
    parameters = _parameters(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp):
            names = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
            if parameters.intersection(names):
                given = ", ".join(name for name in names if name in parameters)
                yield node, f"{_ELEMENT}, not on whole arrays ({given}): write x[i] + y[i] for the thread's element i."


def _positions(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `cuda.grid()`, `cuda.grid`, `cuda.threadIdx` where a number is meant; `cuda.grid(2)` for one number."""
    called = {id(node.func) for node in ast.walk(kernel) if isinstance(node, ast.Call)}
    inside = {id(node.value) for node in ast.walk(kernel) if isinstance(node, ast.Attribute)}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _of_cuda(node.func) in _COUNTED and not node.args:
            name = _of_cuda(node.func)
            yield node, f"cuda.{name} asks for the number of dimensions: cuda.{name}(1) {_COUNTED[name]}."
        elif isinstance(node, ast.Attribute) and _of_cuda(node) in _COUNTED and id(node) not in called:
            name = _of_cuda(node)
            yield node, f"cuda.{name} is a function. Call it: cuda.{name}(1) {_COUNTED[name]}."
        elif isinstance(node, ast.Call) and _of_cuda(getattr(node.func, "value", node)) in _TRIPLES:
            yield node, f"{ast.unparse(node.func)} is a number, no function: write it without ()."
        elif isinstance(node, ast.Attribute) and _of_cuda(node) in _TRIPLES and id(node) not in inside:
            yield node, f"{ast.unparse(node)} has three numbers: write {ast.unparse(node)}.x, .y or .z."
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and _of_cuda(node.value.func) in _COUNTED
            and node.value.args
            and ast.unparse(node.value.args[0]) in ("2", "3")
            and "UniTuple(int64" in error
        ):
            call = ast.unparse(node.value)
            yield node, f"{call} returns several numbers: write i, j = {call}, or {call[:-2]}1) for one."


def _indices(kernel: ast.FunctionDef, error: str) -> Found:
    """Yield an index that is no whole number, `x(i)` and `out.append(...)`."""
    arrays = _parameters(kernel)
    pairs = [(to, node.value) for node in ast.walk(kernel) if isinstance(node, ast.Assign) for to in node.targets]
    for to, value in tuple(pairs):
        if isinstance(to, ast.Tuple) and isinstance(value, ast.Tuple):  # row, column = i / 4, i % 4
            pairs += zip(to.elts, value.elts, strict=False)
    assigned = {to.id: value for to, value in pairs if isinstance(to, ast.Name)}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Subscript):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in (part for index in indices for part in ast.walk(assigned.get(getattr(index, "id", ""), index))):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                    quotient = ast.unparse(ast.BinOp(part.left, ast.FloorDiv(), part.right))
                    yield node, f"An index is a whole number, and / makes a float: write {quotient}, which rounds down."
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in arrays and node.args:
            given = ", ".join(ast.unparse(argument) for argument in node.args)
            if "as a callable" in error:
                yield node, f"An element stands in square brackets: {node.func.id}[{given}]."
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in ("append", "extend", "insert")
            and isinstance(node.value, ast.Name)
            and node.value.id in arrays
        ):
            yield node, f"An array has a fixed size. A thread writes its element: {node.value.id}[i] = ..."
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id in arrays:
            name = node.iter.id
            yield (
                node.iter,
                f"Every thread would do this whole loop. Each takes one element: i = cuda.grid(1), if i < {name}.size.",
            )


def _sizes(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `i < out.shape` and `out.size()`."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                if isinstance(side, ast.Attribute) and side.attr == "shape" and "UniTuple(int64" in error:
                    array = ast.unparse(side.value)
                    yield node, f"{array}.shape has several numbers: write {array}.size or {array}.shape[0]."
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("size", "shape", "ndim")
            and "as a callable" in error
        ):
            yield node, f"{node.func.attr} is no function: write {ast.unparse(node.func)}, without ()."


def _read_only(kernel: ast.FunctionDef, error: str) -> Found:
    if ">>> setitem(readonly array" in error:
        text = "The kernel stores into an array that is read-only on the host, as np.broadcast_to and JAX make them"
        yield kernel, f"{text}: launch it with a copy, x.copy()."


def _whole_right_sides(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `out[i] = x[i] + y` and `out += x`: a whole array for one element."""
    arrays = _parameters(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in arrays:
            if "ufunc" in error or any(text in error for text in _NO_ARRAYS):
                array, operator, value = ast.unparse(node).split(" ", 2)
                whole = arrays.intersection(part.id for part in ast.walk(node.value) if isinstance(part, ast.Name))
                right = "..." if whole else value
                yield node, f"{_ELEMENT}, not on a whole array ({array}): write {array}[i] {operator} {right}"
        elif (isinstance(node, ast.Compare | ast.Call) and "array(" in error and "signature" in error) or (
            isinstance(node, ast.Assign) and "setitem" in error and isinstance(node.targets[0], ast.Subscript)
        ):
            taken = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Subscript | ast.Attribute)}
            # cuda.atomic.add(a, i, v) takes an array.
            calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and _atomic(part) and part.args]
            taken |= {id(call.args[0]) for call in calls}
            parts = node.value if isinstance(node, ast.Assign) else node
            for part in ast.walk(parts):
                if isinstance(part, ast.Name) and part.id in arrays and id(part) not in taken:
                    yield node, f"{part.id} is a whole array, and here one number is meant: write {part.id}[i]."


def _atomics(kernel: ast.FunctionDef, error: str) -> Found:
    """Yield an atomic with too few or too many arguments, or on an array of a type that it does not have."""
    for node in ast.walk(kernel):
        if not isinstance(node, ast.Call) or not (name := _atomic(node)):
            continue
        flat = "array with 1-D index" in error and not any(isinstance(part, ast.Tuple) for part in node.args)
        if len(node.args) != 3 + (name == "cas") or flat:
            values = "two values" if name == "cas" else "a value"
            yield node, f"cuda.atomic.{name} takes an array, an index, for a matrix (row, column), and {values}."
    refused = re.search(r"stubs\.atomic\.(\w+)'.*?>>> \w+\(array\((\w+),", error, re.S)
    if not refused:
        return
    name, dtype = refused[1], refused[2]
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _atomic(node) == name and node.args and dtype not in _atomic_types(name):
            takes = ", ".join(_atomic_types(name))
            array = ast.unparse(node.args[0])
            yield node, f"cuda.atomic.{name} takes arrays of {takes}, and {array} is one of {dtype}."


def _of_the_host(kernel: ast.FunctionDef, error: str) -> Found:
    """Find what only the host's Python has: imports, its functions and theirs, `np.where`; and a loop over a number."""
    untyped = re.search(r"Untyped global name '(\w+)': Cannot determine Numba type of <class '(\w+)'>", error)
    attribute = re.search(r"Unknown attribute '(\w+)' of type (\w+)", error)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, "A kernel imports nothing: write this line above the kernel, outside of it."
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and _of_cuda(node.iter.func) in _COUNTED:
            yield node, f"{ast.unparse(node.iter)} is one number, no range: write i = cuda.grid(1), if i < out.size."
        elif isinstance(node, ast.Name) and untyped and node.id == untyped[1] and untyped[2] == "function":
            yield node, f"{node.id} is a function of the host. A kernel calls it with @cuda.jit(device=True) above it."
        elif isinstance(node, ast.Name) and untyped and node.id == untyped[1] and untyped[2] in _BUILTIN:
            yield node, f"A kernel has no {node.id}: it has operators, range, min, max, abs, and what math has."
        elif isinstance(node, ast.Attribute) and attribute and node.attr == attribute[1]:
            if _of_cuda(node):
                yield node, f"A kernel has no {ast.unparse(node)}; the threads of a block wait at cuda.syncthreads()."
            elif re.match(r"u?int|float|bool", attribute[2]):
                yield node, f"{ast.unparse(node.value)} is one number, without .{node.attr}: use operators, min or max."
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "np.where" and len(node.args) == 3:
            condition, first, second = map(ast.unparse, node.args)
            yield node, f"np.where works on whole arrays; for one element write {first} if {condition} else {second}."
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".shared.array", ".local.array")):
            if len(node.args) + len(node.keywords) < 2:
                yield node, f"The type is missing: {ast.unparse(node.func)}(size, numba.float32)."
            elif {"float", "int"}.intersection(map(ast.unparse, (*node.args, *(word.value for word in node.keywords)))):
                yield node, f"float and int are Python's types: {ast.unparse(node.func)}(size, numba.float32)."
            elif re.search(r">>> array\((u?int\d+,|(Uni)?Tuple\(((?!class).)*\bu?int\d)", error):
                yield node, "The size must be known to the compiler: a number, or a name with one above the kernel."


def _undefined(kernel: ast.FunctionDef, error: str) -> Found:
    of_cuda = re.search(r"'numba\.cuda' has no attribute '(\w+)'", error)
    for node in ast.walk(kernel):
        if of_cuda and isinstance(node, ast.Attribute) and _of_cuda(node) == of_cuda[1]:
            near = get_close_matches(of_cuda[1], dir(import_module("numba.cuda")), 1)
            yield node, f"numba.cuda has no {of_cuda[1]}" + (f". Is cuda.{near[0]} meant?" if near else "")
    unknown = re.search(r"name '(\w+)' is not defined", error)
    for node in ast.walk(kernel):
        if unknown and isinstance(node, ast.Name) and node.id == unknown[1]:
            if node.id in _TRIPLES | _BARRIERS:
                yield node, f"{node.id} is CUDA C++; in Numba it is cuda.{node.id.lstrip('_')}."
            if node.id == "printf":
                yield node, "printf is CUDA C++; in Numba it is print, of values: print(i, x[i])."
            yield node, f"{node.id} has no value here, and had none outside when the kernel was compiled."


def _members(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `out.rows` and `math.max`."""
    missing = re.search(r"Unknown attribute '(\w+)' of type array|module '\w+' has no attribute '(max|min)'", error)
    for node in ast.walk(kernel):
        if missing and isinstance(node, ast.Attribute) and node.attr in missing.groups():
            owner = ast.unparse(node.value)
            here = (
                f"has .size and .shape, no {node.attr}" if missing[1] else f"has no {node.attr}: write {node.attr}(...)"
            )
            yield node, f"{owner} {here}."


def _rows(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `out[i] = pixels[k]` where `pixels` has two dimensions."""
    if not re.search(r"setitem\(array\([^()]*\), [^(]*, array\(", error):
        return
    arrays = _parameters(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            for part in ast.walk(node.value):
                if (
                    isinstance(part, ast.Subscript)
                    and isinstance(part.value, ast.Name)
                    and part.value.id in arrays
                    and not isinstance(part.slice, ast.Tuple | ast.Slice)
                ):
                    name = part.value.id
                    row = ast.unparse(part)
                    yield node, f"Has {name} two dimensions? Then {row} is a whole row: write {name}[row, column]."


def _matrix_products(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node, "A kernel has no product of arrays, @: loop over k, and add up one product at a time."


def _numpy_habits(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `(x[i] - y[j]).sum()` and `x[:, None]`: arithmetic on rows, as on the host."""
    if not any(text in error for text in (*_NO_ARRAYS, "built-in function", "as a callable", "attribute")):
        return
    arrays = _parameters(kernel)
    for node in ast.walk(kernel):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _OF_ARRAYS
            and not isinstance(node.func.value, ast.Name)
        ):
            yield node, f".{node.func.attr}() works on a whole array, and a kernel makes none: loop over the elements."
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in arrays:
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(
                isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is None)
                for index in indices
            ):
                element = f"{node.value.id}[i, k]"
                yield node, f"{ast.unparse(node)} is an array, and a kernel computes with numbers: loop over {element}."
    if any(text in error for text in _NO_ARRAYS):
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and any(
                isinstance(side, ast.Subscript) and isinstance(side.value, ast.Name) and side.value.id in arrays
                for side in (node.left, node.right)
            ):
                meant = "give it two indices, x[row, column], or loop over k, x[i, k]"
                yield node, f"{ast.unparse(node)} would make an array where an element is a row of a matrix: {meant}."


def _numbers(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `half /= 2` of a whole number, `np.max(a, b)`, too many indices, a variable read before it is set."""
    unset = re.search(r"Variable '(\w+)' is not defined", error)
    given = re.search(r">>> [gs]etitem\(array\(\w+, (\d)d[^)]*\), UniTuple\(int\w+ x (\d)\)", error)
    given = given if given and given[2] > given[1] else None
    places = [node.slice for node in ast.walk(kernel) if isinstance(node, ast.Subscript)]
    indices = {part.id for place in places for part in ast.walk(place) if isinstance(part, ast.Name)}
    for node in sorted((n for n in ast.walk(kernel) if isinstance(n, ast.expr | ast.stmt)), key=lambda n: n.lineno):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and isinstance(node.target, ast.Name):
            if f"('{node.target.id}." in error:
                halved = f"{node.target.id} //= {ast.unparse(node.value)}"
                yield node, f"{node.target.id} starts as a whole number, and / makes a float: write {halved}."
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Div):
            name, side = ast.unparse(node.targets[0]), ast.unparse(node.value.left)
            if name == side and name in indices and "float64" in error:
                halved = f"{name} = {side} // {ast.unparse(node.value.right)}"
                yield node, f"{name} starts as a whole number, and / makes a float: write {halved}."
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.max", "np.min") and len(node.args) == 2:
            name, numbers = ast.unparse(node.func), ", ".join(map(ast.unparse, node.args))
            yield node, f"{name} takes a whole array: for two numbers write {name[3:]}({numbers})."
        elif unset and isinstance(node, ast.Name) and node.id == unset[1] and isinstance(node.ctx, ast.Load):
            yield node, f"{node.id} is read before it has a value: set it above this line."
        elif given and isinstance(node, ast.Subscript) and len(getattr(node.slice, "elts", ())) == int(given[2]):
            dimensions = f"{given[1]} dimension{'s' * (given[1] != '1')}"
            yield node, f"{ast.unparse(node.value)} has {dimensions}, and here {given[2]} indices."


def _texts(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.JoinedStr):
            values = ", ".join(ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
            yield node, f"A kernel has no f-strings; print takes values: print({values})."


def _statements(kernel: ast.FunctionDef, error: str) -> Found:
    """Yield what Python has and a kernel has not; Numba's own errors on these are of its inside."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Try):
            yield node, "A kernel has no try and no except: test for the mistake first."
        elif isinstance(node, ast.With):
            yield node, "A kernel has no with."
        elif isinstance(node, ast.Yield | ast.YieldFrom):
            yield node, "A kernel yields nothing: store each value in an array, such as out[i] = ..."
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            states = "with states = create_xoroshiro128p_states(threads, seed), made on the host"
            yield node, f"In a kernel numba.cuda.random has xoroshiro128p_uniform_float32(states, i), {states}."
    if "insert_unresolved_ref" in error:
        signature = "@cuda.jit('int64(int64)', device=True)"
        yield kernel, f"It calls a device function that calls itself: write a loop, or add a signature, {signature}."


def _rebound(kernel: ast.FunctionDef, error: str) -> Found:
    parameters = _parameters(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in parameters:
                    name, value = target.id, ast.unparse(node.value)
                    element = f"{name}[i] = {value if len(value) < 40 else '...'}"
                    yield node, f"This gives the name {name} a new value, the array none; name the element: {element}"


def _bitwise(kernel: ast.FunctionDef, error: str) -> Found:
    """Find `i < n & j < m`, which compares with n & j, and `x[i] ^ 2`."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            for part in node.comparators:
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd | ast.BitOr):
                    sign, word = ("&", "and") if isinstance(part.op, ast.BitAnd) else ("|", "or")
                    yield node, f"{sign} binds closer than a comparison: write {word}."
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor) and "xor" in error:
            yield node, f"^ is no power: write {ast.unparse(node.left)} ** {ast.unparse(node.right)}."


def _loose(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and all(map(_is_guard, node.values)):
            yield node, "or lets a thread through that is inside in one of the two alone: write and."
        elif _is_guard(node) and isinstance(node.ops[0], ast.LtE):
            yield node, "<= lets the size itself through, which is no index: write <."


def _is_guard(node: ast.AST) -> TypeGuard[ast.Compare]:
    """Whether it compares an index with an array's size, such as `i < out.size`."""
    sizes = r"\w+\.size|\w+\.shape\[\d\]|len\(.*\)"
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Lt | ast.LtE)
        and bool(re.fullmatch(sizes, ast.unparse(node.comparators[0])))
    )


def _unused(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Expr) and _of_cuda(node.value):
            yield node, f"This only names {ast.unparse(node)}. Call it: {ast.unparse(node)}()."
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare | ast.BinOp):
            compares = isinstance(node.value, ast.Compare)
            yield node, "== compares; = stores." if compares else "Nothing keeps this value: store it, out[i] = ..."


def _other_step(kernel: ast.FunctionDef, error: str) -> Found:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and len(node.args) == 3:
            start, end, step = map(ast.unparse, node.args)
            if ("gridsize" in end or start.startswith("cuda.gridsize")) and "gridsize" not in step:
                yield node, f"It starts at {start}, ends before {end}, and steps by {step}: range(start, end, step)."


def _only_added_to(kernel: ast.FunctionDef, error: str) -> Found:
    made = {
        node.targets[0].id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("local.array")
    }
    added = [
        node
        for node in ast.walk(kernel)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Subscript)
        and isinstance(node.target.value, ast.Name)
        and node.target.value.id in made
    ]
    # All else but reading an element may set one: an assignment, a function that is given the array, a second name.
    harmless = {id(node.target.value) for node in added if isinstance(node.target, ast.Subscript)}
    harmless |= {
        id(node.value)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    }
    harmless |= {id(target) for node in ast.walk(kernel) if isinstance(node, ast.Assign) for target in node.targets}
    set_elsewhere = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name) and id(node) not in harmless}
    for node in added:
        assert isinstance(node.target, ast.Subscript)
        name = ast.unparse(node.target.value)
        if name not in set_elsewhere:
            yield node, f"Nothing promises that {name} starts at zero: set each element before, {name}[i] = 0."


_COUNTED = {"grid": "returns the number of the thread", "gridsize": "returns the number of threads in the grid"}
_OF_ARRAYS = frozenset({"sum", "mean", "min", "max", "prod", "dot", "argmin", "argmax", "any", "all"})
_BARRIERS = frozenset({"__syncthreads", "__syncwarp"})
_BUILTIN = frozenset({"type", "builtin_function_or_method"})
_TRIPLES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_FINDERS: tuple[Finder, ...] = (
    _returned,
    _of_the_host,
    _undefined,
    _slices,
    _lists,
    _texts,
    _statements,
    _positions,
    _indices,
    _sizes,
    _numbers,
    _bitwise,
    _new_arrays,
    _functions_of_arrays,
    _whole_arrays,
    _atomics,
    _read_only,
    _whole_right_sides,
    _matrix_products,
    _numpy_habits,
    _rows,
    _members,
)


def _parameters(kernel: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in kernel.args.args}


def _of_cuda(node: ast.AST) -> str:
    """Return the name x of a node cuda.x; "" for other nodes."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cuda":
        return node.attr
    return ""


def _atomic(call: ast.Call) -> str:
    """Return the name x of a call cuda.atomic.x(...); "" for other calls."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) and _of_cuda(function.value) == "atomic" else ""


def _atomic_types(name: str) -> tuple[str, ...]:
    """Return the dtypes that cuda.atomic.NAME takes."""
    if name in ("inc", "dec"):
        return "uint32", "uint64"
    integers = ("int32", "uint32", "int64", "uint64")
    return (*integers, "float32", "float64") if name in ("add", "sub", "min", "max", "nanmin", "nanmax") else integers


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
