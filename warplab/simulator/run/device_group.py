"""Several simulated GPUs in one address space, whose kernels run at the same time.

The kernels of one device run one after another. Those of different devices take turns: each runs some instructions,
then the next device's goes on. Before a kernel sets a flag, the others run until they wait, so that one that looks
without waiting does not find the flag by luck. A kernel whose threads only wait for flags
stands aside until one of these has changed, so that it never keeps the one from running for which it waits. When all
wait and nobody can write any more, that is a deadlock.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from warplab.simulator.check.device_races import DeviceAccesses, DeviceRaces
from warplab.simulator.check.flag_waits import FlagWaits, Looks, MemoryChanges
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.errors import DeviceDeadlock, InvalidLaunch, SimulatorError, UninitializedRead
from warplab.simulator.memory.device_memory import Allocation, DeviceMemory, Heap
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import Observer
from warplab.simulator.ptx.program import Entry
from warplab.simulator.run.device import Device, launching
from warplab.simulator.run.launch_limits import MOST_THREADS, check_launch
from warplab.simulator.run.options import Options
from warplab.simulator.run.scheduler import Scheduler
from warplab.simulator.translate.translation import translate

MOST_DEVICES = 16
MOST_WARPS = 4096  # of all devices at the same time
_TURN, _TURN_OF_WAITING = 128, 48  # instructions along the path
_MOST_DEFERRED = 64  # turns of others before a device sets a flag at the latest
_PATIENCE = 64  # steps for which lanes of a device that could run are left waiting while others of it spin
_PROBES = 4  # turns after which a loop that repeats itself is believed to do so for ever
_MOST_WAITING = 1 << 14  # instructions for which nothing happens anywhere until the wait is believed to be endless


class GroupDevice(Device):
    """One of several devices. Launches on it are given to the group, not to `launch`."""

    def __init__(self, number: int, memory: DeviceMemory) -> None:
        super().__init__(memory=memory)
        self.number = number

    def allocate(self, nbytes: int) -> int:
        return self.memory.allocate(nbytes, device=self.number)


@dataclass(eq=False)
class QueuedLaunch:
    """A launch that waits for its turn. `kernel`: its name in its source. `names`: what it calls its arrays, by address
    of the allocation. `done`: is given the profile."""

    device: int
    kernel: str
    entry: Entry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    params: Sequence[bytes]
    shared_bytes: int
    options: Options
    names: dict[int, str]
    done: Callable[[LaunchProfile], None]
    arrays: list[tuple[Allocation, str, int | None, int]] = field(default_factory=list)

    @property
    def threads(self) -> int:
        return int(np.prod(self.block))

    @property
    def blocks(self) -> int:
        return int(np.prod(self.grid))

    def name_arrays(self) -> None:
        """Let messages call arrays what this kernel calls them."""
        for allocation, name, item, origin in self.arrays:
            allocation.name, allocation.item, allocation.origin = name, item, origin


@dataclass(eq=False)
class _Member:
    """A device that runs its launches. `state`: the scheduler, the block and the group that come next."""

    number: int
    turns: Generator[tuple[Scheduler, int, Group], None, None]
    launch: QueuedLaunch = field(init=False)  # these from the first turn on
    waits: FlagWaits = field(init=False)
    scheduler: Scheduler = field(init=False)
    observers: Sequence[Observer] = ()
    state: tuple[Scheduler, int, Group] | None = None
    idle_turns: int = 0
    asleep: Looks | None = None  # while it stands aside: at what its threads look, and what they have seen there
    deferred: int = 0  # turns that others had while it is about to set a flag

    def begins(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        scheduler.turn, scheduler.late, scheduler.patience = _TURN, self.waits.setting, _PATIENCE
        self.idle_turns, self.asleep = 0, None

    @property
    def sets_flag(self) -> bool:
        """Return whether it is about to set a flag."""
        return self.state is not None and self.state[1] in self.waits.setting

    @property
    def places(self) -> list[tuple[int, np.ndarray]]:
        """Return blocks of code at which lanes stand, with the lanes."""
        assert self.state is not None
        scheduler, number, group = self.state
        waiting = [(other, np.concatenate(parts)) for other, parts in scheduler.pending.items()]
        return [(number, group.all_lanes), *waiting]

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.places]


class DeviceGroup:
    """`devices` GPUs with `memory_bytes` in all. `peer_access`: pairs (a, b) where a can access the memory of b."""

    def __init__(self, devices: int, peer_access: Collection[tuple[int, int]], memory_bytes: int = 4 << 30) -> None:
        self.memory = DeviceMemory(memory_bytes)
        self.devices = [GroupDevice(number, self.memory) for number in range(devices)]
        heap = Heap(self.memory)
        for device in self.devices:
            device.heap, device.siblings = heap, self.devices
        self.peer_access = set(peer_access)
        self._queues: list[deque[QueuedLaunch]] = [deque() for _ in self.devices]

    def add(self, launch: QueuedLaunch) -> None:
        """Queue a launch. Raises InvalidLaunch and UnsupportedInstruction."""
        check_launch(launch.entry, launch.grid, launch.block, launch.params, launch.shared_bytes)
        translate(launch.entry)
        self._queues[launch.device].append(launch)

    @property
    def queued(self) -> bool:
        return any(self._queues)

    def run(self) -> None:
        """Run all that is queued. Raises the first error, and forgets what has not run then."""
        with launching:
            queues, self._queues = self._queues, [deque() for _ in self.devices]
            if any(queues):
                with np.errstate(all="ignore"):
                    _Run(self, queues).run()


class _Run:
    def __init__(self, group: DeviceGroup, queues: Sequence[deque[QueuedLaunch]]) -> None:
        self.group, self.memory = group, group.memory
        self.changes = MemoryChanges()
        self.failed: list[SimulatorError] = []
        self.launched = {number for number, queue in enumerate(queues) if queue}
        launches = [launch for queue in queues for launch in queue]
        warps = [max((one.blocks * -(-one.threads // WARP_SIZE) for one in queue), default=0) for queue in queues]
        several = len(self.launched) > 1
        if several and sum(warps) > MOST_WARPS:
            raise InvalidLaunch(
                f"{sum(warps):,} warps on {len(self.launched)} devices at the same time; the simulator follows what up "
                f"to {MOST_WARPS:,} know of one another",
                reason="Launch fewer blocks, each of which does more work in a loop, as a kernel must that waits for "
                "others: all its blocks have to be on the GPU at once.",
            )
        sites = [s for launch in launches for s in translate(launch.entry).sites if s.space in ("global", "generic")]
        self.accesses = DeviceAccesses(
            self.memory,
            first_warp=[sum(warps[:number]) for number in range(len(warps))],
            warps=sum(warps),
            word=min((site.item for site in sites), default=4),
            reachable=[[b for a, b in group.peer_access if a == number] for number in range(len(queues))],
            checks=several and all(launch.options.checks and launch.options.races for launch in launches),
        )
        self.members = deque(self._member(number, queue) for number, queue in enumerate(queues) if queue)

    def _member(self, number: int, queue: deque[QueuedLaunch]) -> _Member:
        def turns() -> Generator[tuple[Scheduler, int, Group], None, None]:
            for launch in queue:
                translation = translate(launch.entry)
                member.launch = launch
                member.waits = FlagWaits(self.changes, translation, number, launch.names)
                member.observers = (DeviceRaces(self.accesses, number, translation, launch.names), member.waits)
                launch.name_arrays()
                profile = yield from self.group.devices[number].turns(
                    launch.entry,
                    launch.grid,
                    launch.block,
                    launch.params,
                    shared_bytes=launch.shared_bytes,
                    options=replace(launch.options, chunk_lanes=MOST_THREADS, sample_blocks=None),
                    together=member,
                )
                launch.done(profile)

        member = _Member(number, turns())
        return member

    def run(self) -> None:
        try:
            while self.members:
                member = self._next()
                if member is not None:
                    self._turn(member)
                elif self.failed:
                    break
                else:
                    self._probe()
        finally:
            for member in self.members:
                member.turns.close()
        if self.failed:
            raise self.failed[0]

    def _next(self) -> _Member | None:
        """Return the next device in turn of those that may get on; those that are about to set a flag come last."""
        first = None
        for _ in range(len(self.members)):
            member = self.members[0]
            self.members.rotate(-1)
            if member.asleep is not None:
                if not member.asleep.changed():
                    continue
                member.idle_turns, member.asleep = 0, None
            if not member.sets_flag or member.deferred >= _MOST_DEFERRED:
                member.deferred = 0
                return member
            member.deferred += 1
            first = first or member
        if first is not None:
            first.deferred = 0
        return first

    def _turn(self, member: _Member) -> None:
        if member.state is not None:
            member.launch.name_arrays()
            member.waits.worked = False
        try:
            member.state = next(member.turns)
        except StopIteration:
            self.members.remove(member)
            return
        except SimulatorError as error:
            self.members.remove(member)
            self._raise(member, error)
            return
        member.waits.decide()
        if member.waits.worked or not member.waits.only_waits(member.numbers):
            member.idle_turns = 0
            member.scheduler.turn = _TURN
            return
        member.idle_turns += 1
        member.scheduler.turn = _TURN_OF_WAITING
        if member.idle_turns > len(member.numbers):  # all its groups have looked
            member.asleep = member.waits.looking(member.numbers)

    def _raise(self, member: _Member, error: SimulatorError) -> None:
        """Raise the error of a device's kernel, or keep it: another device may still write what nobody had written, and
        then a wait was missing."""
        if error.kernel is not None:
            error.kernel = member.launch.kernel
        error.on_device = member.number
        error.args = (error.message(),)
        if isinstance(error, UninitializedRead) and error.address is not None and len(self.members) > 0:
            self.failed.append(error)
            return
        raise error

    def _probe(self) -> None:
        """Let all, which wait, go on until one gets on; raise DeviceDeadlock if that can never be."""
        before, ran = self.changes.count, 0
        members = sorted(self.members, key=lambda member: member.number)
        for member in members:
            member.waits.forget()
            member.waits.probing = True
        probes = 0
        while True:
            for member in members:
                member.asleep, member.idle_turns = None, 0
                self._turn(member)
                if member not in self.members or member.waits.worked or self.changes.count != before:
                    for other in self.members:
                        other.waits.forget()
                        other.asleep = None
                    return
            probes, ran = probes + 1, ran + _TURN_OF_WAITING
            rounds = _PROBES + 2 * max(len(member.numbers) for member in members)
            if probes >= rounds and all(member.waits.stuck(member.numbers) for member in members):
                raise self._deadlock(members, "")
            if ran > _MOST_WAITING:
                raise self._deadlock(members, f" (nothing has changed for {ran:,} instructions of each)")

    def _deadlock(self, members: list[_Member], how_long: str) -> DeviceDeadlock:
        waiting = []
        for member in members:
            member.launch.name_arrays()
            for number, lanes in sorted(member.places, key=lambda place: int(place[1][0])):
                waiting.append(member.waits.waiting(number, np.sort(lanes), self.memory, member.launch.kernel))
        who = "one device waits" if len(members) == 1 else f"{len(members)} devices wait"
        here = {member.number for member in members}
        ended = _named(self.launched - here, "ended")
        without = _named(set(range(len(self.group.devices))) - self.launched, "no launch")
        over = "".join(f" {text}." for text in (ended, without) if text)
        reason = "Who should set these flags? Is a launch missing, or is an index or an epoch wrong?"
        if any(wait.array is None for wait in waiting):
            reason = (
                "The compiler has loaded an ordinary variable once, before the loop: make the flag volatile (in Numba "
                "link a function in CUDA C++, cuda.declare_device)."
            )
        return DeviceDeadlock(
            f"deadlock: {who} for flags that nobody can set any more{how_long}",
            waiting=tuple(waiting),
            reason=reason + over,
            file=waiting[0].file,
            line=waiting[0].line,
            source=waiting[0].source,
        )


def _named(devices: set[int], what: str) -> str:
    """Say of devices that they have `what`; "" if there are none."""
    if not devices:
        return ""
    several = len(devices) > 1
    return f"Device{'s' * several} {', '.join(map(str, sorted(devices)))} {'have' if several else 'has'} {what}"
