"""Device printf: formatting as C does, and the buffer that holds what a launch prints until it ends."""

import itertools
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

BUFFER_BYTES = 1 << 20  # as in CUDA; a full buffer overwrites its oldest entries
MAX_TEXT = 4 << 20  # bytes that a launch prints: long formats and wide fields can make a lot out of a small buffer
MAX_WIDTH = 4095  # of a field and of a precision; ISO C asks for no more
MAX_ARGUMENTS = 32  # as in CUDA; the rest of the format is printed as it stands
_HEADER_BYTES = 16

_SPEC = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<size>hh|h|ll|l|j|z|t)?(?P<kind>[diouxXcsSpeEfFgGaA%])"
)


class Spec(NamedTuple):
    """One conversion of a format. `dtypes`: those of its arguments, of which it converts the last.

    `width` and `precision` are numbers, None if missing, "*" if an argument gives them.
    """

    flags: str
    width: int | str | None
    precision: int | str | None
    kind: str
    dtypes: tuple[str, ...]


def parse(text: bytes) -> list[bytes | Spec]:
    """Split a C format into literal text and conversions. Whatever is not a conversion is printed as it stands."""
    parts: list[bytes | Spec] = []
    end = arguments = 0
    for match in _SPEC.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        kind = match["kind"].decode()
        if kind == "%":
            parts.append(b"%")
            continue
        width = _number(match["width"] or None)
        precision = None if match["precision"] is None else _number(match["precision"] or b"0")
        dtypes = ("i4",) * ((width == "*") + (precision == "*")) + (_dtype(kind, match["size"] or b""),)
        arguments += len(dtypes)
        if arguments > MAX_ARGUMENTS:
            return [*parts, text[match.start() :]]
        parts.append(Spec(match["flags"].decode(), width, precision, kind, dtypes))
    return [*parts, text[end:]]


def _number(text: bytes | None) -> int | str | None:
    return None if text is None else "*" if text == b"*" else int(text[:18] or b"0")


def _dtype(kind: str, size: bytes) -> str:
    if kind in "eEfFgGaA":
        return "f8"
    if kind in "psS":
        return "u8"
    sign = "i" if kind in "di" else "u"
    if kind == "c" or not size:
        return f"{sign}4"
    return sign + {b"hh": "1", b"h": "2"}.get(size, "8")


class Call(NamedTuple):
    """One printf by a group of threads: the parts of its format, and a list of values per argument."""

    parts: list[bytes | Spec]
    columns: list[list]
    threads: int

    def lines(self) -> Iterator[bytes]:
        """Yield the text of each thread."""
        if not self.columns:
            yield from itertools.repeat(b"".join(p for p in self.parts if isinstance(p, bytes)), self.threads)
        for values in zip(*self.columns, strict=True):
            yield self._line(values)

    def _line(self, values: tuple) -> bytes:
        text, at = [], 0
        for part in self.parts:
            if isinstance(part, bytes):
                text.append(part)
            else:
                text.append(_format(part, values[at : at + len(part.dtypes)]))
                at += len(part.dtypes)
        return b"".join(text)


def _format(spec: Spec, values: tuple) -> bytes:
    """Format by ISO C 7.21.6.1: sign and prefix, digits, then the padding."""
    *stars, value = values
    flags, kind = spec.flags, spec.kind
    width = stars.pop(0) if isinstance(spec.width, str) else spec.width or 0
    precision = stars.pop(0) if isinstance(spec.precision, str) else spec.precision
    if width < 0:
        flags, width = flags + "-", -width
    width = min(width, MAX_WIDTH)
    if precision is not None:
        precision = None if precision < 0 else min(precision, MAX_WIDTH)
    zeros, sign = "0" in flags, b""
    if kind in "sScp":
        zeros = False
        if kind == "c":
            body = bytes([value & 0xFF])
        elif kind == "p":
            body = b"%#x" % value if value else b"(nil)"
        else:
            body = value[:precision]
    elif kind in "diouxX":
        body, sign = _digits(abs(value), kind, precision, "#" in flags)
        zeros &= precision is None
        sign = (_sign(value < 0, flags) if kind in "di" else b"") + sign
    else:
        body, prefix = _float(abs(value), kind, precision, "#" in flags)
        zeros &= value - value == 0
        sign = _sign(math.copysign(1, value) < 0, flags) + prefix
    if "-" in flags:
        return (sign + body).ljust(width)
    return sign + body.rjust(width - len(sign), b"0") if zeros else (sign + body).rjust(width)


def _sign(negative: bool, flags: str) -> bytes:
    return b"-" if negative else b"+" if "+" in flags else b" " if " " in flags else b""


def _digits(value: int, kind: str, precision: int | None, alternative: bool) -> tuple[bytes, bytes]:
    """Return digits and prefix of an integer."""
    text = b"%d" % value if kind in "diu" else (b"%" + kind.encode()) % value
    text = b"" if value == 0 and precision == 0 else text.rjust(precision or 0, b"0")
    if not alternative or kind in "diu":
        return text, b""
    if kind == "o":
        return text if text.startswith(b"0") else b"0" + text, b""
    return text, b"0" + kind.encode() if value else b""


def _float(value: float, kind: str, precision: int | None, alternative: bool) -> tuple[bytes, bytes]:
    """Return digits and prefix of a float that is not negative."""
    if kind not in "aA" or value - value != 0:
        kind = {"a": "f", "A": "F"}.get(kind, kind)
        text = ("%" + "#" * alternative + f".{6 if precision is None else precision}" + kind) % value
        return text.encode(), b""
    mantissa, exponent = value.hex()[2:].split("p")  # 1.999999999999ap+3
    number, digits = int(mantissa.replace(".", ""), 16), len(mantissa) - 2 if "." in mantissa else 0
    if precision is None:
        while digits and number % 16 == 0:
            number, digits = number >> 4, digits - 1
    elif precision < digits:
        number, digits = _half_to_even(number, 4 * (digits - precision)), precision
    else:
        number, digits = number << 4 * (precision - digits), precision
    text = f"{number >> 4 * digits:x}" + ("." if digits or alternative else "")
    text += f"{number & (1 << 4 * digits) - 1:0{digits}x}" if digits else ""
    text += f"p{exponent}"
    return (text.upper() if kind == "A" else text).encode(), b"0X" if kind == "A" else b"0x"


def _half_to_even(number: int, bits: int) -> int:
    quotient, rest = number >> bits, number & (1 << bits) - 1
    return quotient + (rest > 1 << bits - 1 or (rest == 1 << bits - 1 and quotient & 1))


class Printed:
    """The printf buffer of a device."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()
        self._bytes = self._lost = 0

    def add(self, text: bytes, read: Callable[[int, str], np.ndarray], string: Callable, count: int) -> int:
        """Record a printf by `count` threads and return the number of its arguments.

        `text`: the format. `read(offset, dtype)`: the threads' arguments at that offset of their argument buffers;
        `string(addresses)`: the strings there.
        """
        parts, columns, offset, arguments = parse(text), [], 0, 0
        for part in parts:
            if isinstance(part, bytes):
                continue
            arguments += len(part.dtypes)
            for place, dtype in enumerate(part.dtypes):
                size = max(4, int(dtype[1:]))
                offset = -(-offset // size) * size
                values = np.broadcast_to(read(offset, dtype), count)
                is_string = part.kind in "sS" and place == len(part.dtypes) - 1
                columns.append(string(values) if is_string else values.tolist())
                offset += size
        self._calls.append(Call(parts, columns, count))
        self._bytes += count * (_HEADER_BYTES + offset)
        while self._bytes > BUFFER_BYTES:
            self._drop(self._calls.popleft())
        return arguments

    def _drop(self, call: Call) -> None:
        """Overwrite the oldest call, or as many of its threads as must go."""
        size = _HEADER_BYTES + sum(max(4, int(d[1:])) for p in call.parts if isinstance(p, Spec) for d in p.dtypes)
        gone = min(call.threads, -(-(self._bytes - BUFFER_BYTES) // size))
        self._bytes -= gone * size
        self._lost += gone
        if gone < call.threads:
            self._calls.appendleft(Call(call.parts, [c[gone:] for c in call.columns], call.threads - gone))

    def take(self) -> str:
        """Return what was printed since the last call, and empty the buffer."""
        lines, size = [], 0
        for line in itertools.chain.from_iterable(call.lines() for call in self._calls):
            size += len(line)
            if size > MAX_TEXT:
                lines.append(b"\n[the rest of the output is left out: it has more than %d bytes]\n" % MAX_TEXT)
                break
            lines.append(line)
        text = b"".join(lines).decode(errors="replace")
        if self._lost:
            text = f"[{self._lost:,} earlier printf calls are lost: the buffer holds {BUFFER_BYTES:,} bytes]\n{text}"
        self._calls.clear()
        self._bytes = self._lost = 0
        return text
