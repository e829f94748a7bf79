"""`Device`: a simulated GPU that holds memory and launches kernels, one chunk of thread blocks after another."""

import math
import sys
import threading
import time
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from warplab.simulator.count import sampling
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.errors import IllegalAddress, InvalidLaunch, SimulatorError, refusing
from warplab.simulator.memory.device_memory import DeviceMemory, Heap
from warplab.simulator.memory.lane_groups import BankPassCache, Group
from warplab.simulator.observer import Observer
from warplab.simulator.ptx.program import Entry, Program, Variable
from warplab.simulator.run import undefined_values
from warplab.simulator.run.chunk import Chunk, LaunchState
from warplab.simulator.run.geometry import chunk_geometry
from warplab.simulator.run.launch_limits import (
    MAX_LOCAL_BYTES,
    check_cluster,
    check_launch,
    grid_workspace,
    is_cooperative,
)
from warplab.simulator.run.observation import observers_of, unwritten_reads_of
from warplab.simulator.run.options import Options
from warplab.simulator.run.printf import Printed
from warplab.simulator.run.scheduler import Scheduler
from warplab.simulator.translate.translation import Translation, translate

# Held while a kernel is compiled and runs: launches of several threads take turns, as translated kernels, names of
# arrays and the second run of `undefined_values` are everybody's.
launching = threading.RLock()
CHUNK_BYTES = 1 << 29  # memory of the blocks that run at one time, roughly
LATER, LATER_ROOM = 4, 16  # times as many threads have the chunks that nobody watches; in a part of that memory
MOST_RANKED = 64  # blocks of a chunk whose shared memories lie RANK_BYTES apart
CHUNK_SHARE = 2**30  # thread instructions of a chunk none of whose lanes gets on
SECONDS_AT_REST = 10.0  # of processor time, for such a chunk to go on
# With a limit by time: the instructions of threads, and along the path, after which the clock is read.
BETWEEN_LOOKS, PATH_BETWEEN_LOOKS = 2**26, 2**17


class Together(Protocol):
    """Of a launch that runs at the same time as others: its first observers, and what is told when a chunk begins."""

    observers: Sequence[Observer]

    def begins(self, scheduler: Scheduler) -> None: ...


class Device:
    """A simulated GPU. `memory_bytes`: its memory; a page takes host memory only once it is touched. `memory`: one
    that it shares with other devices.

    `echo`: also write what kernels print to standard output.
    """

    echo = True
    number = 0
    siblings: "Sequence[Device]" = ()  # all devices of the address space that it shares with others
    queue: Any = None  # what takes the launches of a device that runs them later, together with those of others

    def __init__(self, memory_bytes: int = 16 << 30, *, memory: DeviceMemory | None = None) -> None:
        self.memory = DeviceMemory(memory_bytes) if memory is None else memory
        self._variables: weakref.WeakKeyDictionary[Program, dict[str, int]] = weakref.WeakKeyDictionary()
        self._places: weakref.WeakKeyDictionary[Program, dict[str, tuple[Variable, int]]] = weakref.WeakKeyDictionary()
        self.heap = Heap(self.memory)
        self.launches = self.ticks = 0  # so far, for %gridid and %globaltimer

    def launch(
        self,
        entry: Entry,
        grid: Sequence[int],
        block: Sequence[int],
        params: Sequence[bytes],
        *,
        shared_bytes: int = 0,
        options: Options | None = None,
    ) -> LaunchProfile:
        """Run a kernel and wait for it, and before for launches of other threads.

        `grid`, `block`: up to three positive ints. `params`: the bytes of each parameter, in order. `shared_bytes`:
        dynamic shared memory per block. Returns the profile (its counts are empty with `counters=False`). Raises
        InvalidLaunch, UnsupportedInstruction, or the error for what the kernel did wrong.
        """
        turns = self.turns(entry, grid, block, params, shared_bytes=shared_bytes, options=options)
        with launching, np.errstate(all="ignore"):
            while True:
                try:
                    next(turns)
                except StopIteration as end:
                    return end.value

    def turns(
        self,
        entry: Entry,
        grid: Sequence[int],
        block: Sequence[int],
        params: Sequence[bytes],
        *,
        shared_bytes: int = 0,
        options: Options | None = None,
        together: Together | None = None,
    ) -> Generator[tuple[Scheduler, int, Group], None, LaunchProfile]:
        """Run a kernel as `launch` does, floating-point warnings apart; where it runs `together` with kernels of other
        devices, in turns. Each yields the scheduler, and the block and group that it runs next."""
        options = options or Options()
        grid, block = check_launch(entry, grid, block, params, shared_bytes)
        translation = translate(entry)
        buffer = bytearray(max((p.offset + p.size for p in entry.params), default=0))
        for param, data in zip(entry.params, params, strict=True):
            buffer[param.offset : param.offset + param.size] = data
        threads = block[0] * block[1] * block[2]
        total = grid[0] * grid[1] * grid[2]
        launch = LaunchState(bytes(buffer))
        room, lanes = self._room_for(translation, threads, shared_bytes), options.chunk_lanes
        step, later = max(1, min(lanes // threads, room)), min(LATER * lanes // threads, room // LATER_ROOM)
        if is_cooperative(translation, options.cooperative, total, threads):
            step, options = total, replace(options, sample_blocks=None)
            launch.workspace = grid_workspace(self.memory)
        cluster = check_cluster(entry, grid, options.cluster, options.wide_clusters)
        runs = sampling.split(total, step, options.sample_blocks, math.prod(cluster), later)
        observers = observers_of(options, translation, self.memory, runs, threads, total)
        if together is not None:
            observers = [*together.observers, *observers]
        passes = BankPassCache()
        profile = LaunchProfile(entry.name, grid, block, sources=entry.program.sources)
        profile.static = {"shared_bytes": translation.shared_bytes + shared_bytes}
        self.launches += 1
        reads_shared = translation.shared_bytes + shared_bytes > 0
        examined = (
            together is None  # what others have read in the meantime cannot be taken back
            and options.checks
            and options.unwritten_reads
            and options.sample_blocks is None
            and undefined_values.examined(translation, self.memory, reads_shared and options.used_reads_only)
        )
        if examined:  # also of the variables that a module has in device memory
            variables = [*entry.program.variables.values(), *entry.variables.values()]
            for variable in variables:
                if variable.space in ("global", "const"):
                    self.variable_address(entry.program, variable.name)
        before = self.memory.contents() if examined else {}
        unwritten = unwritten_reads_of(options, translation, launch.undefined, self.memory) if examined else []

        def run_all(observers: Sequence[Observer]) -> Iterator[tuple[Scheduler, int, Group]]:
            executed = 0
            left = sum(run.blocks for run in runs)
            for run in runs:
                left -= run.blocks
                launch.chunks_ahead = left / run.blocks
                geometry = chunk_geometry(grid, block, run.first, run.blocks, cluster)
                chunk = Chunk(self, entry, translation, geometry, launch, shared_bytes, options, passes)
                chunk.observe(observers)
                limit, seconds = options.instruction_limit, None
                budget, path_budget = (CHUNK_SHARE if limit is None else limit - executed), options.path_limit
                if deadline is not None:
                    budget, path_budget = BETWEEN_LOOKS, PATH_BETWEEN_LOOKS
                elif limit is None:
                    seconds = SECONDS_AT_REST if options.max_seconds is None else 0
                scheduler = Scheduler(chunk, budget, path_budget, options.scheduling, seconds, deadline)
                if together is None:
                    scheduler.alone = True
                    scheduler.run()
                else:
                    together.begins(scheduler)
                    for number, group in scheduler.turns():
                        yield scheduler, number, group
                executed += scheduler.executed
                self.ticks += chunk.end()
                for notify in chunk.observers.end_chunk:
                    notify()

        def run_again() -> None:
            ticks, printed = self.ticks, launch.printed
            self.ticks, launch.printed = started, Printed()
            try:
                for _ in run_all(unwritten):
                    pass
            finally:
                self.ticks, launch.printed = ticks, printed

        started = self.ticks
        deadline = time.thread_time() + options.max_seconds if options.max_seconds else None
        try:
            yield from run_all([*observers, *unwritten[1:]])
            if examined and launch.undefined.met:
                launch.undefined.check(self.memory, before, run_again)
        except SimulatorError as error:
            for observer in observers:
                observer.end_launch(profile, finished=False)
            if options.counters:
                error.profile = profile
            raise
        except IndexError as error:
            if options.checks:
                raise
            reason = (
                "Without checks nobody looks where an access goes: launch it with them, and they say which one it is."
            )
            raise IllegalAddress("illegal address: beyond memory", reason=reason, kernel=entry.name) from error
        finally:
            profile.output, profile.log = self._end_launch(launch), list(launch.log)
        for observer in observers:
            observer.end_launch(profile, finished=True)
        return profile

    def synchronize(self) -> None:
        """Wait for launches that are queued."""
        if self.queue is not None:
            self.queue.synchronize()

    def allocate(self, nbytes: int) -> int:
        """Return the address of `nbytes` new bytes of this device, uninitialised."""
        return self.memory.allocate(nbytes)

    @staticmethod
    def _room_for(translation: Translation, threads: int, shared_bytes: int) -> int:
        """Return how many blocks' shared memory, local memory and registers fit into CHUNK_BYTES."""
        if translation.local_bytes > MAX_LOCAL_BYTES:
            raise InvalidLaunch(
                f"{translation.local_bytes:,} bytes of local memory per thread; at most {MAX_LOCAL_BYTES:,}",
                reason="Is a large array declared inside the kernel?",
            )
        thread = translation.local_bytes + 8 * len(translation.slots)
        most = MOST_RANKED if translation.masks_ranks else CHUNK_BYTES
        return min(most, CHUNK_BYTES // max(1, translation.shared_bytes + shared_bytes + threads * thread))

    def _end_launch(self, launch: LaunchState) -> str:
        """Free the launch's own memory. Return what the kernel printed, even if it failed, and echo it if asked to."""
        for address in (launch.parameters, launch.workspace):
            if address is not None:
                self.memory.free(address)
        output = launch.printed.take()
        if output and self.echo:
            sys.stdout.write(output)
        return output

    def variable_address(self, program: Program, name: str) -> int:
        """Return the address of a module's `.global` or `.const` variable. Raises UnsupportedInstruction where its
        initial value names what the module lacks."""
        with launching, refusing(f"cannot place variable {name}"):
            return self._variable_address(program, name)

    def _variable_address(self, program: Program, name: str) -> int:
        addresses = self._variables.setdefault(program, {})
        if name not in addresses:
            variable, address = self._placed(program)[name]
            addresses[name] = address
            for offset, symbol in variable.pointers:
                other, _, distance = symbol.partition("+")
                known = other in program.functions
                value = program.function_address(other) if known else self._variable_address(program, other)
                self.memory.view(address + offset, 8).view(np.uint64)[0] = value + int(distance or "0", 0)
        return addresses[name]

    def _placed(self, program: Program) -> dict[str, tuple[Variable, int]]:
        """Return a module's variables and their addresses, which all get at the first use of any: so it is the same
        for both engines, which come to them in different orders."""
        if program not in self._places:
            places = self._places[program] = {}
            own = [program.variables, *(entry.variables for entry in program.entries.values())]
            for name, variable in (item for variables in own for item in variables.items()):
                if variable.space in ("global", "const") and name not in places:
                    address = self.memory.allocate(variable.size, name=name)
                    if variable.initial is not None:
                        self.memory.view(address, len(variable.initial))[:] = np.frombuffer(variable.initial, np.uint8)
                    self.memory.mark_initialized(address, variable.size)  # static variables start as zeros
                    places[name] = variable, address
        return self._places[program]


class _Current:
    """A current device, of one thread or of all. `own`: that of a thread which has replaced it."""

    def __init__(self, device: Device, thread: int | None) -> None:
        self.device, self.thread, self.own = device, thread, threading.local()


_current: list[_Current] = []  # the latest last; the first is all threads'


def _of_this_thread() -> _Current:
    if not _current:
        with launching:
            if not _current:
                _current.append(_Current(Device(), None))
    here = threading.get_ident()
    return next(current for current in reversed(_current[:]) if current.thread in (None, here))


def default_device() -> Device:
    """Return the device that the stand-ins for numba.cuda and cupy use in this thread."""
    current = _of_this_thread()
    return getattr(current.own, "device", current.device)


def push_device(device: Device, everywhere: bool = False) -> None:
    """Make `device` the default one of this thread, or of threads that have chosen none, until `pop_device`."""
    _of_this_thread()
    if everywhere:
        _current.append(_Current(device, None))
    _current.append(_Current(device, threading.get_ident()))


def pop_device(everywhere: bool = False) -> None:
    """Make the device the default one again that was before the latest `push_device` of this thread."""
    here = threading.get_ident()
    for thread in (here, None) if everywhere else (here,):
        _current.remove(next(current for current in reversed(_current[:]) if current.thread == thread))


def replace_device(device: Device) -> None:
    """Make `device` the default one of this thread in place of the present one."""
    _of_this_thread().own.device = device


@contextmanager
def using_device(device: Device) -> Iterator[None]:
    """Make `device` the default one of this thread inside the block."""
    push_device(device)
    try:
        yield
    finally:
        pop_device()
