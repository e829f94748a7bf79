"""Races of a schedule: two operations on one buffer, at least one of which writes, that nothing orders.

What is asked is what must happen before what (stream order, events, the host's own order and its waits), never when
things happened to run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernels.serving.overlap.streams.schedule import ON_HOST, Operation, Schedule, dependencies


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
    """Return the races of a schedule, each with the wait that is missing; empty where every shared buffer is ordered.

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
        """Return these nodes and all that happens before them."""
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
        record = next((r for r in self._records_of(first) if r.index < second.index), None)
        waiting = f"let stream {second.stream} wait for"
        if record is None:
            after = f"record an event in stream {first.stream} after {_quoted(first)}, and {waiting} it"
        else:
            after = f"{waiting} '{record.event}', which is recorded after {_quoted(first)},"
        missing = f"{after} before {_quoted(second)}." + self._why_not(first, second, record)
        return Race(first, second, buffer, conflict, missing)

    def _records_of(self, first: Operation) -> list[Operation]:
        """Return the records that include `first`: those issued to its stream after it."""
        later = self.operations[first.index + 1 :]
        return [r for r in later if r.kind == "record" and r.stream == first.stream]

    def _why_not(self, first: Operation, second: Operation, record: Operation | None) -> str:
        """Say what is wrong with a wait that the second operation's stream has for the first one's event."""
        waits = [o for o in self.operations if o.kind == "wait" and o.stream == second.stream]
        early = [o for o in waits if o.index < second.index]
        if record is not None:
            waits = [o for o in waits if o.event == record.event]
            if waits and waits[0].index > second.index:
                return f" It waits for that only after {_quoted(second)} was issued."
            early = [o for o in early if o.event == record.event]
        for o in reversed(early):
            before = [r for r in self.operations[: o.index] if r.kind == "record" and r.event == o.event]
            if not before and any(r.event == o.event for r in self._records_of(first)):
                return (
                    f" Stream {o.stream} does wait for '{o.event}', but nothing had recorded that event yet: such a "
                    "wait does nothing. Issue the record first."
                )
            if record is None and before and before[-1].stream == first.stream:
                return (
                    f" Stream {o.stream} does wait for '{o.event}', but that was recorded before {_quoted(first)} was "
                    "issued."
                )
        return ""


def _quoted(operation: Operation) -> str:
    return f"'{operation.name}'"
