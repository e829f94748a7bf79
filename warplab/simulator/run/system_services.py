"""What a kernel asks of the system: printf, assert, clocks, special registers, memory, the kind of an address."""

import itertools
from typing import Any

import numpy as np

from warplab.simulator.errors import AssertFailed, IllegalAddress, SimulatorError
from warplab.simulator.memory.device_memory import ORIGIN, WINDOW_LOCAL, WINDOW_SHARED
from warplab.simulator.ptx.program import Where
from warplab.simulator.ptx.recursion import CALLER, STACK_BYTES
from warplab.simulator.translate.special_registers import REGISTERS

_MAX_STRING = 1 << 16
_STACK = (
    "Does the recursion end? A GPU's frames have other sizes, and its stack has 1,024 bytes per thread unless the host "
    "sets cudaLimitStackSize; there an overflow may go unnoticed."
)
_PRINTF = "Does the format have more conversions than there are arguments?"

_NOWHERE = {
    "call": (
        "a call through a pointer that holds no function",
        "Did this module's device code set the pointer, or make the object with virtual functions? Addresses of host "
        "functions, and objects made on the host, are of no use here.",
    ),
    "jump": ("a jump (brx.idx) beyond its list of labels", "Is the number that a switch was compiled for in range?"),
}


class SystemServices:
    """Called by translated blocks. `lanes` are the group's, None for all."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        self.clock = self.slept = 0

    @property
    def cycles(self) -> int:
        """Return instructions so far, of this launch and those before it."""
        return self.chunk.device.ticks + self.clock

    @property
    def now(self) -> int:
        return self.cycles + self.slept

    def register(self, name: str, ahead: int, lanes) -> np.ndarray:
        """Return the value of a special register. `ahead`: later instructions of the block, left out of its clock."""
        self.clock = self.chunk.clock - ahead
        dtype, value = REGISTERS[name]
        values = np.atleast_1d(np.asarray(value(self.chunk), "?" if dtype == "b1" else dtype))
        return values if lanes is None else self.chunk.at(values, lanes)

    def sleep(self, nanoseconds: np.ndarray) -> None:
        """Execute nanosleep: %globaltimer advances, and others get their turn."""
        self.slept += int(np.max(nanoseconds))
        self.chunk.waits_in_vain = True

    def breakpoint(self, lanes, at: Where) -> None:
        """Execute brkpt: without a debugger the launch fails, as on a GPU."""
        reason = "Only a debugger can continue from it: print values by printf (in Numba print()), and remove it."
        raise self._error(lanes, at, 0, "the kernel hit a breakpoint (brkpt)", reason)

    def invalid(self, kind: str, lanes, at: Where) -> None:
        """Fail for a call or a jump to nowhere."""
        raise self._error(lanes, at, 0, *_NOWHERE[kind])

    def map_rank(self, address: np.ndarray, rank: np.ndarray, lanes, at: Where) -> np.ndarray:
        """Return where a shared variable lies in block `rank` of the cluster (mapa). Addresses are generic or not."""
        chunk, size = self.chunk, self.chunk.cluster_blocks
        if (rank >= size).any():
            blocks = "one block" if size == 1 else f"{size} blocks"
            what = f"the kernel asks for the shared memory of block {int(rank.max())} of a cluster of {blocks}"
            place = int(np.argmax(rank >= size)) if rank.shape[0] > 1 else 0
            raise self._error(lanes, at, place, what, "Without __cluster_dims__ every block is a cluster of its own.")
        distance = (rank.astype(np.int64) - self.rank_of(address)) * chunk.shared_stride
        return address + distance.astype(address.dtype)

    def rank_of(self, address: np.ndarray) -> np.ndarray:
        """Return the rank in its cluster of the block that a shared address belongs to, int64 (getctarank)."""
        offset = address.astype(np.int64) & (WINDOW_SHARED - 1)
        return offset // max(1, self.chunk.shared_stride) % self.chunk.cluster_blocks

    def _error(self, lanes, at: Where, place: int, *what: Any, **found: Any) -> SimulatorError:
        """Return the error of the lane at `place` in the group, in line `at` (`Chunk.error`)."""
        return self.chunk.error(Where(*at), self.chunk.lane(place, lanes), *what, **found)

    def enter(self, frame: np.ndarray, size: int, room: int, lanes, at: Where) -> np.ndarray:
        """Begin a recursive function: return where the next frame would. `room`: bytes that a call stores there."""
        start, nbytes = self.chunk.own_memory("local", lanes)
        following = frame + np.uint64(size)
        over = following + np.uint64(room) > start + np.uint64(nbytes)
        if over.any():
            place = int(np.argmax(over))
            first = int(start[place if start.shape[0] > 1 else 0]) + nbytes - STACK_BYTES - room
            depth, words = 1, self.chunk.access.views["local"]["u8"]
            here = int(frame[place if frame.shape[0] > 1 else 0])
            while here > first:
                depth, here = depth + 1, int(words[(here + CALLER) // 8])
            what = (
                f"call stack overflow: the thread is {depth:,} calls deep in recursive functions, whose frames fill "
                f"the {STACK_BYTES:,} bytes that each thread has for them"
            )
            raise self._error(lanes, at, place, what, _STACK)
        return following

    def malloc(self, size: np.ndarray, alignment: np.ndarray | None, lanes, line: int) -> np.ndarray:
        """Return each lane's new memory, 0 where the heap is full. At multiples of 512, so `alignment` holds."""
        heap, name = self.chunk.device.heap, f"malloc, line {line}"
        sizes = np.broadcast_to(size, self.chunk.group.count)
        return np.array([heap.allocate(nbytes, name) for nbytes in sizes.tolist()], np.uint64)

    def free(self, address: np.ndarray, lanes, at: Where) -> None:
        self.chunk.access.forget_allocations()
        for place, start in enumerate(np.broadcast_to(address, self.chunk.group.count).tolist()):
            if start == 0:
                continue
            try:
                self.chunk.device.heap.free(start)
                for notify in self.chunk.observers.freed:
                    notify(start)
            except KeyError:
                before = self.chunk.device.memory.find_freed(start)
                what, reason = "which malloc did not return", "Only what malloc or new returned can be freed."
                if before:
                    what, reason = "which has been freed before", "Is the memory freed by several threads?"
                what = f"free of {start:#x}, {what}"
                raise self._error(lanes, at, place, what, reason, IllegalAddress, address=start) from None

    def is_space(self, space: str, address: np.ndarray, cluster: bool, lanes) -> np.ndarray:
        """Tell which generic addresses lie in `space` (isspacep); `cluster`: or in any shared memory of the cluster."""
        device, program = self.chunk.device, self.chunk.entry.program
        if space == "shared" and self.chunk.cluster_blocks > 1:
            own = self.chunk.block_of if lanes is None else self.chunk.block_of[lanes]
            block = (address - np.uint64(WINDOW_SHARED)).astype(np.int64) // max(1, self.chunk.shared_stride)
            size = self.chunk.cluster_blocks if cluster else 1
            return self._within(address, WINDOW_SHARED) & (block // size == own // size)
        if space in ("shared", "local"):
            return self._within(address, WINDOW_SHARED if space == "shared" else WINDOW_LOCAL)
        if space == "param":
            parameters = self.chunk.launch.parameters
            allocation = device.memory.find(parameters) if parameters is not None else None
            return _inside(address, [allocation] if allocation is not None else [])
        constants = [
            device.memory.find(device.variable_address(program, name))
            for name, variable in program.variables.items()
            if variable.space == "const"
        ]
        constant = _inside(address, constants)
        if space == "const":
            return constant
        return ~(self._within(address, WINDOW_SHARED) | self._within(address, WINDOW_LOCAL) | constant)

    @staticmethod
    def _within(address: np.ndarray, window: int) -> np.ndarray:
        return (address >= np.uint64(window)) & (address < np.uint64(2 * window))

    # -- printf and assert -----------------------------------------------------------------------------------------

    def printf(self, formats: np.ndarray, arguments: np.ndarray, lanes, file: str, line: int) -> np.ndarray:
        """Record what the lanes print (vprintf). Returns the number of arguments of each lane's format."""
        count = self.chunk.group.count
        where = Where(file, line)
        if formats.shape[0] == 1:
            return np.array([self._printf(int(formats[0]), arguments, lanes, where, count)], np.uint32)
        result = np.empty(count, np.uint32)
        starts = np.concatenate(([0], np.flatnonzero(formats[1:] != formats[:-1]) + 1, [count]))
        for start, end in itertools.pairwise(starts):  # a run of lanes with the same format
            own = arguments if arguments.shape[0] == 1 else arguments[start:end]
            own_lanes = np.arange(start, end) if lanes is None else lanes[start:end]
            result[start:end] = self._printf(int(formats[start]), own, own_lanes, where, end - start)
        return result

    def _printf(self, address: int, arguments: np.ndarray, lanes, where: Where, count: int) -> int:
        if not address:
            return 0xFFFFFFFF
        text = self._string(address, lanes, where)
        return self.chunk.launch.printed.add(
            text,
            lambda offset, dtype: self._read(arguments + np.uint64(offset), dtype),
            lambda addresses: self._strings(addresses, lanes, where),
            count,
        )

    def assert_fail(self, expression, file, line, function, lanes, at: Where) -> None:
        """End the kernel with an error (__assertfail)."""
        where, words = Where(*at), (expression, file, function)
        expression, name, function = (self._string(int(a[0]), lanes, where).decode(errors="replace") for a in words)
        where = where if at[1] else Where(name, int(line[0]))
        what, lane = f"assertion failed: {expression} (in {function})", self.chunk.lane(0, lanes)
        raise self.chunk.error(where, lane, what, kind=AssertFailed, expression=expression)

    def _strings(self, addresses: np.ndarray, lanes, where: Where) -> list[bytes]:
        known = {a: self._string(a, lanes, where) if a else b"(null)" for a in set(addresses.tolist())}
        return [known[a] for a in addresses.tolist()]

    def _string(self, address: int, lanes, where: Where) -> bytes:
        """Return the bytes up to the first zero."""
        view, places = self._place(np.array([address], np.uint64))
        start = int(places[0])
        if view is self.chunk.access.views["global"]:
            allocation = self.chunk.device.memory.find(address)
            if allocation is None:
                what = f"a string at {address:#x} lies outside every array"
                reason = "`%s` of printf, and an assertion, take a char* that ends with a zero byte."
                raise self.chunk.error(where, self.chunk.lane(0, lanes), what, reason, IllegalAddress, address=address)
            end = start + min(allocation.end - address, _MAX_STRING)
        else:
            end = start + _MAX_STRING
        return view["u1"][start:end].tobytes().partition(b"\0")[0]

    def _read(self, addresses: np.ndarray, dtype: str) -> np.ndarray:
        view, place = self._place(addresses)
        try:
            return view[dtype].take(place // int(dtype[1:]))
        except IndexError:
            raise IllegalAddress("printf reads arguments that it was not given", reason=_PRINTF) from None

    def _place(self, addresses: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the views of the space in which generic addresses lie, and byte numbers there."""
        views = self.chunk.access.views
        for space, window in (("shared", WINDOW_SHARED), ("local", WINDOW_LOCAL)):
            if self._within(addresses[:1], window).all():
                return views[space], (addresses - np.uint64(window)).view(np.int64)
        return views["global"], addresses.view(np.int64) & (ORIGIN - 1)


def _inside(address: np.ndarray, allocations: list) -> np.ndarray:
    result = np.zeros(address.shape, bool)
    for allocation in allocations:
        result |= (address >= np.uint64(allocation.address)) & (address < np.uint64(allocation.end))
    return result
