"""Artefacts: Python values and NumPy arrays as JSON, for processes that do not trust each other.

    None true "text"            as they are
    ["i", "12"] ["f", "0x1.8p+0"]   int and float, exactly
    ["c", re, im] ["b", base64]     complex (two floats as hexadecimal text), bytes
    ["l", ...] ["t", ...]           list, tuple
    ["d", [key, value], ...]        dict
    ["n", dtype, base64]            NumPy scalar
    ["a", dtype, shape, order, base64]  NumPy array
    ["g", library, array]           array on a device, of "cuda" (Numba) or "cp" (CuPy)

A dtype is text such as "<f4", or ["v", itemsize, [name, offset, dtype, shape], ...] for a structure. The form cannot
name a class, a function or a file, so reading never runs code. The reader trusts nothing: it accepts the types above
in bounded number, depth and size, and raises ArtefactError for anything else.
"""

import base64
import binascii
import functools
import json
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

_KINDS = {f"{order}{kind}" for order in "<>" for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8")}
_DTYPES = _KINDS | {"<c16", ">c16", "|b1", "|i1", "|u1"}
_MAX_DIMENSIONS = 16
_MAX_INT_DIGITS = 4000
_PILE = 64
Order = Literal["C", "F"]


class ArtefactError(ValueError):
    """Data that cannot be handed over. The message tells a student why."""


@dataclass(frozen=True)
class ArtefactLimits:
    """Limits of one artefact.

    `bytes`: arrays, texts and numbers together. `items`: values, nested ones included. `depth`: levels of nesting.
    `text`: characters of the JSON.
    """

    bytes: int = 32 << 20
    items: int = 100_000
    depth: int = 20
    text: int = 48 << 20


LIMITS = ArtefactLimits()


# -- writing -------------------------------------------------------------------------------------------------


def encode(value: Any, limits: ArtefactLimits = LIMITS) -> Any:
    """Return `value` in the form above. Raises ArtefactError if it has none, such as an instance of a class."""
    return _Encoder(limits).value(value, 0)


class _Encoder:
    def __init__(self, limits: ArtefactLimits) -> None:
        self.limits, self.items, self.bytes = limits, 0, 0

    def value(self, value: Any, depth: int) -> Any:
        self.items += 1
        if depth > self.limits.depth:
            raise ArtefactError(f"values are nested more than {self.limits.depth} deep")
        if self.items > self.limits.items:
            raise ArtefactError(f"more than {self.limits.items:,} values; put numbers into a NumPy array")
        kind = type(value)  # not isinstance: a student's class may behave in any way
        if value is None or kind is bool:
            return value
        if kind is str:
            self._count(len(value))
            return value
        if kind is int:
            if value.bit_length() > 3 * _MAX_INT_DIGITS:
                raise ArtefactError(f"an integer of more than {_MAX_INT_DIGITS} digits")
            return ["i", str(value)]
        if kind is float:
            return ["f", value.hex()]
        if kind is complex:
            return ["c", value.real.hex(), value.imag.hex()]
        if kind in (bytes, bytearray):
            return ["b", self._base64(bytes(value))]
        if kind in (list, tuple):
            return ["l" if kind is list else "t", *(self.value(item, depth + 1) for item in value)]
        if kind is dict:
            return ["d", *([self.value(k, depth + 1), self.value(v, depth + 1)] for k, v in value.items())]
        if isinstance(value, np.generic):
            return ["n", encode_dtype(value.dtype), self._base64(value.tobytes())]
        if kind is np.ndarray:
            return self._array(value)
        library = _device_library(value)
        if library is not None:
            return ["g", library, self._array(value.copy_to_host() if library == "cuda" else value.get())]
        raise ArtefactError(f"a {kind.__name__} cannot be handed over: only numbers, text, lists, dicts and arrays can")

    def _array(self, value: np.ndarray) -> list:
        order: Order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        dtype = encode_dtype(value.dtype)
        self._count(value.nbytes)
        data = base64.b64encode(value.tobytes(order)).decode()
        return ["a", dtype, list(value.shape), order, data]

    def _base64(self, data: bytes) -> str:
        self._count(len(data))
        return base64.b64encode(data).decode()

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self.limits.bytes:
            raise ArtefactError(f"more than {self.limits.bytes:,} bytes")


def _device_library(value: Any) -> str | None:
    if not hasattr(type(value), "__cuda_array_interface__"):
        return None
    return "cuda" if hasattr(value, "copy_to_host") else "cp" if hasattr(value, "get") else None


def encode_dtype(dtype: np.dtype) -> Any:
    """Return a dtype of numbers, bools or structures of them in the form above. Raises ArtefactError for any other."""
    if dtype.names is not None and dtype.fields is not None:
        fields = []
        for name in dtype.names:
            inner, offset = dtype.fields[name][:2]
            fields.append([name, offset, encode_dtype(inner.base), list(inner.shape)])
        return ["v", dtype.itemsize, *fields]
    if dtype.str not in _DTYPES:
        raise ArtefactError(
            f"an array of {dtype} cannot be handed over: only numbers, bools and structures of them can"
        )
    return dtype.str


# -- reading -------------------------------------------------------------------------------------------------


def loads(text: str, limits: ArtefactLimits = LIMITS) -> Any:
    """Parse JSON text of unknown origin. Raises ArtefactError."""
    if not isinstance(text, str) or len(text) > limits.text:
        raise ArtefactError(f"the answer has more than {limits.text:,} characters, or is no text")
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ArtefactError("the answer is not JSON") from error


def _refuse(text: str) -> None:
    raise ValueError(text)


def decode(data: Any, limits: ArtefactLimits = LIMITS) -> Any:
    """Return a new object with the value that `data` stands for. Raises ArtefactError."""
    return _Decoder(limits).value(data, 0)


class _Decoder:
    def __init__(self, limits: ArtefactLimits) -> None:
        self.limits, self.items, self.bytes = limits, 0, 0

    def value(self, data: Any, depth: int) -> Any:
        self.items += 1
        if depth > self.limits.depth or self.items > self.limits.items:
            raise ArtefactError("too many values, or nested too deep")
        if data is None or data is True or data is False:
            return data
        if type(data) is str:
            self._count(len(data))
            return data.encode("utf-8", "replace").decode()
        if type(data) is not list or not data or type(data[0]) is not str:
            raise ArtefactError("a value of unknown form")
        tag, *parts = data
        read = getattr(self, f"_{tag}", None) if tag in "ifcbltdnag" and len(tag) == 1 else None
        if read is None:
            raise ArtefactError("a value of unknown form")
        return read(parts, depth + 1)

    def _i(self, parts: list, depth: int) -> int:
        (text,) = _texts(parts, 1)
        if (
            len(text) > _MAX_INT_DIGITS + 1
            or not text.removeprefix("-").isascii()
            or not text.removeprefix("-").isdigit()
        ):
            raise ArtefactError("an integer of unknown form")
        return int(text)

    def _f(self, parts: list, depth: int) -> float:
        (text,) = _texts(parts, 1)
        return _float(text)

    def _c(self, parts: list, depth: int) -> complex:
        real, imaginary = _texts(parts, 2)
        return complex(_float(real), _float(imaginary))

    def _b(self, parts: list, depth: int) -> bytes:
        (text,) = _texts(parts, 1)
        return self._bytes(text)

    def _l(self, parts: list, depth: int) -> list:
        return [self.value(part, depth) for part in parts]

    def _t(self, parts: list, depth: int) -> tuple:
        return tuple(self._l(parts, depth))

    def _d(self, parts: list, depth: int) -> dict:
        result: dict[Any, Any] = {}
        hashes = set()
        for pair in parts:
            if type(pair) is not list or len(pair) != 2:
                raise ArtefactError("a dict of unknown form")
            key = self.value(pair[0], depth)
            try:
                hashes.add(hash(key))
                # Keys of one hash, such as multiples of 2**61 - 1, take time by the square of their number.
                if len(result) > 2 * len(hashes) + 100:
                    raise ArtefactError("a dict whose keys are too much alike")
                result[key] = self.value(pair[1], depth)
            except TypeError:
                raise ArtefactError("a dict with a key that cannot be one") from None
        return result

    def _n(self, parts: list, depth: int) -> Any:
        if len(parts) != 2:
            raise ArtefactError("a number of unknown form")
        return self._numbers(parts[0], (), "C", parts[1])[()]

    def _a(self, parts: list, depth: int) -> np.ndarray:
        if len(parts) != 4 or type(parts[1]) is not list or parts[2] not in ("C", "F"):
            raise ArtefactError("an array of unknown form")
        return self._numbers(parts[0], _shape(parts[1]), parts[2], parts[3])

    def _g(self, parts: list, depth: int) -> Any:
        if len(parts) != 2 or type(parts[1]) is not list or parts[1][:1] != ["a"]:
            raise ArtefactError("an array of a device of unknown form")
        from warplab.dropin import choice

        array = self._a(parts[1][1:], depth)
        if parts[0] == "cuda":
            return choice.load("cuda").to_device(array)
        if parts[0] == "cp":
            return choice.load("cp").asarray(array)
        raise ArtefactError("an array of an unknown device")

    def _numbers(self, dtype: Any, shape: tuple[int, ...], order: Order, data: Any) -> np.ndarray:
        dtype = decode_dtype(dtype)
        (data,) = _texts([data], 1)
        raw = self._bytes(data)
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise ArtefactError("an array whose shape does not fit its bytes")
        try:
            array = np.ndarray(shape, dtype, raw, order=order).copy(order=order)
        except ValueError:
            raise ArtefactError("an array of a shape that no array has") from None
        _check_bools(array)
        return array

    def _bytes(self, text: str) -> bytes:
        self._count(len(text) * 3 // 4)
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ArtefactError("bytes of unknown form") from None

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self.limits.bytes:
            raise ArtefactError(f"more than {self.limits.bytes:,} bytes")


def clean_text(text: str) -> str:
    """Return text that can be written as UTF-8, and shown: of more accents on one letter than `_PILE` the rest goes.

    Half a surrogate pair, which JSON can hold, becomes "?".
    """
    text = text.encode("utf-8", "replace").decode()
    return text if text.isascii() else _marks()[1].sub(_cut, text)


def _cut(run: re.Match[str]) -> str:
    return run[0] if len(run[0]) <= _PILE else "".join(_marks()[0].findall(run[0])[:_PILE])


@functools.cache
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Match a mark, and those in a row, also across colours, for which a browser takes the square of their number."""
    marks = "".join(map(chr, filter(lambda code: unicodedata.category(chr(code))[0] == "M", range(0x20000))))
    mark = rf"[{marks}\u0e33\u0eb3\x1b](?:(?<=\x1b)\[[^@-~\n]*[@-~])?"
    return re.compile(mark), re.compile(f"{mark}(?:{mark})*")


def _texts(parts: list, count: int) -> list[str]:
    if len(parts) != count or not all(type(part) is str for part in parts):
        raise ArtefactError("a value of unknown form")
    return parts


def _float(text: str) -> float:
    try:
        return float.fromhex(text[:40])
    except (ValueError, OverflowError):
        raise ArtefactError("a number of unknown form") from None


def _shape(data: list) -> tuple[int, ...]:
    if len(data) > _MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in data):
        raise ArtefactError("an array of unknown shape")
    # NumPy refuses sizes beyond an index, also if another dimension is 0.
    if math.prod(n for n in data if n) >= 1 << 40:
        raise ArtefactError("an array of a shape that no array has")
    return tuple(data)


def decode_dtype(data: Any, depth: int = 0) -> np.dtype:
    """Return the dtype that `data` stands for. Raises ArtefactError."""
    if type(data) is str:
        if data not in _DTYPES:
            raise ArtefactError("an array of an unknown dtype")
        return np.dtype(data)
    if type(data) is not list or len(data) < 3 or data[0] != "v" or depth > 3 or len(data) > 200:
        raise ArtefactError("an array of an unknown dtype")
    size, fields = data[1], data[2:]
    if type(size) is not int or not 0 < size <= 1 << 20:
        raise ArtefactError("a structure of unknown size")
    names, formats, offsets = [], [], []
    for field in fields:
        if type(field) is not list or len(field) != 4 or type(field[0]) is not str or type(field[3]) is not list:
            raise ArtefactError("a structure of unknown form")
        inner, shape = decode_dtype(field[2], depth + 1), _shape(field[3])
        end = (field[1] if type(field[1]) is int else -1) + inner.itemsize * math.prod(shape)
        if type(field[1]) is not int or not 0 <= field[1] <= end <= size:
            raise ArtefactError("a structure whose fields do not fit into it")
        names.append(clean_text(field[0]))
        formats.append((inner, shape) if shape else inner)
        offsets.append(field[1])
    try:
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    except (TypeError, ValueError):
        raise ArtefactError("a structure of unknown form") from None


def _check_bools(array: np.ndarray) -> None:
    if array.dtype.names is not None:
        for name in array.dtype.names:
            _check_bools(array[name])
    elif array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ArtefactError("a bool that is neither True nor False")
