"""What cp.reduce.async.bulk makes of what lies at its target and what it brings there."""

import numpy as np

from warplab.simulator.numerics.halves import half_arithmetic, half_least

# PTX type, or dtype of a tensor map → dtype of the bits in memory.
DTYPES = {
    **{f"{letter}{8 * size}": f"{dtype}{size}" for letter, dtype in (("u", "u"), ("s", "i")) for size in (4, 8)},
    "b32": "u4",
    "b64": "u8",
    "f16": "f2",
    "bf16": "u2",
    "f32": "f4",
    "f64": "f8",
}
_PLAIN = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def element_dtype(kind: str) -> str:
    """Return NumPy's dtype for elements of a PTX type, or of a tensor map's."""
    return DTYPES.get(kind, kind)


def combined(operation: str, kind: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return results of an operation on elements, arrays of `element_dtype(kind)`; halves round to nearest."""
    if operation == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    if old.dtype == np.float16 or kind == "bf16":
        half, bits = "bf16" if kind == "bf16" else "f16", (old.view("u2"), new.view("u2"))
        if operation == "add":
            return half_arithmetic("add", half, False, "", *bits).view(old.dtype)
        return half_least(operation, half, False, False, False, *bits).view(old.dtype)
    return _PLAIN[operation](old, new)
