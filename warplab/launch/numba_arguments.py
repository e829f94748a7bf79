"""Arguments of a Numba kernel: their Numba types, and their bytes in the order of the kernel's .param list.

The layout is that of `numba.cuda.dispatcher._Kernel._prepare_args` (numba-cuda 0.30): an array is meminfo, parent,
size, itemsize, data pointer, shape, strides (eight bytes each); a tuple is its elements; a complex number is two
floats; a record is a pointer to it.
"""

import struct
from collections.abc import Callable

import numpy as np

from warplab.launch.errors import ArgumentError, check_number


def signature_of(function_name: str, names: list[str], signatures: list[tuple] | None, args: tuple) -> tuple:
    """Return the Numba types that a kernel of the parameters `names` is compiled for when it is given `args`.

    `signatures`: the explicit ones, if it has any. Raises ArgumentError.
    """
    check_number(f"kernel {function_name}({', '.join(names)})", len(names), args)
    types = types_of(function_name, names, args)
    return types if signatures is None else match_signature(function_name, names, types, signatures)


def types_of(function_name: str, names: list[str], arguments: tuple) -> tuple:
    """Return the Numba types of `arguments`. Raises ArgumentError that names the argument a kernel cannot take."""
    from numba.cuda import types

    from warplab.compile.numba_internals import typeof

    found = []
    for position, (name, value) in enumerate(zip(names, arguments, strict=True), 1):
        try:
            kind = typeof(value)
        except Exception:  # Numba raises several classes, depending on what it was given
            kind = None
        if kind is None or not _supported(kind, types):
            raise ArgumentError(
                f"argument {position} of kernel {function_name}, `{name}`, is {_what(value)}; a kernel takes arrays, "
                "numbers and tuples of numbers: for a list write np.array(...) or cuda.to_device(np.array(...))"
            )
        found.append(kind)
    return tuple(found)


def match_signature(function_name: str, names: list[str], actual: tuple, signatures: list[tuple]) -> tuple:
    """Return the one of the explicit `signatures` that fits the types `actual` best, as Numba chooses it. ArgumentError
    if none does, or if two fit equally well."""
    only = len(signatures) == 1
    problems = [_mismatch(names, actual, signature, only) for signature in signatures]
    fitting = [signature for signature, problem in zip(signatures, problems, strict=True) if problem is None]
    if fitting:
        return fitting[0] if len(fitting) == 1 else _best(function_name, actual, fitting)
    raise no_match(function_name, names, actual, signatures)


def no_match(function_name: str, names: list[str], actual: tuple, signatures: list[tuple]) -> ArgumentError:
    """Return the error of arguments of the types `actual`, which none of the explicit `signatures` fits."""
    problem = _mismatch(names, actual, signatures[-1])
    return ArgumentError(
        f"No matching definition for argument type(s) {', '.join(map(str, actual))}: kernel {function_name} was "
        f"compiled for {_listed(signatures)} only: {problem}; convert the argument or leave the signature out of "
        "@cuda.jit"
    )


def check_fits_one(function_name: str, names: list[str], actual: tuple, signature: tuple) -> None:
    """Raise ArgumentError if arguments of the types `actual` do not fit the one signature that a kernel has."""
    if actual != signature and _mismatch(names, actual, signature, only=True) is not None:
        raise no_match(function_name, names, actual, [signature])


def _best(function_name: str, actual: tuple, signatures: list[tuple]) -> tuple:
    from warplab.compile.numba_internals import best_overload

    if actual in signatures:
        return actual
    try:
        return best_overload(actual, signatures)
    except TypeError:
        given = ", ".join(map(short_type, actual))
        raise ArgumentError(
            f"Ambiguous overloading for kernel {function_name} and arguments ({given}): {_listed(signatures)} fit "
            "equally well; convert an argument, such as np.float32(x)"
        ) from None


def _listed(signatures: list[tuple]) -> str:
    return "; ".join(f"({', '.join(map(short_type, signature))})" for signature in signatures)


def short_type(kind) -> str:
    """Write "float32[:, ::1]" rather than "array(float32, 2d, C)"."""
    from numba.cuda import types

    if not isinstance(kind, types.Array):
        return str(kind)
    axes = [":"] * kind.ndim
    if kind.ndim and kind.layout in "CF":
        axes[-1 if kind.layout == "C" else 0] = "::1"
    return f"{kind.dtype}[{', '.join(axes)}]"


def pack_arguments(
    names: list[str], signature: tuple, args: tuple, address_of: Callable[[object, str], int]
) -> list[bytes]:
    """Return the bytes of each .param of a Numba kernel compiled for `signature`.

    `address_of(array, name)` places an array on the device.
    """
    params = []
    for name, kind, value in zip(names, signature, args, strict=True):
        params += _pack(name, kind, value, address_of)
    return params


def _pack(name: str, kind, value, address_of: Callable[[object, str], int]) -> list[bytes]:
    """Return the bytes of `value`, for the parameter `name` of the Numba type `kind`, one item per .param."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        address = address_of(value, name)
        words = [0, 0, value.size, value.dtype.itemsize, address, *value.shape, *value.strides]
        return [struct.pack("<q" if word < 0 else "<Q", word) for word in words]
    if isinstance(kind, types.Record):
        return [struct.pack("<Q", address_of(value, name))]
    if isinstance(kind, types.CPointer):  # an address, as __cuda_array_interface__ and .data.ptr give it
        return [struct.pack("<Q", int(value))]
    if isinstance(kind, types.BaseTuple):
        return [part for k, v in zip(kind, value, strict=True) for part in _pack(name, k, v, address_of)]
    if isinstance(kind, types.EnumMember):
        return _pack(name, kind.dtype, value.value, address_of)
    if isinstance(kind, types.NPDatetime | types.NPTimedelta):
        return [value.view(np.int64).tobytes()]
    if isinstance(kind, types.Complex):
        half = np.float32 if kind == types.complex64 else np.float64
        return [half(value.real).tobytes(), half(value.imag).tobytes()]
    if isinstance(kind, types.Boolean):
        return [np.bool_(value).tobytes()]
    dtype = np.dtype(str(kind))
    if isinstance(kind, types.Integer):  # as ctypes does: what is too large wraps round
        return [(int(value) & (1 << kind.bitwidth) - 1).to_bytes(dtype.itemsize, "little")]
    return [dtype.type(value).tobytes()]


def _supported(kind, types) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(_supported(part, types) for part in kind)
    if not kind.is_precise():  # an array of Python objects
        return False
    numbers = types.Integer | types.Float | types.Complex | types.Boolean | types.EnumMember
    return isinstance(kind, numbers | types.Array | types.Record | types.NPDatetime | types.NPTimedelta)


def _mismatch(names: list[str], actual: tuple, signature: tuple, only: bool = False) -> str | None:
    """Say which argument of the types `actual` does not fit a signature, None if all do.

    `only`: it is the only signature, whose types Numba takes arrays for: integers of one width are alike then.
    """
    from numba.cuda import types

    def alike(have, want) -> bool:
        if only and isinstance(have, types.Integer) and isinstance(want, types.Integer):
            return have.bitwidth == want.bitwidth
        return have == want

    if len(actual) != len(signature):
        return f"it takes {len(signature)} arguments, {len(actual)} were given"
    for name, have, want in zip(names, actual, signature, strict=True):
        if isinstance(want, types.Array) and isinstance(have, types.Array):
            layout = want.layout in ("A", have.layout) or have.ndim == 0
            if (
                alike(have.dtype, want.dtype)
                and have.ndim == want.ndim
                and layout
                and (have.mutable or not want.mutable)
            ):
                continue
        elif isinstance(want, types.Number | types.Boolean) and isinstance(have, types.Number | types.Boolean):
            if not (isinstance(have, types.Complex) and not isinstance(want, types.Complex)) and not (
                isinstance(have, types.Float) and isinstance(want, types.Integer)
            ):
                continue
        elif have == want or (isinstance(want, types.CPointer) and isinstance(have, types.Integer)):
            continue
        return f"`{name}` is {short_type(have)} where it takes {short_type(want)}"
    return None


def _what(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"a NumPy array of {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"
