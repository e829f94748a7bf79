"""Numba types of a kernel's arguments as plain data: arrays, numbers, tuples and records, nothing else.

"float32"                               a number or bool
["array", element, ndim, layout, mutable, aligned]
["tuple", kind, ...]
["record", dtype]                       dtype as `artefacts` writes it
"""

from typing import Any

from warpcourse.grading.exchange import artefacts
from warpcourse.grading.exchange.artefacts import ArtefactError

_NUMBERS = frozenset(
    [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    + ["float16", "float32", "float64", "complex64", "complex128"]
)
_MAX_PARTS = 64


def encode(kind) -> Any:
    """Return `kind` in the form above. Raises ArtefactError for other types."""
    from warplab.compile.numba_internals import as_dtype, types

    if isinstance(kind, types.Boolean):
        return "bool"
    if isinstance(kind, types.Number) and str(kind) in _NUMBERS:
        return str(kind)
    if isinstance(kind, types.Array):
        return ["array", encode(kind.dtype), kind.ndim, kind.layout, kind.mutable, kind.aligned]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *(encode(part) for part in kind)]
    if isinstance(kind, types.Record):
        return ["record", artefacts.encode_dtype(as_dtype(kind))]
    raise ArtefactError(f"an argument of type {kind} cannot be handed over")


def decode(data: Any):
    """Return the Numba type that `data` stands for. Raises ArtefactError, also for what Numba itself refuses."""
    from warplab.compile import numba_internals  # where Numba does not load, that is no fault of the description

    try:
        return _decode(numba_internals, data, 0)
    except ArtefactError:
        raise
    except Exception:  # Numba raises several classes, for a big-endian field or an array of arrays, say
        raise ArtefactError("a type of an argument that Numba does not have") from None


def _decode(numba: Any, data: Any, depth: int):
    types = numba.types
    if type(data) is str:
        if data == "bool":
            return types.boolean
        if data in _NUMBERS:
            return getattr(types, data)
    elif type(data) is list and data and len(data) <= _MAX_PARTS and depth <= 2:
        tag, *parts = data
        if tag == "array" and len(parts) == 5:
            element, ndim, layout, mutable, aligned = parts
            if type(ndim) is int and 0 <= ndim <= 16 and layout in ("C", "F", "A"):
                kind = _decode(numba, element, depth + 1)
                return types.Array(kind, ndim, layout, readonly=mutable is not True, aligned=aligned is True)
        if tag == "tuple":
            return types.Tuple([_decode(numba, part, depth + 1) for part in parts])
        if tag == "record" and len(parts) == 1:
            return numba.from_dtype(artefacts.decode_dtype(parts[0]))
    raise ArtefactError("a type of an argument of unknown form")
