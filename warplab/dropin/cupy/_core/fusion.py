"""`fuse`: a Python function of elementwise operations becomes one kernel.

The function is called once for each combination of types, with variables that note what is done to them. From the notes
comes an `ElementwiseKernel`, or with a sum at the end a `ReductionKernel`.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from warplab.dropin.cupy._core._carray import type_name
from warplab.dropin.cupy._core._kernel import ElementwiseKernel
from warplab.dropin.cupy._core._reduction import ReductionKernel
from warplab.dropin.cupy._core.core import ndarray
from warplab.launch.device_arrays import DeviceArray

_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "true_divide": "/",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "&&",
    "logical_or": "||",
}
# Functions of CUDA C++ of NumPy's name, and of other names.
_SAME = """
    cbrt ceil copysign cos cosh exp exp2 expm1 fabs floor fmax fmin fmod hypot isfinite isinf isnan log log10 log1p log2
    nextafter rint signbit sin sinh sqrt tan tanh trunc
"""
_FUNCTIONS = {name: name for name in _SAME.split()} | {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "floor_divide": "_floor_divide",
    "conjugate": "",
}
# `a`, `b`: the operands, in the types of NumPy's loop; `T`: that of the result.
_EXPRESSIONS = {
    "absolute": "(a < 0 ? -a : a)",
    "deg2rad": "a * (T)(M_PI / 180)",
    "degrees": "a * (T)(180 / M_PI)",
    "invert": "~a",
    "logical_not": "!a",
    "logical_xor": "(!a != !b)",
    "maximum": "(a != a || a > b ? a : b)",
    "minimum": "(a != a || a < b ? a : b)",
    "negative": "-a",
    "positive": "a",
    "rad2deg": "a * (T)(180 / M_PI)",
    "radians": "a * (T)(M_PI / 180)",
    "reciprocal": "(T)1 / a",
    "remainder": "a - _floor_divide(a, b) * b",
    "sign": "(T)((a > 0) - (a < 0))",
    "square": "a * a",
}
_POWER = """template <typename T> __device__ T _power(T x, T n) {
  T y = 1;
  for (; n > 0; n >>= 1, x *= x) if (n & 1) y *= x;
  return y;
}"""
# map, reduce, identity; the type is NumPy's.
_REDUCTIONS = {"sum": ("a + b", "0"), "prod": ("a * b", "1"), "any": ("a || b", "false"), "all": ("a && b", "true")}


class Variable(NDArrayOperatorsMixin):
    """A value while a function is traced. `dtype`: its NumPy dtype; `weak`: the Python type of a number."""

    _traced = True

    def __init__(self, trace: _Trace, name: str, dtype: np.dtype, weak: type | None = None) -> None:
        self._trace, self._name, self.dtype, self._weak = trace, name, dtype, weak

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs, out=None, dtype=None, **kwargs):
        if method != "__call__" or kwargs:
            raise NotImplementedError(f"cupy.fuse does not know {ufunc.__name__}.{method} with {sorted(kwargs)}")
        result = self._trace.operation(ufunc, inputs, dtype)
        return result if out is None else self._trace.assign(out[0], result)

    def __array_function__(self, function, types, args, kwargs):
        return self._trace.function(function.__name__, args, kwargs)

    def astype(self, dtype, **kwargs) -> Variable:
        return self._trace.value(f"({type_name(np.dtype(dtype))})({self._name})", np.dtype(dtype))

    def __getattr__(self, name: str):
        if name in ("sum", "prod", "max", "min", "any", "all", "clip"):
            return functools.partial(self._trace.method, name, self)
        raise AttributeError(f"cupy.fuse does not know the attribute {name} of an array")

    def __bool__(self) -> bool:
        raise TypeError("a value inside cupy.fuse has no truth: use cupy.where(condition, a, b) in place of `if`")


class _Reduced:
    """The result of a reduction, which a fused function may only return."""

    _traced = True

    def __init__(self, value: Variable, name: str, axis, keepdims: bool) -> None:
        self.value, self.name, self.axis, self.keepdims = value, name, axis, keepdims


class _Trace:
    """What a function does to its arguments: C++ statements, and the variables that were assigned to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.assigned: dict[int, Variable] = {}  # by `id` of the target
        self._numbers = itertools.count()

    def value(self, expression: str, dtype: np.dtype) -> Variable:
        name = f"v{next(self._numbers)}"
        self.lines.append(f"{type_name(dtype)} {name} = {expression};")
        return Variable(self, name, dtype)

    def current(self, operand):
        return self.assigned.get(id(operand), operand)

    def operation(self, ufunc: np.ufunc, inputs: tuple, dtype=None) -> Variable:
        operands = [self.current(operand) for operand in inputs]
        kinds = [_kind(operand) for operand in operands]
        wanted: dict[str, Any] = {}
        if dtype is not None:
            wanted["signature"] = (*(None for _ in inputs), np.dtype(dtype))
        *loop, result = ufunc.resolve_dtypes((*kinds, None), **wanted)
        values = [self._cast(operand, kind) for operand, kind in zip(operands, loop, strict=True)]
        return self.value(_expression(ufunc.__name__, values, loop[0], result), result)

    def _cast(self, operand, dtype: np.dtype) -> str:
        if isinstance(operand, Variable):
            name = operand._name
            return name if operand.dtype == dtype and operand._weak is None else f"({type_name(dtype)})({name})"
        return _literal(operand, dtype)

    def assign(self, target, value: Variable) -> Variable:
        if not isinstance(target, Variable) or not np.can_cast(value.dtype, target.dtype, "same_kind"):
            raise TypeError(f"output (typecode '{value.dtype.char}') could not be coerced to that of the target")
        self.assigned[id(target)] = self.value(f"({type_name(target.dtype)})({value._name})", target.dtype)
        return target

    def function(self, name: str, args: tuple, kwargs: dict):
        if name == "where" and len(args) == 3:
            condition, *sides = (self.current(arg) for arg in args)
            dtype = np.result_type(*(_example(side) for side in sides))
            left, right = (self._cast(side, dtype) for side in sides)
            return self.value(f"{self._cast(condition, np.dtype('?'))} ? {left} : {right}", dtype)
        return self.method({"amax": "max", "amin": "min"}.get(name, name), *args, **kwargs)

    def method(self, name: str, a, *args, **kwargs):
        a = self.current(a)
        if name == "clip":
            low, high = (*args, None)[:2] if args else (kwargs.get("a_min"), kwargs.get("a_max"))
            a = a if low is None else self.operation(np.maximum, (a, low))
            return a if high is None else self.operation(np.minimum, (a, high))
        if name not in ("sum", "prod", "max", "min", "any", "all"):
            raise NotImplementedError(f"cupy.fuse does not know {name}; write a kernel, or take @cupy.fuse away")
        axis = args[0] if args else kwargs.get("axis")
        return _Reduced(a, name, axis, kwargs.get("keepdims", False))


def _kind(operand) -> Any:
    if isinstance(operand, Variable):
        return operand.dtype if operand._weak is None else operand._weak
    if isinstance(operand, bool | np.generic):
        return np.dtype(type(operand))
    if isinstance(operand, int | float | complex):
        return type(operand)
    raise TypeError(f"Unsupported type {type(operand)}")


def _example(operand):
    kind = _kind(operand)
    return kind(0) if isinstance(kind, type) else kind


def _literal(value, dtype: np.dtype) -> str:
    if dtype.kind == "c":
        value = complex(value)
        return f"{type_name(dtype)}({value.real!r}, {value.imag!r})"
    value = dtype.type(value).item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not np.isfinite(value):
        value = "(0.0 / 0.0)" if value != value else f"({'-' * (value < 0)}1.0 / 0.0)"
    return f"({type_name(dtype)}){value}{'ull' * (dtype.kind == 'u' and dtype.itemsize == 8)}"


def _expression(name: str, values: list[str], loop: np.dtype, result: np.dtype) -> str:
    if name in _OPERATORS:
        return f"{values[0]} {_OPERATORS[name]} {values[1]}"
    if name in ("power", "float_power"):
        return f"{'_power' if loop.kind in 'iub' else 'pow'}({values[0]}, {values[1]})"
    if name == "absolute" and loop.kind == "c":
        return f"abs({values[0]})"
    if name == "invert" and loop.kind == "b":
        return f"!{values[0]}"
    name = {"fmax": "maximum", "fmin": "minimum"}.get(name, name) if loop.kind in "iub" else name
    if name == "fmod" and loop.kind in "iu":
        return f"{values[1]} == 0 ? 0 : {values[0]} % {values[1]}"
    if name in _FUNCTIONS:
        if loop.kind in "fc" or name in ("floor_divide", "conjugate"):
            return f"{_FUNCTIONS[name]}({', '.join(values)})"
        return {"isfinite": "true", "isinf": "false", "isnan": "false"}.get(name, values[0])
    if name in _EXPRESSIONS:
        text = f" {_EXPRESSIONS[name]} "
        for word, value in (("T", type_name(result)), *zip("ab", (f"({value})" for value in values), strict=False)):
            text = _replace_word(text, word, value)
        return text.strip()
    raise NotImplementedError(f"cupy.fuse does not know {name}; write a kernel, or take @cupy.fuse away")


def _replace_word(text: str, word: str, value: str) -> str:
    return re.sub(rf"(?<![\w.]){word}(?!\w)", lambda _: value, text)


class Fusion:
    """A fused function. Called with device arrays and numbers it runs its kernel; without arrays, the function."""

    def __init__(self, func: Callable, name: str | None = None) -> None:
        functools.update_wrapper(self, func)
        self.func, self.name = func, name or re.sub(r"\W", "_", func.__name__)  # "<lambda>"
        self._kernels: dict[tuple, Callable] = {}

    def __repr__(self) -> str:
        return f"<Fusion name={self.name}>"

    def __call__(self, *args):
        if any(hasattr(arg, "_traced") for arg in args) or not any(isinstance(arg, DeviceArray) for arg in args):
            return self.func(*args)
        key = tuple(arg.dtype if hasattr(arg, "dtype") else type(arg) for arg in args)
        if key not in self._kernels:
            self._kernels[key] = self._traced(args)
        return self._kernels[key](*args)

    def clear_cache(self) -> None:
        self._kernels.clear()

    def _traced(self, args: tuple) -> Callable:
        trace = _Trace()
        variables, declared = [], []
        for k, arg in enumerate(args):
            weak = type(arg) if type(arg) in (int, float, complex) else None
            dtype = np.dtype(type(arg)) if weak or isinstance(arg, bool) else arg.dtype
            variables.append(Variable(trace, f"in{k}", dtype, weak))
            declared.append(f"{dtype} in{k}")
        result = self.func(*variables)
        if isinstance(result, _Reduced):
            return self._reduction(trace, result, declared)
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        ends = [trace.current(value) for value in results]
        ends = [value if isinstance(value, Variable) else trace.operation(np.positive, (value,)) for value in ends]
        places = [k for k, variable in enumerate(variables) if id(variable) in trace.assigned]
        outs = [f"{args[k].dtype} out{k}" for k in places] + [f"{v.dtype} res{k}" for k, v in enumerate(ends)]
        lines = [*trace.lines, *(f"out{k} = {trace.assigned[id(variables[k])]._name};" for k in places)]
        lines += [f"res{k} = {value._name};" for k, value in enumerate(ends)]
        kernel = ElementwiseKernel(
            ", ".join(declared), ", ".join(outs), "\n    ".join(lines), self.name, preamble=_POWER, return_tuple=True
        )

        def run(*args):
            shape = np.broadcast_shapes(*(arg.shape for arg in args if isinstance(arg, DeviceArray)))
            made = [ndarray(shape, value.dtype) for value in ends]
            kernel(*args, *(args[k] for k in places), *made)
            given = [_given(value, variables, args) for value in results]
            made = [made[k] if g is None else g for k, g in enumerate(given)]
            return tuple(made) if isinstance(result, tuple) else made[0] if made else None

        return run

    def _reduction(self, trace: _Trace, result: _Reduced, declared: list[str]) -> Callable:
        value = result.value
        example = np.empty(1, value.dtype)
        dtype = getattr(np, result.name)(example).dtype
        kind = type_name(dtype)
        if result.name in ("max", "min"):
            better = ">" if result.name == "max" else "<"
            # The identity must be a value, so the first element stands for it by a flag.
            preamble = (
                f"struct _best {{ {kind} value; bool some; __device__ _best() : value(0), some(false) {{}} "
                f"__device__ _best({kind} v) : value(v), some(true) {{}} }};"
            )
            reduce = f"!a.some ? b : !b.some ? a : a.value != a.value || a.value {better} b.value ? a : b"
            parts: dict[str, Any] = {"post_map_expr": "out = a.value", "identity": None, "reduce_type": "_best"}
        else:
            reduce, identity = _REDUCTIONS[result.name]
            preamble, parts = "", {"post_map_expr": "out = a", "identity": identity}
        lines = " ".join(trace.lines)
        kernel = ReductionKernel(
            ", ".join(declared),
            f"{dtype} out",
            f"[&] {{ {lines} return ({kind}){value._name}; }}()",
            reduce,
            name=self.name,
            preamble=f"{_POWER}\n{preamble}",
            **parts,
        )
        return functools.partial(kernel, axis=result.axis, keepdims=result.keepdims)


def _given(value, variables: list[Variable], args: tuple):
    """Return the argument that a function returned as it is, which it changed; None for any other value."""
    return next((arg for v, arg in zip(variables, args, strict=True) if v is value and isinstance(arg, ndarray)), None)


def fuse(*args, **kwargs):
    """Make one kernel of a function of elementwise operations: `@fuse()` or `@fuse(kernel_name="name")`."""
    name = kwargs.pop("kernel_name", None)
    if kwargs:
        raise TypeError(f"fuse takes kernel_name, not {', '.join(kwargs)}")
    if args and callable(args[0]):
        return Fusion(args[0], name)
    return lambda function: Fusion(function, args[0] if args else name)
