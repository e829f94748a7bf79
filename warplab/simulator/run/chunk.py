"""`Chunk`: the state of the thread blocks that run together, and the places in the source that errors name."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import Index3, SimulatorError
from warplab.simulator.memory.device_memory import WINDOW_LOCAL, WINDOW_SHARED, Allocation
from warplab.simulator.memory.lane_access import Accessor, Addresses
from warplab.simulator.memory.lane_groups import BankPassCache, Group
from warplab.simulator.observer import Observer, Observers
from warplab.simulator.ptx.parser import RESERVED, RESERVED_BYTES
from warplab.simulator.ptx.program import Entry
from warplab.simulator.run.async_copies import AsynchronousCopies
from warplab.simulator.run.atomics import Atomics
from warplab.simulator.run.geometry import Geometry
from warplab.simulator.run.matrix_operations import MatrixOperations
from warplab.simulator.run.mbarriers import MBarriers
from warplab.simulator.run.options import Options
from warplab.simulator.run.printf import Printed
from warplab.simulator.run.system_services import SystemServices
from warplab.simulator.run.tensor_copies import TensorCopies
from warplab.simulator.run.tensor_memory import TensorMemory
from warplab.simulator.run.textures import Surfaces, Textures
from warplab.simulator.run.undefined_values import UndefinedValues
from warplab.simulator.run.warp_operations import WarpOperations
from warplab.simulator.run.warpgroups import Warpgroups
from warplab.simulator.translate.special_registers import SPECIAL
from warplab.simulator.translate.translation import Translation

if TYPE_CHECKING:
    from warplab.simulator.run.device import Device


RANK_BYTES = 1 << 24  # from the shared memory of a block to that of the next in its cluster, as a GPU has it


@dataclass(eq=False)
class LaunchState:
    """What the chunks of one launch share, and no other launch has.

    `params`: the bytes of the parameters. `parameters`, `workspace`: where in device memory these are, and the barrier
    of a cooperative launch; None if the kernel has not asked for them. `latest`: where the latest access of each memory
    instruction lay, by number. `chunks_ahead`: how many of its size are still to run. `log`: what NumPy ran, and why.
    """

    params: bytes
    parameters: int | None = None
    workspace: int | None = None
    latest: dict[int, Allocation] = field(default_factory=dict)
    observers: Observers | None = None  # of the latest chunk
    chunks_ahead: float = 0
    log: dict[str, None] = field(default_factory=dict)
    undefined: UndefinedValues = field(default_factory=UndefinedValues)
    printed: Printed = field(default_factory=Printed)


class Chunk:
    """The state of the thread blocks that run together. Translated blocks of code call its methods."""

    window_shared = WINDOW_SHARED
    window_local = WINDOW_LOCAL
    observers = Observers(())
    barriers: Any = None  # where lanes wait
    races: Any = None  # who looks for races, if anybody does
    waits_in_vain = False  # lanes wait for others (mbarrier, lock, nanosleep), whose turn it is
    # Made where a kernel calls them.
    atomics = functools.cached_property(Atomics)
    copies = functools.cached_property(AsynchronousCopies)
    matrix = functools.cached_property(MatrixOperations)
    mbarriers = functools.cached_property(MBarriers)
    surfaces = functools.cached_property(Surfaces)
    system = functools.cached_property(SystemServices)
    tensor_memory = functools.cached_property(TensorMemory)
    tensors = functools.cached_property(TensorCopies)
    textures = functools.cached_property(Textures)
    warp = functools.cached_property(WarpOperations)
    warpgroups = functools.cached_property(Warpgroups)

    def __init__(
        self,
        device: Device,
        entry: Entry,
        translation: Translation,
        geometry: Geometry,
        launch: LaunchState,
        dynamic_shared_bytes: int,
        options: Options,
        passes: BankPassCache,
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
        self.cluster_blocks = math.prod(geometry.cluster)  # whole clusters run together
        self.explicit_cluster = entry.cluster is not None or options.cluster is not None
        self.warps = self.warp_sizes.shape[0]
        self.options, self.checked, self.passes = options, options.checks, passes
        self.full_warps = 0
        self.everyone = Group(self, None)
        self.group = self.everyone
        self.clock = 0  # instructions along the chunk's path so far
        self.launch, self.params = launch, launch.params
        self.dynamic_shared_bytes = dynamic_shared_bytes
        alignment = translation.dynamic_alignment
        self.static_shared_bytes = -(-translation.shared_bytes // alignment) * alignment
        self.own_shared_bytes = translation.shared_bytes
        if dynamic_shared_bytes:
            self.own_shared_bytes = self.static_shared_bytes + dynamic_shared_bytes
        # Where TMA, wgmma and other blocks see it, shared memory begins as on a GPU: swizzles repeat after 1024 bytes.
        unit = 1024 if translation.asynchronous or self.cluster_blocks > 1 else 128
        if translation.masks_ranks and self.cluster_blocks > 1:
            unit = RANK_BYTES
        self.shared_stride = -(-self.own_shared_bytes // unit) * unit
        self.local_stride = -(-translation.local_bytes // 16) * 16
        self.access = Accessor(device.memory, self.shared_stride, self.local_stride, self)
        if RESERVED in translation.shared_offsets:
            self.access.clear_shared(translation.shared_offsets[RESERVED], RESERVED_BYTES)
        self.load, self.store = self.access.load, self.access.store
        self.load_vector, self.store_vector = self.access.load_vector, self.access.store_vector
        self.store_zeros = self.access.store_zeros
        zeros = {dtype: np.zeros(1, dtype if dtype != "b1" else "?") for dtype in set(translation.slot_dtypes)}
        self.registers = [
            geometry.special[name] if name in SPECIAL else zeros[dtype]
            for name, dtype in zip(translation.slots, translation.slot_dtypes, strict=True)
        ]
        self._own: dict[int, np.ndarray] = {}  # arrays that only one register holds, and that may be written in place
        self._places: dict[tuple[str, int], np.ndarray] = {}

    def observe(self, observers: Sequence[Observer]) -> None:
        """Let these observers see what happens from now on."""
        if observers:
            watching = [observer.watch(self) for observer in observers]
            self.observers = self.launch.observers = Observers.of(watching, self.launch.observers)
        if self.observers.see_accesses and self.lanes == WARP_SIZE * self.warps:  # patterns pay off
            self.full_warps = self.warps

    @functools.cached_property
    def all_lanes(self) -> np.ndarray:
        return np.arange(self.lanes)

    def end(self) -> int:
        """Return for how many ticks the blocks, which have ended, ran. Raises SimulatorError where copies or tensor
        memory are left. Gives back their memory at once instead of when Python collects the chunk."""
        made = vars(self)
        for name in ("copies", "tensor_memory"):
            if name in made:
                made[name].finish()
        self.access.free()
        self.registers.clear()
        return self.clock + (self.system.slept if "system" in made else 0)

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
        launch, memory = self.launch, self.device.memory
        if launch.parameters is None:
            launch.parameters = memory.allocate(len(self.params), "kernel parameters")
            memory.view(launch.parameters, len(self.params))[:] = np.frombuffer(self.params, np.uint8)
            memory.mark_initialized(launch.parameters, len(self.params))
        return np.array([launch.parameters + offset], np.uint64)

    def generic_of_param(self, address: np.ndarray) -> np.ndarray:
        """Return the generic addresses of parameters: as they are, but for those of 32 bits, which count from the first
        parameter (LLVM's short pointers)."""
        return np.where(address >> np.uint64(32) == 0, address + self.param_address(0), address)

    def fence(self, lanes, scope: str) -> None:
        for notify in self.observers.fence:
            notify(lanes, scope)

    def proxy_fence(self, lanes, kind: str) -> None:
        for notify in self.observers.proxy_fence:
            notify(lanes, kind)

    def sync_warp(self, lanes) -> None:
        for notify in self.observers.sync_warp:
            notify(lanes)

    def addresses(self, base: np.ndarray, lanes) -> Addresses:
        return Addresses(base, self.full_warps if lanes is None else 0)

    def cut_addresses(self, base: np.ndarray, lanes) -> Addresses:
        """Return the addresses that 64 bits are in shared or local memory: the lower 32, with their sign as in
        `BlockWriter._widened`."""
        found = self.addresses(base, lanes)
        return found.like(base.astype("u4").view("i4").astype("i8").view("u8")) if found.high >> 32 else found

    def shared_address(self, offset: int) -> np.ndarray:
        return self._place("shared", offset, self.block_of, self.shared_stride)

    def local_address(self, offset: int) -> np.ndarray:
        return self._place("local", offset, self.all_lanes, self.local_stride)

    def _place(self, space: str, offset: int, owner: np.ndarray, stride: int) -> np.ndarray:
        """Return the address of each lane's own copy of a variable in the chunk's array."""
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
        """Return the block index and thread index of a thread that is numbered through the whole grid."""
        return self.indices(thread - self.first_block * self.threads)

    def indices(self, lane: int) -> tuple[Index3, Index3]:
        """Return the block index and thread index of a lane."""
        block, thread = divmod(lane, self.threads)
        x, y, _ = self.geometry.block
        return self.geometry.block_index(self.first_block + block), (thread % x, thread // x % y, thread // (x * y))

    def every(self, lanes) -> np.ndarray:
        """Return the numbers of a group's `lanes`, None for all."""
        return self.all_lanes if lanes is None else lanes

    def lane(self, place: int, lanes) -> int:
        """Return the lane at a place of a group's `lanes`, None for all."""
        return place if lanes is None else int(lanes[place])

    def error(
        self, at, lane: int, what: str, reason: str = "", kind: type[SimulatorError] = SimulatorError, **found
    ) -> SimulatorError:
        """Return the error of a lane at an instruction, site or place. `found`: more that this kind of error tells."""
        return kind(what, reason=reason, **self.where(at, int(lane)), **found)

    def where_block(self, block, lane: int) -> dict:
        last = block.last if block.last is not None else next(iter(block.body), None)
        return self.where(last if last is not None else self.translation.block_where[block.index], lane)

    def where(self, at, lane: int) -> dict:
        """Return what errors tell of a lane at an instruction, site or place in the source."""
        where = getattr(at, "where", at)
        block, thread = self.indices(lane)
        return {**self.entry.at(where), "block": block, "thread": thread}
