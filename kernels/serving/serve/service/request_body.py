"""The body of a request: read within limits, and turned into samples, or into a reason that says what to send.

    {"instances": [sample, sample, ...]}        a sample is nested lists of numbers, of the engine's shape

TensorFlow Serving's REST API takes the same body. Nothing that a client sends may cost more than its limits allow, and
whatever is not understood is refused: a number that is guessed at gives a wrong answer that nobody notices.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np

KEY = "instances"
DISCARDED = 64 * 2**20  # bytes of a body that is too large are read and thrown away, so that the client sees the answer
_SHOWN = 40  # characters of what a client sent that an answer repeats


class BadRequest(ValueError):
    """What a client must change, with the status that HTTP has for it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def expected(shape: tuple[int, ...]) -> str:
    """Return what to send to an engine of this shape, in words."""
    return f'{{"{KEY}": [sample, ...]}}, each sample {_lists(shape)}'


class Room:
    """The bytes that all bodies in hand may take together: `limit` of them, of which `taken` are taken now."""

    def __init__(self, limit: int) -> None:
        self.limit, self.taken = limit, 0

    @contextlib.contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """Give a function that takes so many bytes more, until the end of the block. It raises BadRequest 503."""
        own = 0

        def take(more: int) -> None:
            nonlocal own
            if self.taken + more > self.limit:
                raise BadRequest(
                    503, f"{self.taken:,} bytes of bodies are in hand, of {self.limit:,} that may be; try again later"
                )
            own += more
            self.taken += more

        try:
            yield take
        finally:
            self.taken -= own


async def read(
    stream: AsyncIterator[bytes], length: str | None, limit: int, seconds: float, take: Callable[[int], None]
) -> bytes:
    """Return the whole body, `limit` bytes at most, within `seconds`. `length`: the header Content-Length. `take`: told
    of bytes before they are kept, of all that are announced before the first; may raise.

    BadRequest 413 for a longer one, and 408 for one that takes longer to arrive.
    """
    parts, size = [], 0
    announced = int(length) if length and length.isdecimal() and len(length) < 20 else 0
    taken = announced if announced <= limit else 0
    take(taken)
    try:
        async with asyncio.timeout(seconds):
            if announced <= DISCARDED:
                async for part in stream:
                    size += len(part)
                    if size <= limit:
                        if size > taken:
                            take(size - taken)
                            taken = size
                        parts.append(part)
                    elif size > DISCARDED:
                        break
    except TimeoutError:
        raise BadRequest(408, f"the body did not arrive within {seconds:g} seconds; send it again") from None
    if max(size, announced) > limit:
        raise BadRequest(
            413, f"the body has {max(size, announced):,} bytes or more; send at most {limit:,}, in several requests"
        )
    return b"".join(parts)


def samples(body: bytes, shape: tuple[int, ...], most: int) -> np.ndarray:
    """Return the samples in a body: float32, (count, *shape), 1 to `most` of them.

    BadRequest 400 for what is no JSON, 422 for JSON that holds no such samples.
    """
    given = _json(body, shape)
    if not isinstance(given, dict) or KEY not in given:
        raise BadRequest(422, f"the body is {_kind(given)}; send {expected(shape)}")
    if unknown := [key for key in given if key != KEY]:
        raise BadRequest(422, f"the body has the key {_short(unknown[0])}; it may have {KEY!r} alone")
    instances = given[KEY]
    if not isinstance(instances, list):
        raise BadRequest(422, f"{KEY} is {_kind(instances)}; send {expected(shape)}")
    if not 0 < len(instances) <= most:
        raise BadRequest(422, f"{KEY} holds {len(instances):,} samples; send 1 to {most}")
    try:
        array = np.array(instances)
    except (ValueError, OverflowError):  # ragged, too deep, or a whole number of more than 64 bits
        array = None
    # true and false among numbers would become 1 and 0.
    if array is None or array.dtype.kind not in "iuf" or b"true" in body or b"false" in body:
        _look_at(instances, (), (len(instances), *shape))
        array = np.array(instances, np.float64)
    if array.shape[1:] != shape:
        _look_at(instances, (), (len(instances), *shape))
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float32)
    if not np.isfinite(numbers).all():
        where = np.argwhere(~np.isfinite(numbers))[0]
        raise BadRequest(422, f"{_place(where)} is no finite float32; send numbers up to 3.4e38")
    return numbers


def _json(body: bytes, shape: tuple[int, ...]) -> Any:
    def constant(text: str) -> None:
        raise BadRequest(400, f"the body holds {text}, which is no JSON; send finite numbers")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            raise BadRequest(400, "the body has an object with the same key twice; send each key once")
        return found

    try:
        return json.loads(body.decode(), object_pairs_hook=pairs, parse_constant=constant)
    except BadRequest:
        raise
    except RecursionError:
        raise BadRequest(400, f"the body is nested too deep; send {expected(shape)}") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, and numbers of more than 4300 digits
        raise BadRequest(400, f"the body is no JSON ({str(error)[:120]}); send {expected(shape)}") from None


def _look_at(value: Any, where: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise BadRequest for the first part of `value` that is not as it must be."""
    if not shape:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequest(422, f"{_place(where)} is {_kind(value)}; it must be a number")
        try:
            float(value)
        except OverflowError:
            raise BadRequest(422, f"{_place(where)} is no finite float32; send numbers up to 3.4e38") from None
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        got = f"a list of {len(value)}" if isinstance(value, list) else _kind(value)
        raise BadRequest(422, f"{_place(where)} is {got}; it must be {_lists(shape)}")
    for i, part in enumerate(value):
        _look_at(part, (*where, i), shape[1:])


def _lists(shape: tuple[int, ...]) -> str:
    if len(shape) > 1:
        return f"nested lists of numbers, of shape {shape}"
    return f"a list of {shape[0]} numbers" if shape else "a number"


def _place(where: Any) -> str:
    return KEY + "".join(f"[{i}]" for i in where)


def _kind(value: Any) -> str:
    for kinds, name in (
        (dict, "an object"),
        (list, "a list"),
        (bool, "true or false"),
        (str, f"the text {_short(value)}"),
        (int | float, "a number"),
    ):
        if isinstance(value, kinds):
            return name + (" without the key 'instances'" if name == "an object" and KEY not in value else "")
    return "null"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
