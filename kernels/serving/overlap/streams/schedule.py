"""Stream operations: what one host thread issues, and what CUDA's rules make each operation wait for.

A `Schedule` holds copies, kernels, event records and waits, host work and host waits, in the order of issue.
`timeline.simulate` says when each would run, `hazards.races` which of them race.

Rules, after the CUDA C++ Programming Guide ("Asynchronous Concurrent Execution") and the Runtime API reference ("Stream
synchronization behavior", "API synchronization behavior"):
- Operations of one stream run one after the other; those of two streams in any order, or together.
- A wait holds its stream back for the latest record of its event that was issued before the wait. Waiting for an event
  that nobody has recorded yet does nothing.
- The legacy default stream waits for all streams that block, and they wait for it. Compiled for one default stream per
  thread, it is a stream like the others. A non-blocking stream keeps out of this.
- A copy from or to pageable memory keeps the host, which issues nothing until it is done. (The reference says that it
  "might be synchronous with respect to host"; one to the device may return once the memory is staged.)
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["h2d", "d2h", "kernel", "decode", "record", "wait", "host", "sync"]
Stream = str | int
Names = str | Iterable[str]
Action = Callable[[], object] | None
DEFAULT = "default"
"""The name of the default stream."""
ON_HOST = ("host", "sync")


class ScheduleError(ValueError):
    """A schedule that no CUDA program could issue; the message says what to change."""


@dataclass(frozen=True)
class Operation:
    """One call of the host. `ms`: how long it runs, in milliseconds. `share`: of the SMs, for a kernel."""

    index: int
    kind: Kind
    name: str
    stream: Stream | None = None
    ms: float = 0.0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    event: str | None = None
    pinned: bool = True
    share: float = 1.0
    action: Action = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        where = "on the host" if self.kind in ON_HOST else f"in stream {self.stream}"
        return f"'{self.name}' {where}"


class Schedule:
    """What one host thread issues, in order.

    `default_stream`: "legacy" or "per-thread" (nvcc --default-stream). `non_blocking`: streams made with
    cudaStreamNonBlocking. A stream is a number or a name; DEFAULT is the default stream. A buffer is a name; chunks
    of an array that are used apart have names of their own. Methods return the Operation that they add; `action` is
    what `execution.execute` calls on a GPU.
    """

    def __init__(self, *, default_stream: str = "legacy", non_blocking: Iterable[Stream] = ()) -> None:
        if default_stream not in ("legacy", "per-thread"):
            raise ScheduleError(f"default_stream is 'legacy' or 'per-thread', not {default_stream!r}")
        self.default_stream = default_stream
        self.non_blocking = frozenset(non_blocking)
        self._operations: list[Operation] = []

    def h2d(
        self,
        buffer: str,
        stream: Stream = DEFAULT,
        *,
        ms: float,
        source: str | None = None,
        pinned: bool = True,
        name: str | None = None,
        action: Action = None,
    ) -> Operation:
        """Add cudaMemcpyAsync, host to device: reads the host buffer `source` ("host BUFFER"), writes `buffer`."""
        source = f"host {buffer}" if source is None else source
        return self._add("h2d", name or f"H2D {buffer}", stream, ms, source, buffer, pinned=pinned, action=action)

    def d2h(
        self,
        buffer: str,
        stream: Stream = DEFAULT,
        *,
        ms: float,
        target: str | None = None,
        pinned: bool = True,
        name: str | None = None,
        action: Action = None,
    ) -> Operation:
        """Add cudaMemcpyAsync, device to host: reads `buffer`, writes the host buffer `target` ("host BUFFER")."""
        target = f"host {buffer}" if target is None else target
        return self._add("d2h", name or f"D2H {buffer}", stream, ms, buffer, target, pinned=pinned, action=action)

    def kernel(
        self,
        name: str,
        stream: Stream = DEFAULT,
        *,
        ms: float,
        reads: Names = (),
        writes: Names = (),
        share: float = 1.0,
        action: Action = None,
    ) -> Operation:
        """Add a launch. `share` in (0, 1]: the part of the SMs that its blocks fill; kernels that fit run together."""
        if not 0 < share <= 1:
            raise ScheduleError(f"'{name}' has share={share}; a kernel fills more than 0 and at most 1 of the SMs")
        return self._add("kernel", name, stream, ms, reads, writes, share=share, action=action)

    def decode(
        self,
        name: str,
        stream: Stream = DEFAULT,
        *,
        ms: float,
        reads: Names = (),
        writes: Names = (),
        action: Action = None,
    ) -> Operation:
        """Add a frame decoded by NVDEC, beside copies and kernels."""
        return self._add("decode", name, stream, ms, reads, writes, action=action)

    def host(self, name: str, *, ms: float, reads: Names = (), writes: Names = (), action: Action = None) -> Operation:
        """Add work of the host thread, which issues nothing meanwhile."""
        return self._add("host", name, None, ms, reads, writes, action=action)

    def record(self, event: str, stream: Stream = DEFAULT) -> Operation:
        """Add cudaEventRecord: the event is there when all is done that was issued to the stream before."""
        return self._add("record", f"record {event}", stream, event=event)

    def wait(self, event: str, stream: Stream = DEFAULT) -> Operation:
        """Add cudaStreamWaitEvent: what is issued to the stream after this waits for the event; the host does not."""
        return self._add("wait", f"wait {event}", stream, event=event)

    def synchronize(self, *, stream: Stream | None = None, event: str | None = None) -> Operation:
        """Let the host wait for a stream, for an event, or, given neither, for the whole device."""
        if stream is not None and event is not None:
            raise ScheduleError("synchronize with a stream or with an event, not with both")
        what = f"stream {stream}" if stream is not None else event if event is not None else "device"
        return self._add("sync", f"sync {what}", stream, event=event)

    def without(self, *operations: Operation) -> "Schedule":
        """Return the same schedule without these operations."""
        left = Schedule(default_stream=self.default_stream, non_blocking=self.non_blocking)
        kept = (o for o in self._operations if o not in operations)
        left._operations = [replace(o, index=index) for index, o in enumerate(kept)]
        return left

    def blocks(self, stream: Stream) -> bool:
        """Return whether the legacy default stream and this one wait for each other."""
        return self.default_stream == "legacy" and stream not in self.non_blocking

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(self._operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)

    def __len__(self) -> int:
        return len(self._operations)

    def _add(
        self,
        kind: Kind,
        name: str,
        stream: Stream | None,
        ms: float = 0.0,
        reads: Names = (),
        writes: Names = (),
        **more: Any,
    ) -> Operation:
        if not 0 <= ms < float("inf"):
            raise ScheduleError(f"'{name}' takes ms={ms}; give its duration in milliseconds, 0 or more")
        if stream is None and kind not in ON_HOST:
            raise ScheduleError(f"'{name}' has stream=None; name a stream, or leave it out for the default stream")
        new = Operation(len(self), kind, name, stream, float(ms), _names(reads), _names(writes), **more)
        self._operations.append(new)
        return new


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def dependencies(schedule: Schedule) -> list[list[int]]:
    """Return, for each operation, the indices of earlier ones that CUDA's rules make it wait for directly.

    For "sync" those that the host waits for. What the host itself waits for is not in here.
    """
    last: dict[Stream, int] = {}
    recorded: dict[str, int] = {}
    found: list[list[int]] = []
    for o in schedule:
        before: list[int] = []
        if o.kind == "sync":
            if o.event is not None:
                before = [recorded[o.event]] if o.event in recorded else []
            else:
                before = [last[o.stream]] if o.stream in last else [] if o.stream is not None else list(last.values())
        elif o.stream is not None:
            before = [last[s] for s in last if s == o.stream or _legacy_pair(schedule, s, o.stream)]
            if o.kind == "wait" and o.event in recorded:
                before.append(recorded[o.event])
            if o.kind == "record" and o.event is not None:
                recorded[o.event] = o.index
            last[o.stream] = o.index
        found.append(before)
    return found


def _legacy_pair(schedule: Schedule, one: Stream, other: Stream) -> bool:
    return DEFAULT in (one, other) and schedule.blocks(one) and schedule.blocks(other)
