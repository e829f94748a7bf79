"""Device printf: formatting as C does, and the buffer that holds what a launch prints until it ends."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

BUFFER_BYTES = 1 << 20  # as CUDA's; a full buffer overwrites its oldest entries
_HEADER_BYTES = 16

_SPEC = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<size>hh|h|ll|l|j|z|t)?(?P<kind>[diouxXcsSpeEfFgGaA%])"
)


class Spec(NamedTuple):
    """One conversion of a format: the Python format of it, and the dtypes of the arguments that it takes."""

    python: bytes
    kind: str
    dtypes: tuple[str, ...]


def parse(text: bytes) -> list[bytes | Spec]:
    """A C format as literal text and conversions. What is no conversion is printed as it stands."""
    parts: list[bytes | Spec] = []
    end = 0
    for match in _SPEC.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        kind = match["kind"].decode()
        if kind == "%":
            parts.append(b"%")
            continue
        stars = (match["width"] == b"*") + (match["precision"] == b"*")
        precision = b"" if match["precision"] is None else b"." + match["precision"]
        letter = {"i": "d", "u": "d", "p": "s", "S": "s", "a": "s", "A": "s"}.get(kind, kind)
        python = b"%" + match["flags"] + match["width"] + precision + letter.encode()
        parts.append(Spec(python, kind, ("i4",) * stars + (_dtype(kind, match["size"] or b""),)))
    return [*parts, text[end:]]


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
    """One printf by a group of threads: the parts of its format, a list of values for each argument, the threads."""

    parts: list[bytes | Spec]
    columns: list[list]
    count: int

    def lines(self) -> list[bytes]:
        """The text of each thread."""
        if not self.columns:
            return [b"".join(p for p in self.parts if isinstance(p, bytes))] * self.count
        return [self._line(values) for values in zip(*self.columns, strict=True)]

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
    *stars, value = values
    python = spec.python
    if spec.kind == "c":
        value &= 0xFF
    elif spec.kind == "p":
        value = b"%#x" % value if value else b"(nil)"
    elif spec.kind in "oxX" and value == 0:
        python = python.replace(b"#", b"")
    elif spec.kind == "o":
        python, value = python.replace(b"#", b"").replace(b"o", b"s"), b"%s%o" % (b"0" * (b"#" in python), value)
    elif spec.kind in "aA":
        value = re.sub(r"\.?0*p", "p", value.hex()).encode()
        value = value.upper() if spec.kind == "A" else value
    elif isinstance(value, float) and value - value != 0:  # infinite or no number: C does not pad these with zeros
        python = python.replace(b"0", b"", 1) if re.match(rb"%[-+ #]*0", python) else python
    return python % (*stars, value)


class Printed:
    """The printf buffer of a device."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()
        self._bytes = self._lost = 0

    def add(self, text: bytes, read: Callable[[int, str], np.ndarray], string: Callable, count: int) -> int:
        """Note a printf by `count` threads and return the number of its arguments.

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
        gone = min(call.count, -(-(self._bytes - BUFFER_BYTES) // size))
        self._bytes -= gone * size
        self._lost += gone
        if gone < call.count:
            self._calls.appendleft(Call(call.parts, [c[gone:] for c in call.columns], call.count - gone))

    def take(self) -> str:
        """What was printed since the last call; the buffer is empty again."""
        text = b"".join(line for call in self._calls for line in call.lines()).decode(errors="replace")
        if self._lost:
            text = f"[{self._lost:,} earlier printf calls are lost: the buffer holds {BUFFER_BYTES:,} bytes]\n{text}"
        self._calls.clear()
        self._bytes = self._lost = 0
        return text
