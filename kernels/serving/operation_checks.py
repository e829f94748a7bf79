"""The check of stream operations written as tuples: all there, ordered where they share a buffer, and overlapped."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.schedule import Schedule
from kernels.serving.overlap.streams.timeline import simulate
from warplab.checks import CheckFailed
from warplab.checks.errors import whole, wrong_type

_PARTS = {
    "weights": ("stream",),
    "in": ("stream", "chunk", "buffer"),
    "kernel": ("stream", "chunk", "buffer"),
    "out": ("stream", "chunk", "buffer"),
    "record": ("stream", "event"),
    "wait": ("stream", "event"),
}
_STAGES = ("in", "kernel", "out")


class Times(NamedTuple):
    """The ms of the copy of the weights, and for each chunk those of the copy in, of the kernel and of the copy out."""

    weights: float
    ins: Sequence[float]
    kernels: Sequence[float]
    outs: Sequence[float]

    @classmethod
    def equal(cls, chunks: int, weights: float = 1, into: float = 1, kernel: float = 1, out: float = 1) -> "Times":
        return cls(weights, [into] * chunks, [kernel] * chunks, [out] * chunks)

    @classmethod
    def drawn(cls, rng: np.random.Generator, chunks: int) -> "Times":
        ins, kernels, outs = (rng.integers(1, 9, chunks).tolist() for _ in range(3))
        return cls(int(rng.integers(1, 9)), ins, kernels, outs)


def least_time(times: Times, buffers: int) -> float:
    """Return the ms that the chunks take, one after another through both copy engines and the SMs, in `buffers`."""
    into, computed, out = times.weights, 0.0, 0.0
    ends: list[float] = []
    for chunk, (a, b, c) in enumerate(zip(times.ins, times.kernels, times.outs, strict=True)):
        into = max(into, ends[chunk - buffers] if chunk >= buffers else 0) + a
        computed = max(computed, into) + b
        out = max(out, computed) + c
        ends.append(out)
    return out


def check_operations(
    name: str, got: Any, chunks: int, buffers: int, times: Times, *, streams: Mapping[str, int] | None = None
) -> None:
    """Check stream operations in the order of issue; raise CheckFailed unless all is there, no race, and in least time.

    `got`: a list of tuples, ("weights", stream), ("in", stream, chunk, buffer), "kernel" and "out" alike,
    ("record", stream, event), ("wait", stream, event). The virtual GPU has a copy engine for each direction.
    `streams`: the stream in which each of "in", "kernel" and "out" must be issued; then no other streams may be used.
    """
    where = f"chunks = {chunks}, buffers = {buffers}"
    try:
        operations = _operations(name, got, chunks, buffers)
        _all_there(name, operations, chunks)
        if streams is not None:
            _in_streams(name, operations, streams)
        schedule = _schedule(operations, times)
        _no_race(name, schedule)
        _in_buffers(name, operations)
        _fast(name, schedule, least_time(times, buffers))
    except CheckFailed as failed:
        shown = f"{where}, ms: weights {times.weights}, in {times.ins}, kernel {times.kernels}, out {times.outs}"
        raise failed.at(shown) from None


def _operations(name: str, got: Any, chunks: int, buffers: int) -> list[tuple]:
    if got is None:
        raise CheckFailed(f"{name} is not written yet: it returns nothing.", kind="not written")
    if not isinstance(got, list | tuple):
        raise wrong_type(f"{name} returns the wrong type.", expected="a list", got=type(got).__name__)
    if not got:
        raise CheckFailed(f"{name} returns an empty list.", expected="operations", got="none", kind="not written")
    found = []
    for number, operation in enumerate(got):
        parts = tuple(operation) if isinstance(operation, list | tuple) else ()
        what = parts[0] if parts and type(parts[0]) in (str, np.str_) and parts[0] in _PARTS else ""
        wanted = (what, *_PARTS[what]) if what else ()
        right = what and len(parts) == len(wanted) and whole(parts[1]) and parts[1] >= 0
        if right and wanted[2:] == ("event",):
            right = whole(parts[2]) or type(parts[2]) in (str, np.str_)
        elif right:
            right = all(map(whole, parts[2:]))
        if not right:
            kinds = f"({', '.join((repr(what), *_PARTS[what]))})" if what else "one of " + ", ".join(map(repr, _PARTS))
            raise wrong_type(
                f"{name}: operation {number} is not one.",
                expected=kinds + ("; a stream is a whole number from 0 on" if what else ""),
                got=repr(operation)[:200],
            )
        for part, value, end in zip(wanted[2:], parts[2:], (chunks, buffers), strict=False):
            if part != "event" and not 0 <= value < end:
                raise CheckFailed(
                    f"{name}: operation {number} names a {part} that does not exist.",
                    expected=f"a {part} from 0 to {end - 1}",
                    got=repr(parts),
                )
        found.append(parts)
    return found


def _in_streams(name: str, operations: list[tuple], streams: Mapping[str, int]) -> None:
    others = sorted({int(o[1]) for o in operations} - set(streams.values()))
    if others:
        raise CheckFailed(
            f"{name}: other streams than those of the three stages.",
            expected=", ".join(map(str, streams.values())),
            got=", ".join(map(str, others)) + " as well",
        )
    for what, stream, *rest in operations:
        if stream != streams.get(what, stream):
            raise CheckFailed(
                f"{name}: {_said(what, rest[0])} is in the wrong stream.",
                expected=f"stream {streams[what]}, as all operations {what!r}",
                got=f"stream {stream}",
            )


def _all_there(name: str, operations: list[tuple], chunks: int) -> None:
    wanted = [("weights",), *((stage, chunk) for chunk in range(chunks) for stage in _STAGES)]
    done = [(o[0], *o[2:3]) for o in operations if o[0] in ("weights", *_STAGES)]
    for operation in wanted:
        times = done.count(operation)
        if times != 1:
            raise CheckFailed(
                f"{name}: {_said(*operation)} is {'missing' if not times else 'there more than once'}.",
                expected="once",
                got=f"{times} times",
                look_at="which operations a chunk needs, and how often the weights are copied",
            )
    for chunk in range(chunks):
        places = [done.index((stage, chunk)) for stage in _STAGES]
        if places != sorted(places):
            first, second = next((i, i + 1) for i in (0, 1) if places[i] > places[i + 1])
            raise CheckFailed(
                f"{name}: {_said(_STAGES[second], chunk)} is issued before {_said(_STAGES[first], chunk)}.",
                expected="in, then kernel, then out",
                got=", then ".join(sorted(_STAGES, key=lambda stage: done.index((stage, chunk)))),
                look_at="the order of the list: a wait looks back to records that were issued before it",
            )


def _said(stage: str, chunk: int = 0) -> str:
    return {
        "weights": "the copy of the weights",
        "in": f"the copy in of chunk {chunk}",
        "kernel": f"the kernel of chunk {chunk}",
        "out": f"the copy out of chunk {chunk}",
    }[stage]


def _schedule(operations: list[tuple], times: Times) -> Schedule:
    schedule = Schedule()
    for what, stream, *rest in operations:
        if what == "weights":
            schedule.h2d("the weights", int(stream), ms=times.weights, name=_said(what))
        elif what == "record":
            schedule.record(_event(rest[0]), int(stream))
        elif what == "wait":
            schedule.wait(_event(rest[0]), int(stream))
        else:
            chunk, buffer = int(rest[0]), f"buffer {rest[1]}"
            if what == "in":
                schedule.h2d(buffer, int(stream), ms=times.ins[chunk], source=f"chunk {chunk}", name=_said(what, chunk))
            elif what == "kernel":
                reads, ms = (buffer, "the weights"), times.kernels[chunk]
                schedule.kernel(_said(what, chunk), int(stream), ms=ms, reads=reads, writes=buffer)
            else:
                target, ms = f"result {chunk}", times.outs[chunk]
                schedule.d2h(buffer, int(stream), ms=ms, target=target, name=_said(what, chunk))
    return schedule


def _event(event: Any) -> str:
    """Name an event: 3 and "3" are two."""
    return f"text {event}" if isinstance(event, str) else f"number {int(event)}"


def _no_race(name: str, schedule: Schedule) -> None:
    found = races(schedule)
    if not found:
        return
    first, second = found[0].first, found[0].second
    raise CheckFailed(
        f"{name}: {first.name} (stream {first.stream}) and {second.name} (stream {second.stream}) race on "
        f"{found[0].buffer}, {found[0].conflict}.",
        expected="an order between them: one stream, or an event that the stream of the second waits for",
        got="nothing that makes the second wait",
        look_at="where the event is recorded, where it is waited for, and which of these two is issued first: "
        "a wait for an event that nobody has recorded yet does nothing",
        kind="race",
    )


def _in_buffers(name: str, operations: list[tuple]) -> None:
    """Follow what each buffer holds, operation by operation; without races they happen as if in the order of issue."""
    held: dict[int, tuple[int, str]] = {}
    for what, _, *rest in operations:
        if what not in _STAGES:
            continue
        chunk, buffer = rest
        before = held.get(buffer)
        if what == "in":
            if before is not None and before[1] != "out":
                raise CheckFailed(
                    f"{name}: {_said('in', chunk)} overwrites chunk {before[0]} in buffer {buffer}.",
                    expected=f"{_said('out', before[0])} before it",
                    got=f"chunk {before[0]} lost",
                    look_at="in which buffer a chunk may lie, and from when on",
                )
        elif before != (chunk, _STAGES[_STAGES.index(what) - 1]):
            holds = "nothing" if before is None else f"chunk {before[0]}, after its {before[1]!r}"
            raise CheckFailed(
                f"{name}: {_said(what, chunk)} finds something else in buffer {buffer}.",
                expected=f"chunk {chunk}, after its {_STAGES[_STAGES.index(what) - 1]!r}",
                got=holds,
                look_at="in which buffer a chunk lies: in one and the same from its copy in to its copy out",
            )
        held[buffer] = (chunk, what)


def _fast(name: str, schedule: Schedule, least: float) -> None:
    timeline = simulate(schedule)
    if timeline.end > least * (1 + 1e-9):
        problem = "takes too long"
        busy = ", ".join(f"{engine} {timeline.busy(engine):g} ms" for engine in timeline.engines)
        raise CheckFailed(
            f"{name}: the schedule {problem}.",
            expected=f"{least:g} ms",
            got=f"{timeline.end:g} ms, of which the engines work: {busy}",
            look_at="what each engine waits for while it is idle, and whether it must:\n" + str(timeline),
            kind="limit",
            missed=problem,
        )
