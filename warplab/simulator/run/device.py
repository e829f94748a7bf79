"""`Device`: memory, and launches: checks of the launch itself, chunks of thread blocks, the profile."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.races import Races
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count import sampling
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.errors import Index3, InvalidLaunch, SimulatorError
from warplab.simulator.memory.device_memory import WINDOW_LOCAL, WINDOW_SHARED, DeviceMemory
from warplab.simulator.memory.heap import Heap
from warplab.simulator.memory.lane_access import Accessor, Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.ptx.parser import RESERVED, RESERVED_BYTES
from warplab.simulator.ptx.program import Entry, Program
from warplab.simulator.run import cooperative
from warplab.simulator.run.async_copies import AsynchronousCopies
from warplab.simulator.run.atomics import Atomics
from warplab.simulator.run.geometry import Geometry, chunk_geometry
from warplab.simulator.run.matrix_operations import MatrixOperations
from warplab.simulator.run.mbarriers import MBarriers
from warplab.simulator.run.printf import Printed
from warplab.simulator.run.scheduler import POLICIES, Scheduler
from warplab.simulator.run.system_services import System
from warplab.simulator.run.warp_operations import WarpOperations
from warplab.simulator.translate.special_registers import SPECIAL
from warplab.simulator.translate.translation import Translation, translate

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED_BYTES = 227 * 1024  # compute capability 9.0
MAX_LOCAL_BYTES = 512 * 1024  # a thread
CHUNK_BYTES = 1 << 29  # of the blocks that run at a time, about


@dataclass(frozen=True)
class Options:
    """How a launch is simulated.

    `checks`: test every access; `races`: and look for data races. `volatile_orders`: volatile accesses are meant to
    synchronise and are no races themselves; without it those to shared memory are, like any others.
    `counters`: count, and keep what the first `trace_warps` warps did, at most `trace_events` accesses and steps.
    `instruction_limit`: thread instructions of the launch, and an eighth of it of a chunk; `path_limit`: instructions
    along one chunk's way; beyond either the launch is taken for endless. `chunk_lanes`: threads run at a time, about.
    `scheduling`: "volta" (a program counter a thread) or "pascal" (one a warp); see `scheduler`.
    `cooperative`: all blocks run together and can wait for one another (see `cooperative`).
    `sample_blocks`: run about so many blocks of a larger grid only and scale the counters (see `sampling`). Memory then
    holds the results of those blocks alone, and checks see nothing of the others; not for kernels whose blocks wait
    for one another.
    """

    checks: bool = True
    races: bool = True
    volatile_orders: bool = True
    counters: bool = True
    trace_warps: int = 4
    trace_events: int = 4096
    instruction_limit: int = 2**33
    path_limit: int = 1_000_000
    chunk_lanes: int = 1 << 15
    scheduling: str = "volta"
    cooperative: bool = False
    sample_blocks: int | None = None

    def __post_init__(self) -> None:
        if self.sample_blocks is not None and self.sample_blocks < 1:
            raise ValueError(f"sample_blocks must be at least 1, not {self.sample_blocks}")
        if self.scheduling not in POLICIES:
            raise ValueError(f"scheduling must be one of {POLICIES}, not {self.scheduling!r}")


class Device:
    """A simulated GPU. `memory_bytes`: its memory; pages take host memory only once they are touched.

    `echo`: whether what kernels print also goes to standard output.
    """

    echo = True

    def __init__(self, memory_bytes: int = 16 << 30) -> None:
        self.memory = DeviceMemory(memory_bytes)
        self._variables: dict[int, tuple[Program, dict[str, int]]] = {}
        self.heap = Heap(self.memory)
        self.printed = Printed()
        self.parameters: int | None = None  # where the running kernel's parameters lie, if it takes their address
        self.workspace: int | None = None  # of a cooperative launch
        self.launches = self.ticks = 0  # so far; for %gridid and %globaltimer

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
        """Run a kernel and wait for it.

        `grid`, `block`: up to three positive ints. `params`: the bytes of each parameter, in order. `shared_bytes`:
        dynamic shared memory of a block. Returns the profile (empty counts with `counters=False`). Raises
        InvalidLaunch, UnsupportedInstruction, or what the kernel did wrong.
        """
        options = options or Options()
        grid, block = self._check_launch(entry, grid, block, params, shared_bytes)
        translation = translate(entry)
        buffer = bytearray(max((p.offset + p.size for p in entry.params), default=0))
        for param, data in zip(entry.params, params, strict=True):
            buffer[param.offset : param.offset + param.size] = data
        threads = block[0] * block[1] * block[2]
        total = grid[0] * grid[1] * grid[2]
        step = max(1, min(options.chunk_lanes // threads, self._room_for(translation, threads, shared_bytes)))
        if cooperative.is_wanted(translation, options.cooperative, total, threads):
            step, options = total, replace(options, sample_blocks=None)
            self.workspace = cooperative.workspace(self.memory)
        runs = sampling.split(total, step, options.sample_blocks)
        tally = None
        if options.counters:
            new = functools.partial(Counting, translation, self.memory, options.trace_warps, options.trace_events)
            tally = sampling.Tally(new, runs, total)
        races = None
        if options.checks and options.races and 1 < total * threads < 2**31:  # which its records can number
            races = Races(translation, threads, total, options.volatile_orders)
        profile = LaunchProfile(entry.name, grid, block, sources=entry.program.sources)
        profile.static = {"shared_bytes": translation.shared_bytes + shared_bytes}
        executed = 0
        self.launches += 1
        try:
            with np.errstate(all="ignore"):
                for number, run in enumerate(runs):
                    geometry = chunk_geometry(grid, block, run.first, run.blocks)
                    counting = tally.of(number) if tally is not None else None
                    chunk = Chunk(
                        self, entry, translation, geometry, bytes(buffer), shared_bytes, options, counting, races
                    )
                    executed += Scheduler(
                        chunk,
                        # One chunk of a launch that ends takes but a small part of the whole.
                        min(options.instruction_limit - executed, options.instruction_limit // 8),
                        options.path_limit,
                        options.scheduling,
                    ).run()
                    chunk.copies.finish()
                    self.ticks += chunk.clock + chunk.system.slept
                    chunk.free()
                    if races is not None:
                        races.finish()
        except SimulatorError as error:
            if tally is not None:
                tally.ends.fill(profile)
                error.profile = profile
            raise
        finally:
            profile.output = self._end_launch()
        if tally is not None:
            tally.fill(profile)
        return profile

    @staticmethod
    def _room_for(translation: Translation, threads: int, shared_bytes: int) -> int:
        """Blocks whose shared memory, local memory and registers take CHUNK_BYTES together."""
        if translation.local_bytes > MAX_LOCAL_BYTES:
            raise InvalidLaunch(
                f"{translation.local_bytes:,} bytes of local memory a thread; at most {MAX_LOCAL_BYTES:,}",
                reason="Is a large array declared inside the kernel?",
            )
        thread = translation.local_bytes + 8 * len(translation.slots)
        return CHUNK_BYTES // max(1, translation.shared_bytes + shared_bytes + threads * thread)

    def _end_launch(self) -> str:
        """Free the launch's own memory; show what the kernel printed, also one that failed, and return it."""
        for address in (self.parameters, self.workspace):
            if address is not None:
                self.memory.free(address)
        self.parameters = self.workspace = None
        output = self.printed.take()
        if output and self.echo:
            sys.stdout.write(output)
        return output

    def variable_address(self, program: Program, name: str) -> int:
        """Address of a module's `.global` or `.const` variable, placed in memory at its first use."""
        _, addresses = self._variables.setdefault(id(program), (program, {}))
        if name not in addresses:
            variable = program.variables.get(name) or next(
                e.variables[name] for e in program.entries.values() if name in e.variables
            )
            address = self.memory.allocate(variable.size, name=name)
            if variable.initial is not None:
                self.memory.view(address, len(variable.initial))[:] = np.frombuffer(variable.initial, np.uint8)
            self.memory.mark_initialized(address, variable.size)  # static variables start at zero
            addresses[name] = address
            for offset, symbol in variable.pointers:
                other, _, distance = symbol.partition("+")
                known = other in program.functions
                value = program.function_address(other) if known else self.variable_address(program, other)
                self.memory.view(address + offset, 8).view(np.uint64)[0] = value + int(distance or "0", 0)
        return addresses[name]

    @staticmethod
    def _check_launch(entry: Entry, grid, block, params, shared_bytes: int) -> tuple[Index3, Index3]:
        shapes = []
        for what, shape, limits in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
            try:
                shape = tuple(int(n) for n in shape)
            except (TypeError, ValueError):
                raise InvalidLaunch(f"the {what} must be up to three integers, not {shape!r}") from None
            if not 1 <= len(shape) <= 3:
                raise InvalidLaunch(f"the {what} has {len(shape)} dimensions; a {what} has one to three")
            shape += (1,) * (3 - len(shape))
            for axis, n, limit in zip("xyz", shape, limits, strict=True):
                if not 1 <= n <= limit:
                    raise InvalidLaunch(
                        f"{what} dimension {axis} is {n:,}; it must be from 1 to {limit:,}",
                        reason="Use smaller blocks and a larger grid." if what == "block" and n > limit else "",
                    )
            shapes.append(shape)
        grid, block = shapes
        threads = block[0] * block[1] * block[2]
        if threads > MAX_THREADS:
            raise InvalidLaunch(
                f"a block of {block[0]} × {block[1]} × {block[2]} = {threads:,} threads; "
                f"a GPU runs at most {MAX_THREADS:,}",
                reason="Use smaller blocks and a larger grid.",
            )
        limit = entry.max_threads
        if limit is not None and threads > limit[0] * limit[1] * limit[2]:
            raise InvalidLaunch(
                f"{threads:,} threads a block; the kernel was compiled for at most {limit[0] * limit[1] * limit[2]:,} "
                "(__launch_bounds__)"
            )
        if shared_bytes < 0 or entry.shared_bytes + shared_bytes > MAX_SHARED_BYTES:
            raise InvalidLaunch(
                f"{entry.shared_bytes + shared_bytes:,} bytes of shared memory a block; at most {MAX_SHARED_BYTES:,}"
            )
        if len(params) != len(entry.params):
            raise InvalidLaunch(f"kernel {entry.name} takes {len(entry.params)} parameters, {len(params)} were given")
        for number, (param, data) in enumerate(zip(entry.params, params, strict=True)):
            if len(data) != param.size:
                raise InvalidLaunch(
                    f"parameter {number} of kernel {entry.name} has {param.size} bytes (.{param.type}), "
                    f"{len(data)} were given"
                )
        return grid, block


class Chunk:
    """The state of the thread blocks that run together. Functions made by `translate` call its methods."""

    window_shared = WINDOW_SHARED
    window_local = WINDOW_LOCAL
    waits_in_vain = False  # the lanes waited for others (mbarrier, lock, nanosleep): a good time for these to run

    def __init__(
        self,
        device: Device,
        entry: Entry,
        translation: Translation,
        geometry: Geometry,
        params: bytes,
        dynamic_shared_bytes: int,
        options: Options,
        counting: Counting | None,
        races: Races | None,
    ) -> None:
        self.device, self.entry, self.translation, self.geometry = device, entry, translation, geometry
        self.blocks, self.threads = geometry.blocks, geometry.threads
        self.lanes = self.blocks * self.threads
        self.first_block = geometry.first
        self.block_of, self.warp_of, self.warp_sizes = (
            geometry.block_of,
            geometry.warp_of,
            geometry.warp_sizes,
        )
        self.lane_of = geometry.lane_of
        self.warps = self.warp_sizes.shape[0]
        # Worth a look for patterns in addresses where they are counted or checked.
        watched = counting is not None or options.checks
        self.full_warps = self.warps if watched and self.lanes == WARP_SIZE * self.warps else 0
        self.warp, self.matrix = WarpOperations(self), MatrixOperations(self)
        self.everyone = Group(self, None)
        self.group = self.everyone
        self.clock = 0  # instructions on the chunk's way so far
        self.system = System(self)
        self.params = params
        self.dynamic_shared_bytes = dynamic_shared_bytes
        self.static_shared_bytes = -(-translation.shared_bytes // 16) * 16
        self.own_shared_bytes = translation.shared_bytes
        if dynamic_shared_bytes:
            self.own_shared_bytes = self.static_shared_bytes + dynamic_shared_bytes
        self.shared_stride = -(-self.own_shared_bytes // 128) * 128
        self.local_stride = -(-translation.local_bytes // 16) * 16
        self.counting, self.races = counting, races
        self.access = Accessor(
            device.memory,
            self.shared_stride,
            self.local_stride,
            self,
            Checks(self) if options.checks else None,
            counting,
        )
        self.atomics = Atomics(self.access)
        self.copies, self.mbarriers = AsynchronousCopies(self), MBarriers(self)
        if RESERVED in translation.shared_offsets:
            self.access.clear_shared(translation.shared_offsets[RESERVED], RESERVED_BYTES)
        if races is not None:
            races.start(self)
        self.load, self.store = self.access.load, self.access.store
        self.load_vector, self.store_vector = self.access.load_vector, self.access.store_vector
        zeros = {dtype: np.zeros(1, dtype if dtype != "b1" else "?") for dtype in set(translation.slot_dtypes)}
        self.registers = [
            geometry.special[name] if name in SPECIAL else zeros[dtype]
            for name, dtype in zip(translation.slots, translation.slot_dtypes, strict=True)
        ]
        self._own: dict[int, np.ndarray] = {}  # registers whose array only they hold, so that it may be written into
        self._places: dict[tuple[str, int], np.ndarray] = {}

    @functools.cached_property
    def all_lanes(self) -> np.ndarray:
        return np.arange(self.lanes)

    def free(self) -> None:
        """Its blocks have ended: give back their memory at once, and not when Python finds the chunk unused."""
        self.access.free()
        self.registers.clear()

    # -- called by translated blocks -----------------------------------------------------------------------

    @staticmethod
    def at(values: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        return values if values.shape[0] == 1 else values.take(lanes)

    def scatter(self, slot: int, lanes: np.ndarray, values: np.ndarray) -> None:
        old = self.registers[slot]
        if self._own.get(slot) is not old:
            new = np.empty(self.lanes, old.dtype)
            new[:] = old
            self.registers[slot] = self._own[slot] = old = new
        old[lanes] = values

    def param(self, offset: int, dtype) -> np.ndarray:
        return np.frombuffer(self.params, dtype, 1, offset)

    def param_address(self, offset: int) -> np.ndarray:
        device = self.device
        if device.parameters is None:
            device.parameters = device.memory.allocate(len(self.params), "kernel parameters")
            device.memory.view(device.parameters, len(self.params))[:] = np.frombuffer(self.params, np.uint8)
            device.memory.mark_initialized(device.parameters, len(self.params))
        return np.array([device.parameters + offset], np.uint64)

    def fence(self, lanes) -> None:
        if self.races is not None:
            self.races.fence(lanes)

    def sync_warp(self, lanes) -> None:
        if self.races is not None:
            self.races.sync_warp(lanes)

    def addresses(self, base: np.ndarray, lanes) -> Addresses:
        return Addresses(base, self.full_warps if lanes is None else 0)

    def shared_address(self, offset: int) -> np.ndarray:
        return self._place("shared", offset, self.block_of, self.shared_stride)

    def local_address(self, offset: int) -> np.ndarray:
        return self._place("local", offset, self.all_lanes, self.local_stride)

    def _place(self, space: str, offset: int, owner: np.ndarray, stride: int) -> np.ndarray:
        """Where each lane finds its own copy of a variable in the chunk's array."""
        key = (space, offset)
        if key not in self._places:
            one = self.blocks == 1 if space == "shared" else self.lanes == 1
            self._places[key] = (owner[:1] if one else owner).astype(np.uint64) * np.uint64(stride) + np.uint64(offset)
        return self._places[key]

    def variable_address(self, name: str) -> np.ndarray:
        return np.array([self.device.variable_address(self.entry.program, name)], np.uint64)

    # -- for checks and errors -----------------------------------------------------------------------------

    def own_memory(self, space: str, lanes) -> tuple[np.ndarray, int]:
        """Start of each lane's shared or local memory, and its size in bytes."""
        if space == "shared":
            start, size = self.shared_address(0), self.own_shared_bytes
        else:
            start, size = self.local_address(0), self.local_stride
        return (start if lanes is None else self.at(start, lanes)), size

    def thread_index(self, thread: int) -> tuple[Index3, Index3]:
        """Block index and thread index of a thread, counted through the whole grid."""
        return self.indices(thread - self.first_block * self.threads)

    def indices(self, lane: int) -> tuple[Index3, Index3]:
        """Block index and thread index of a lane."""

        def split(n: int, shape: Index3) -> Index3:
            return n % shape[0], n // shape[0] % shape[1], n // (shape[0] * shape[1])

        block, thread = divmod(lane, self.threads)
        return split(self.first_block + block, self.geometry.grid), split(thread, self.geometry.block)

    def where(self, site, lane: int) -> dict:
        """Place of a memory access, for errors."""
        return self.where_line(site.where, lane)

    def where_instruction(self, instruction, lane: int) -> dict:
        return self.where_line(instruction.where, lane)

    def where_block(self, block, lane: int) -> dict:
        last = block.last if block.last is not None else next(iter(block.body), None)
        return self.where_line(last.where if last is not None else self.translation.block_where[block.index], lane)

    def where_line(self, where, lane: int) -> dict:
        block, thread = self.indices(lane)
        source = self.entry.program.source_line(where)
        return {
            "kernel": self.entry.name,
            "block": block,
            "thread": thread,
            "file": where.file or None,
            "line": where.line or None,
            "source": source,
        }


_devices: list[Device] = []


def default_device() -> Device:
    """The device that the stand-ins for numba.cuda and cupy use."""
    if not _devices:
        _devices.append(Device())
    return _devices[-1]


@contextmanager
def using_device(device: Device) -> Iterator[None]:
    """`device` is the default one inside."""
    _devices.append(device)
    try:
        yield
    finally:
        _devices.remove(device)
