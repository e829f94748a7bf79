"""Races of a schedule: two operations on one buffer, at least one of which writes, that nothing orders.

What is asked is what must happen before what (stream order, events, the host's own order and its waits), never when
things happened to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernels.serving.streams import ON_HOST, Operation, Schedule, dependencies


@dataclass(frozen=True)
class Race:
    """Two operations on one buffer that nothing orders, at least one of which writes. str() tells all of it."""

    first: Operation
    second: Operation
    buffer: str
    conflict: str
    missing: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second} race on '{self.buffer}' ({self.conflict}): {self.missing}"


def races(schedule: Schedule) -> list[Race]:
    """The races of a schedule, each with the wait that is missing; empty where every shared buffer is ordered.

    Each race is taken as repaired before the search goes on, so that one missing wait is told once. The order of two
    operations follows from stream order, from events, from the host's own order and from what the host waited for.
    """
    return _RaceSearch(schedule).run()


class _RaceSearch:
    """For each operation the set of those that happen before it, as the bits of a number.

    Operation i is bit i. A pageable copy to the device reads host memory in the host's own order, when it is staged:
    that part is bit n + i.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.operations = schedule, schedule.operations
        self.direct = dependencies(schedule)
        self.before: dict[int, int] = {}
        self.host = 0  # what happened before the host's next call
        self.users: dict[str, list[tuple[int, Operation, bool]]] = {}
        self.found: list[Race] = []

    def run(self) -> list[Race]:
        for o in self.operations:
            if o.kind == "sync":
                self.host |= self._with(self.direct[o.index])
            elif o.kind == "host":
                self._access(o, o.index, self.host)
                self.host |= self._with([o.index])
            else:
                staged = o.kind == "h2d" and not o.pinned
                if staged:
                    self._access(o, len(self.operations) + o.index, self.host, o.reads, ())
                    self.host |= self._with([len(self.operations) + o.index])
                reads = () if staged else o.reads
                self._access(o, o.index, self.host | self._with(self.direct[o.index]), reads, o.writes)
                if o.kind == "d2h" and not o.pinned:
                    self.host |= self._with([o.index])
        return self.found

    def _with(self, nodes: Iterable[int]) -> int:
        """These nodes and all that happens before them."""
        together = 0
        for node in nodes:
            together |= self.before[node] | 1 << node
        return together

    def _access(
        self,
        o: Operation,
        node: int,
        before: int,
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
    ) -> None:
        reads, writes = o.reads if reads is None else reads, o.writes if writes is None else writes
        uses = [(buffer, True) for buffer in dict.fromkeys(writes)]
        uses += [(buffer, False) for buffer in dict.fromkeys(reads) if buffer not in writes]
        others = [(*user, buffer, w) for buffer, w in uses for user in self.users.get(buffer, ())]
        for other, first, wrote, buffer, writes_now in sorted(others, key=lambda other: -other[1].index):
            if first is not o and (wrote or writes_now) and not before >> other & 1:
                self.found.append(self._race(first, o, buffer, wrote, writes_now))
                before |= self._with([other])
        for buffer, writes_now in uses:
            self.users.setdefault(buffer, []).append((node, o, writes_now))
        self.before[node] = before

    def _race(self, first: Operation, second: Operation, buffer: str, wrote: bool, writes: bool) -> Race:
        does = {True: "write", False: "read"}
        conflict = f"{does[writes]} after {does[wrote]}"
        if second.kind in ON_HOST:
            return Race(first, second, buffer, conflict, f"the host must wait for {first} before {second}.")
        missing = (
            f"record an event in stream {first.stream} after {_quoted(first)}, and let stream {second.stream} wait for "
            f"it before {_quoted(second)}."
        )
        return Race(first, second, buffer, conflict, missing + self._why_not(first, second))

    def _why_not(self, first: Operation, second: Operation) -> str:
        """What is wrong with the waits that the second operation's stream has."""
        for o in reversed(self.operations[: second.index]):
            if o.kind != "wait" or o.stream != second.stream:
                continue
            records = [r for r in self.operations if r.kind == "record" and r.event == o.event]
            earlier = [r for r in records if r.index < o.index]
            if not earlier and any(r.stream == first.stream for r in records):
                return (
                    f" Stream {o.stream} does wait for '{o.event}', but nothing had recorded that event yet: such a "
                    "wait does nothing. Issue the record first."
                )
            if earlier and earlier[-1].stream == first.stream and earlier[-1].index < first.index:
                return (
                    f" Stream {o.stream} does wait for '{o.event}', but that was recorded before {_quoted(first)} was "
                    "issued."
                )
        late = [
            o
            for o in self.operations[second.index :]
            if o.kind == "wait" and o.stream == second.stream and self._covers(o, first)
        ]
        if late:
            return f" The wait for '{late[0].event}' comes after {_quoted(second)} was issued."
        return ""

    def _covers(self, wait: Operation, first: Operation) -> bool:
        """Whether the wait is for a record that was issued after `first` to the same stream."""
        return any(
            self.operations[i].stream == first.stream and i > first.index
            for i in self.direct[wait.index]
            if self.operations[i].kind == "record"
        )


def _quoted(operation: Operation) -> str:
    return f"'{operation.name}'"
