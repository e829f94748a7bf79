"""Arguments of a CUDA C++ kernel, checked against the declared parameters and turned into bytes.

CuPy hands any number to the driver as it is: a Python int as 8 bytes, of which an `int n` gets the lower 4. A Python
float for `float x` arrives as nonsense. Here an argument that would not arrive is refused with an error that shows the
parameter as the source declares it.
"""

from collections.abc import Callable

import numpy as np

from warplab.compile.cuda_signature import Parameter, Signature
from warplab.launch.errors import ArgumentError, check_number
from warplab.simulator import Entry, Param

AddressOf = Callable[[object, str], int]


def is_array(value) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")


def pack_arguments(
    name: str, entry: Entry, signature: Signature | None, args: tuple, address_of: AddressOf
) -> list[bytes]:
    """Return the bytes of each parameter of the kernel `name`, whose PTX is `entry`. Raises ArgumentError.

    `signature`: its declaration in the source, None where that is not known. `address_of(array, name)` places an array
    on the device.
    """
    if signature is None or len(signature.parameters) != len(entry.params):
        declared, shown = (Parameter("", "", False, None),) * len(entry.params), name
    else:
        declared, shown = signature.parameters, str(signature)
    check_number(f"kernel {shown}", len(entry.params), args)
    params = []
    for position, (param, parameter, value) in enumerate(zip(entry.params, declared, args, strict=True), 1):
        what = f"argument {position} of kernel {name}"
        if parameter.declaration:
            what += f", `{parameter.declaration}`,"
        params.append(_pack(what, param, parameter, value, address_of))
    return params


def _pack(what: str, param: Param, parameter: Parameter, value, address_of: AddressOf) -> bytes:
    """Return the bytes of `value` for the PTX parameter `param`, declared as `parameter`; `what` begins messages."""
    if is_array(value) and not _by_value(param, parameter, value):
        if param.size != 8 or (parameter.dtype is not None and not parameter.pointer):
            raise ArgumentError(f"{what} is a value of {_bytes(param.size)}, but an array was given")
        if not parameter.accepts(value.dtype):
            raise ArgumentError(
                f"{what} points to {parameter.dtype}, but the array holds {value.dtype}: "
                f"convert it with .astype(np.{parameter.dtype}) or change the declaration"
            )
        return address_of(value, parameter.name).to_bytes(8, "little")
    scalar = _numpy_scalar(value)
    if scalar is None:
        kind = type(value).__name__
        raise ArgumentError(f"{what} cannot take a {kind}: give an array of the device or a NumPy number")
    if parameter.pointer:
        if scalar.dtype.kind not in "iu" or scalar.nbytes != param.size:
            raise ArgumentError(f"{what} is a pointer, but {_shown(value)} was given")
        return scalar.tobytes()
    want = _declared_type(param, parameter)
    if want is not None and want.kind in "iub" and scalar.dtype.kind in "iu" and scalar.nbytes > param.size:
        _check_fits(what, parameter, want, int(scalar))
        return scalar.tobytes()[: param.size]
    if scalar.nbytes != param.size or (want is not None and _family(scalar.dtype) != _family(want)):
        takes = f"is a value of {_bytes(param.size)}" if want is None else f"is {want} ({_bytes(param.size)})"
        fix = "" if want is None else f": write np.{want}({parameter.name or '...'})"
        raise ArgumentError(
            f"{what} {takes}, but {_shown(value)} is passed as {scalar.dtype} ({_bytes(scalar.nbytes)}){fix}"
        )
    return scalar.tobytes()


def _check_fits(what: str, parameter: Parameter, want: np.dtype, value: int) -> None:
    bits = 8 * want.itemsize if want.kind != "b" else 1
    # PTX alone does not tell `int` from `unsigned`.
    low = 0 if parameter.dtype is not None and want.kind != "i" else -(1 << bits - 1)
    high = (1 << (bits - 1 if parameter.dtype is not None and want.kind == "i" else bits)) - 1
    if not low <= value <= high:
        raise ArgumentError(
            f"{what} is {want} ({_bytes(want.itemsize)}) and takes {low:,} to {high:,}, but {value:,} was given: "
            "pass what fits or declare a wider type"
        )


def _by_value(param: Param, parameter: Parameter, value) -> bool:
    # CuPy passes a NumPy array of size one by value; that is how a struct is passed.
    return (
        isinstance(value, np.ndarray)
        and value.size == 1
        and value.nbytes == param.size
        and not parameter.pointer
        and (parameter.dtype is not None or value.dtype.kind == "V")
    )


def _numpy_scalar(value) -> np.generic | np.ndarray | None:
    """Convert `value` as CuPy passes it: Python numbers to int64, float64, complex128; None to a null pointer."""
    if isinstance(value, np.generic | np.ndarray):
        return value
    if value is None:
        return np.uint64(0)
    if isinstance(getattr(value, "ptr", None), int):  # cupy.cuda.MemoryPointer
        return np.uint64(value.ptr)
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.uint64(value) if value >= 2**63 else np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, complex):
        return np.complex128(value)
    return None


def _declared_type(param: Param, parameter: Parameter) -> np.dtype | None:
    """Return the NumPy type of a scalar parameter, from the source or else from PTX; None for structs."""
    if parameter.count > 1:
        return None
    if parameter.dtype is not None:
        return parameter.dtype
    kind = {"f": "f", "s": "i", "u": "i"}.get(param.type[0])
    return (
        np.dtype(f"{kind}{param.size}")
        if kind is not None and param.type == f"{param.type[0]}{8 * param.size}"
        else None
    )


def _family(dtype: np.dtype) -> str:
    return "integer" if dtype.kind in "iub" else dtype.kind


def _shown(value) -> str:
    return f"{value!r}" if isinstance(value, np.generic) else f"{value!r} ({type(value).__name__})"


def _bytes(number: int) -> str:
    return f"{number} byte{'s' * (number != 1)}"
