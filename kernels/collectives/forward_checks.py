"""The check of a kernel that forwards slices round a ring, on virtual devices.

Every device runs `forward(mine, next, arrived, passed, n, slices)` once. The root's data lies in its `mine`; `next` is
the buffer of the next device in the ring, and for the last device an array of its own. Block b of a device waits for
`arrived[s * blocks + b]` and sets `passed[s * blocks + b]`, the next device's `arrived`, when its part of slice s is
there. The root's flags are set before the launch.
"""

import itertools
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warplab import virtual_devices
from warplab.checks import Case, CheckFailed
from warplab.checks.counter_limits import Limits
from warplab.checks.errors import kind_of, line_of
from warplab.checks.kernel_run import KernelRun, Printed, counted
from warplab.checks.kernels import Language, kernel_name
from warplab.checks.session import device as session_device
from warplab.checks.session import fresh_seed
from warplab.checks.thread_work import ThreadWork
from warplab.launch.kernel_source import CudaSource
from warplab.simulator import DeviceDeadlock, DeviceRace, InstructionLimit, PeerAccess, SimulatorError, SimulatorFailure
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Lanes
from warplab.simulator.translate.block_writer import Site

BAND = 64  # elements before and after each array, which nobody may write
POISONS = (np.float32(np.nan), np.float32(-3))  # what stands in the buffers before: the result must not depend on it
_MEMORY = 16 << 20  # bytes: a judge of answers has little address space
_PATH = 100_000  # instructions of one thread, ten times what one that copies all alone would need
_FEED = CudaSource((Path(__file__).parent / "feed.cu").read_text(), "feed", file="feed.cu")
_LOOK_AT = {
    "no wait": "which flag says that the data is there, and how each thread that copies knows that it was set",
    "no barrier": "which thread looks at a flag or sets one, and what the other threads of its block know of it then",
    "narrow fence": "for whom the fence orders: for the threads of one device, or of all",
    "no fence before the flag": "what keeps a flag from being seen before the data",
    "no fence after the wait": "what keeps the data from being read before the flag",
    "narrow flag": "how the flag is stored and loaded: by an operation that other devices see?",
    "split word": "the size of the accesses on both sides: what is written in two parts may be seen half written",
    "volatile data": "what `volatile` does: each access is made. In which order others see two of them is left open",
    "plain flag": "the type of the flags: an ordinary variable may be loaded once and never again",
}

_BETWEEN = {"no wait": "no wait lies between the two accesses"}  # another thread may well have waited


class Ring(NamedTuple):
    """Where a kernel runs. `devices`: their numbers in the order of the ring, the root first.

    `gated`: the root sends a slice only when the last device has passed on the one before.
    """

    devices: tuple[int, ...]
    n: int
    slices: int
    gated: bool = False


_Shown = namedtuple("_Shown", "devices n slices root")  # as failures name a run


def check_forward(
    kernel: Any,
    rings: Sequence[Ring],
    launches: Sequence[tuple[int, int]],
    *,
    language: Language | None = None,
    seed: int | None = None,
) -> None:
    """Check a forwarding kernel on each ring with each launch (blocks, threads per block); raise CheckFailed.

    Asks for the root's data in every buffer, whatever stood there before, nothing written elsewhere, no race between
    devices, no deadlock, and for work that all threads share. Devices reach their own and the next one's memory.
    """
    name = kernel_name(kernel, language)
    seed = fresh_seed() if seed is None else seed
    printed = Printed()
    with printed.shown():
        for ring, (blocks, threads) in itertools.product(rings, launches):
            root = "begins a slice when the last has passed on the one before" if ring.gated else "has all at once"
            size: Any = _Shown(*ring[:3], root)
            run = KernelRun(kernel, name, Case({}, {}), size, blocks, threads, seed, 0.0, 0.0, printed=printed)
            data = 1 + np.random.default_rng([seed, ring.n]).permutation(ring.n).astype(np.float32)
            for poison in POISONS:
                with printed.taken():
                    _check(run, ring, data, poison)
    print(f"{name}: right for {counted(len(rings), 'ring')} with {counted(len(launches), 'launch shape')}.")


def _check(run: KernelRun, ring: Ring, data: np.ndarray, poison: np.float32) -> None:
    flags = ring.slices * run.blocks
    with virtual_devices(len(ring.devices), peer_access=_neighbours(ring), memory_bytes=_MEMORY) as devices:
        for each in devices:
            each._device.echo = session_device().echo  # where a class is graded, kernels print nothing
        order = [devices[number] for number in ring.devices]
        ends = [*order, order[-1]]
        buffers = [_Banded(device, np.full(ring.n, poison) if place else data) for place, device in enumerate(ends)]
        for banded in buffers:  # only the flags are flags: what is volatile in here needs the fences, too
            banded.holds_flags(False)
        # The flags that a device waits for, in its own memory; a gated root waits for those of the last.
        arrived = [
            _Banded(device, np.full(flags, not place and not ring.gated, np.uint32))
            for place, device in enumerate(ends)
        ]
        works = [_DataWork(flags.view) for flags in arrived[: len(order)]]
        try:
            for place, device in enumerate(order):
                fed = ring.gated and not place
                device.launch(
                    _FEED if fed else run.kernel,
                    run.grid,
                    run.block,
                    (
                        buffers[place].view,
                        buffers[place + 1].view,
                        arrived[-1 if fed else place].view,
                        arrived[place + 1].view,
                        np.int32(ring.n),
                        np.int32(ring.slices),
                    ),
                    observers=(works[place],),
                    trace_warps=0,
                    lanes_apart=True,
                    path_limit=_PATH,
                )
            devices.synchronize()
        except SimulatorError as error:
            raise _stopped(run, error) from None
        except (MemoryError, SimulatorFailure):  # says nothing about the kernel
            raise
        except (TypeError, ValueError) as error:
            raise run.failed(f"{run.name} cannot be launched.", got=str(error), kind="arguments") from None
        except Exception as error:  # the compilers raise classes of their own
            text = f"{type(error).__name__}: {error}"
            raise run.failed(f"{run.name} does not compile.", got=text, kind="compile") from None
        for place, banded in enumerate(buffers):
            _check_buffer(run, ring, place, data, poison, banded)
        for place, banded in enumerate(arrived):
            _check_flags(run, ring, place, banded)
        for place in range(int(ring.gated), len(order)):
            if place and works[place].read_only:  # the root of a ring without a gate reads what nobody writes
                problem = f"{run.name} loads as read-only data what another device writes while it runs."
                raise run.failed(problem, look_at="what `__restrict__` and `__ldg` promise of data", kind="race")
            try:
                _limits(ring, run).check(run, order[place].launches[0], works[place])
            except CheckFailed as failed:
                if "store" in failed.missed:
                    failed = failed.but(look_at=f"{failed.look_at}\nFlags count, too: one store per slice and block.")
                raise failed.at(_place(ring, place)) from None


def _neighbours(ring: Ring) -> set[tuple[int, int]]:
    """Return which device reaches whose memory: each that of the next; a gated root also the flags of the last."""
    pairs = set(zip(ring.devices, ring.devices[1:], strict=False))
    return pairs | {(ring.devices[0], ring.devices[-1])} if ring.gated else pairs


class _DataWork(ThreadWork):
    """The work of each thread, without its looks at the flags: how often it looks is not its choice."""

    def __init__(self, flags: Any) -> None:
        super().__init__()
        self._first, self._last = flags.data.ptr, flags.data.ptr + flags.nbytes
        self.read_only = False  # whether a load takes the path for data that nobody writes

    def load(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        self.read_only |= ".nc." in site.text
        at = addresses.base + np.uint64(site.offset % 2**64)
        if not ((at >= self._first) & (at < self._last)).all():
            super().load(site, space, addresses, lanes)


_MARKS = itertools.count()


class _Banded:
    """An array on a device between two bands that nobody may write."""

    def __init__(self, device: Any, values: np.ndarray) -> None:
        # Other numbers around each array: an element too many, copied from band to band, must show.
        self._band = (1000 * (1 + next(_MARKS) % 1000) + np.arange(BAND)).astype(values.dtype)
        self._memory = device._device.memory
        self._whole = device.asarray(np.concatenate([self._band, values, self._band]))
        self.view = self._whole[BAND : BAND + len(values)]

    def holds_flags(self, whether: bool) -> None:
        self._memory.find(self._whole.data.ptr).holds_flags = whether

    def written_around(self) -> bool:
        whole = self._whole.get()
        return bool((whole[:BAND] != self._band).any() or (whole[-BAND:] != self._band).any())


def _place(ring: Ring, place: int) -> str:
    if place == len(ring.devices):
        return f"device {ring.devices[-1]}, its second array"
    return f"device {ring.devices[place]}"


def _check_buffer(
    run: KernelRun, ring: Ring, place: int, data: np.ndarray, poison: np.float32, banded: _Banded
) -> None:
    _check_bands(run, f"the buffer of {_place(ring, place)}", banded)
    got = banded.view.get()
    wrong = np.flatnonzero(got != data)
    if place and np.array_equal(got, np.full(ring.n, poison), equal_nan=True):
        raise run.failed(
            f"{run.name}: the buffer of {_place(ring, place)} is wrong in {ring.n} of {ring.n} elements: nothing was "
            "written. Either the kernel is not written yet, or its result is never stored.",
            look_at="which thread comes to a store to `next`",
            kind="not written",
        )
    if wrong.size:
        at = int(wrong[0])
        part = next(s for s in range(ring.slices) if at < (s + 1) * ring.n // ring.slices)
        raise run.failed(
            f"{run.name}: the buffer of {_place(ring, place)} is wrong in {wrong.size} of {ring.n} elements.",
            expected=f"element {at}, in slice {part}, = {data[at]}",
            got=f"element {at} = {got[at]}",
            look_at="which elements of which slice a thread copies",
        )


def _check_flags(run: KernelRun, ring: Ring, place: int, banded: _Banded) -> None:
    _check_bands(run, f"the flags of {_place(ring, place)}", banded)
    got, right = banded.view.get(), int(place > 0 or not ring.gated)
    wrong = np.flatnonzero(got != right)
    if wrong.size:
        at = int(wrong[0])
        raise run.failed(
            f"{run.name}: {wrong.size} of {got.size} flags of {_place(ring, place)} are wrong at the end.",
            expected=f"flag {at} (slice {at // run.blocks}, block {at % run.blocks}) = {right}",
            got=f"flag {at} = {got[at]}",
            look_at="which flag a block sets, and to what",
        )


def _check_bands(run: KernelRun, what: str, banded: _Banded) -> None:
    if banded.written_around():
        raise run.failed(
            f"{run.name} writes before or after {what}.", look_at="the index of each store", kind="outside"
        )


def _limits(ring: Ring, run: KernelRun) -> Limits:
    """Allow each element one load and one store, by neighbouring threads, each thread its share; and the flags."""
    lengths = [(s + 1) * ring.n // ring.slices - s * ring.n // ring.slices for s in range(ring.slices)]
    share = sum(-(-length // run.threads) for length in lengths)
    warps = -(-run.threads_per_block // WARP_SIZE) * run.blocks
    # Lanes that wait each for itself go on one after another, and come together again.
    requests = sum(2 * (-(-length // WARP_SIZE) + warps) for length in lengths) + ring.slices * run.blocks
    return Limits(
        {
            "global_store_bytes": 4 * (ring.n + ring.slices * run.blocks),
            "global_store_requests": requests,
            "atomics": ring.slices * run.blocks,
        },
        per_thread={"bytes_loaded": 4 * share, "bytes_written": 4 * (share + ring.slices)},
    )


def _stopped(run: KernelRun, error: SimulatorError) -> CheckFailed:
    """Return the failure for what the simulator found: of a race the cause, but not the cure."""
    if isinstance(error, DeviceRace):
        return run.failed(
            f"{run.name} has a race between devices: {_BETWEEN.get(error.cause, error.cause)}.",
            got=_without_cure(error),
            look_at=_LOOK_AT.get(error.cause, ""),
            kind="race",
            line=line_of(error),
        )
    if isinstance(error, DeviceDeadlock):
        return run.failed(
            f"{run.name} waits for ever.",
            got=_without_cure(error),
            look_at="for which flag a block waits, and when it is set",
            kind="endless",
            line=line_of(error),
        )
    if isinstance(error, PeerAccess):
        return run.failed(
            f"{run.name} reaches for memory of a device that is neither its own nor the next in the ring.",
            look_at="from which buffer a thread loads, and with which index",
            kind="outside",
            line=line_of(error),
        )
    if isinstance(error, InstructionLimit):
        return run.failed(
            f"{run.name} does not end.",
            got=error.without_advice(),
            look_at="the loop: does its index reach the end?",
            kind=kind_of(error),
            line=line_of(error),
        )
    return run.failed(
        f"{run.name} was stopped by the simulator.", got=str(error), kind=kind_of(error), line=line_of(error)
    )


def _without_cure(error: SimulatorError) -> str:
    text, reason = str(error), error.reason
    return text.replace(reason, "").rstrip() if reason else text
