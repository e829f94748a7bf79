"""A schedule as each rank sees it: its own program of sends, receives and waits, and whether the programs deadlock.

A blocking send returns when the other rank has come to the matching receive, as MPI's synchronous send does
("rendezvous"). MPI_Send may return earlier if the message fits into a buffer ("eager"); a program that relies on it
works until messages grow.
Messages between two ranks match in the order in which they are posted.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernels.collectives.schedule import Schedule, ScheduleError, Send

ORDERS = ("together", "send first", "alternate")
ACTIONS = ("send", "receive", "start send", "start receive", "wait")


@dataclass(frozen=True)
class ProgramLine:
    """One line of a rank's program.

    `action`: "send" and "receive" block; "start send" and "start receive" return at once, and "wait" blocks until all
    that the rank has started is done. `peer`: the other rank; `slice`, `count`, `reduce`, `step`: as in Send.
    """

    action: str
    peer: int = -1
    slice: int = 0
    reduce: bool = False
    count: int = 1
    step: int = 0

    def __str__(self) -> str:
        if self.action == "wait":
            return "wait"
        towards = "to" if self.action.endswith("send") else "from"
        carried = f"slice {self.slice}" if self.count == 1 else f"slices {self.slice} to {self.slice + self.count - 1}"
        return f"{self.action} {carried} {towards} rank {self.peer}"


@dataclass(frozen=True)
class Deadlock:
    """Programs that stop for ever. `circle`: ranks of which each waits for the next, and the last for the first.

    `circle` is empty if the ranks wait for one whose program has ended. `waiting`: (rank, operation, awaited rank) of
    each rank in the circle, or of one that waits for an ended one.
    """

    circle: tuple[int, ...]
    waiting: tuple[tuple[int, ProgramLine, int], ...]

    def __str__(self) -> str:
        lines = [f"rank {rank} waits for rank {peer} at: {operation}" for rank, operation, peer in self.waiting]
        if self.circle:
            ring = " waits for ".join(f"rank {rank}" for rank in (*self.circle, self.circle[0]))
            advice = "let one rank of the circle receive before it sends, or start both and wait for both"
            return f"deadlock: {ring}\n" + "\n".join(lines) + f"\n{advice}"
        peer = self.waiting[0][2]
        return f"deadlock: rank {peer} has ended\n" + "\n".join(lines) + f"\ngive rank {peer} the matching operation"


def program(schedule: Schedule, rank: int, order: str = "together") -> list[ProgramLine]:
    """Return the program of `rank`. `order` says how a rank does the sends and receives of one step:

    - "together": starts all and waits for all. It cannot deadlock.
    - "send first": blocking sends, then blocking receives. It deadlocks where the messages of a step close a circle.
    - "alternate": even ranks send first, odd ranks receive first, all blocking.
    """
    if order not in ORDERS:
        raise ValueError(f"there is no order {order!r}; choose one of {', '.join(ORDERS)}")
    if not 0 <= rank < schedule.ranks:
        raise ValueError(f"there is no rank {rank}; ranks are 0 to {schedule.ranks - 1}")
    found: list[ProgramLine] = []
    for sends in schedule.by_step():
        own = [_operation("send", send, send.destination) for send in sends if send.source == rank]
        others = [_operation("receive", send, send.source) for send in sends if send.destination == rank]
        if order == "together":
            both = [replace(operation, action=f"start {operation.action}") for operation in (*own, *others)]
            found += [*both, ProgramLine("wait", step=both[0].step)] if both else []
        else:
            found += [*others, *own] if order == "alternate" and rank % 2 else [*own, *others]
    return found


def _operation(action: str, send: Send, peer: int) -> ProgramLine:
    return ProgramLine(action, peer, send.slice, send.reduce, send.count, send.step)


def programs(schedule: Schedule, order: str = "together") -> list[list[ProgramLine]]:
    """Return the programs of all ranks."""
    return [program(schedule, rank, order) for rank in range(schedule.ranks)]


def find_deadlock(programs: Sequence[Sequence[ProgramLine]], eager: bool = False) -> Deadlock | None:
    """Return none if every program ends, else who waits for whom. `programs`: one per rank.

    `eager`: a blocking send returns at once, as MPI's does while messages are small. Raise ScheduleError if a send
    meets a receive of other slices.
    """
    machine = _Machine(programs, eager)
    while machine.advance():
        pass
    return machine.deadlock()


@dataclass(frozen=True)
class _Post:
    """The `index`-th send (or receive) that was posted on the link from `source` to `destination`."""

    source: int
    destination: int
    sending: bool
    index: int
    operation: ProgramLine

    @property
    def peer(self) -> int:
        return self.destination if self.sending else self.source


class _Machine:
    """Runs the programs as far as they go. Which rank runs first makes no difference: what is posted stays posted."""

    def __init__(self, programs: Sequence[Sequence[ProgramLine]], eager: bool) -> None:
        self.programs, self.eager = programs, eager
        self.line = [0] * len(programs)
        self.reached = [-1] * len(programs)  # the line whose operation was posted last
        self.started: list[list[_Post]] = [[] for _ in programs]  # posted, and no wait has seen it done
        self.blocking: list[list[_Post]] = [[] for _ in programs]  # what the current line waits for
        self.posts: dict[tuple[int, int, bool], list[ProgramLine]] = defaultdict(list)
        for rank, operations in enumerate(programs):
            for operation in operations:
                _check_operation(rank, operation, len(programs))

    def advance(self) -> bool:
        """Let every rank run until it blocks; whether any did something."""
        return any([self._run(rank) for rank in range(len(self.programs))])

    def _run(self, rank: int) -> bool:
        moved = False
        while self.line[rank] < len(self.programs[rank]):
            if self.reached[rank] < self.line[rank]:
                self.reached[rank] = self.line[rank]
                self._begin(rank, self.programs[rank][self.line[rank]])
                moved = True
            if self._unmet(rank):
                break
            self.line[rank] += 1
            moved = True
        return moved

    def _begin(self, rank: int, operation: ProgramLine) -> None:
        if operation.action == "wait":
            self.blocking[rank], self.started[rank] = self.started[rank], []
            return
        post = self._post(rank, operation)
        self.blocking[rank] = []
        if operation.action.startswith("start"):
            self.started[rank].append(post)
        else:
            self.blocking[rank].append(post)

    def _post(self, rank: int, operation: ProgramLine) -> _Post:
        sending = operation.action.endswith("send")
        link = (rank, operation.peer) if sending else (operation.peer, rank)
        mine, theirs = self.posts[*link, sending], self.posts[*link, not sending]
        post = _Post(*link, sending, len(mine), operation)
        mine.append(operation)
        if post.index < len(theirs):
            other = theirs[post.index]
            if (other.slice, other.count, other.reduce) != (operation.slice, operation.count, operation.reduce):
                raise ScheduleError(
                    f"rank {rank}: {operation}, meets rank {operation.peer}: {other}; messages between two ranks "
                    "match in the order in which they are posted, so both must name the same slices and reduce alike"
                )
        return post

    def _unmet(self, rank: int) -> list[_Post]:
        """Return what the rank's current line waits for."""
        return [
            post
            for post in self.blocking[rank]
            if post.index >= len(self.posts[post.source, post.destination, not post.sending])
            and not (self.eager and post.sending)
        ]

    def deadlock(self) -> Deadlock | None:
        """Return who waits for whom, once nobody can go on."""
        stuck = {rank: unmet for rank in range(len(self.programs)) if (unmet := self._unmet(rank))}
        if not stuck:
            return None
        for rank, unmet in stuck.items():
            for post in unmet:
                if post.peer not in stuck:
                    return Deadlock((), ((rank, post.operation, post.peer),))
        path = [min(stuck)]  # everybody waits for somebody who is stuck: following them leads into a circle
        while (following := stuck[path[-1]][0].peer) not in path:
            path.append(following)
        circle = path[path.index(following) :]
        return Deadlock(tuple(circle), tuple((r, stuck[r][0].operation, stuck[r][0].peer) for r in circle))


def _check_operation(rank: int, operation: ProgramLine, ranks: int) -> None:
    if operation.action not in ACTIONS:
        raise ValueError(f"rank {rank}: there is no action {operation.action!r}; choose one of {', '.join(ACTIONS)}")
    if operation.action != "wait" and (operation.peer == rank or not 0 <= operation.peer < ranks):
        raise ValueError(f"rank {rank}: {operation}: the other rank is one of 0 to {ranks - 1}, and not {rank} itself")
