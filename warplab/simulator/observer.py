"""`Observer`: sees what happens in a launch. Checks, race detection, counters and traces are observers.

To add one, write a class that overrides the events of interest and add it to `run.observation`, or pass an instance to
one launch (`Options.observers`). An event that no observer overrides costs one empty loop, and nothing in loops that
few lanes run as machine code (`run.narrow_runs`). There, `block`, `jump`, `diverge`, `load`, `loaded`, `store` and
`stored` call Python each time, unless the observer leaves them to machine code (`wants`): some 0.4 microseconds for the
first three, 10 for the others. 50,000 rounds of one lane, a load and a store each, take 0.075 s with all checks and
counters, 0.002 s without; an observer of `loaded` makes that 0.6 and 0.5 s, and by the arrays' code it is 4.2 and 1.0 s
(processor time, x86-64, November 2026). Blocks that all lanes run as machine code (`run.machine_runs`) are left to the
arrays' code by an observer of `loaded`, as the launch's `log` says, and their stores by one of `store` or `stored`: a
product of 256 with all checks takes 0.07 s, with `loaded` 0.36, with `load`, `store` or `stored` 0.13 to 0.15.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.translate.basic_blocks import Block
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.matrix_instructions import Product
from warplab.simulator.translate.unwritten_fragments import RegisterRead
from warplab.simulator.translate.warpgroup_instructions import WarpgroupProduct

Lanes = np.ndarray | None  # sorted numbers of lanes of the chunk, None for all of them


class Observer:
    """An observer that no event interests. One serves a launch; it may raise a SimulatorError to stop it.

    `chunk` holds the thread blocks that run at present, `chunk.group` the lanes that execute the present instruction.
    An access: `site` is its instruction, `space` where it goes ("global", "shared", "local" or "const"), `addresses`
    its base addresses, to which `site.offset` is added. Places are where threads synchronise other than by a barrier
    of the whole block: int64 numbers, one per lane, that stand for an address or a barrier. What an event does not say,
    such as the chunk's registers, may not be up to date.
    """

    chunk: Any = None
    events: ClassVar[frozenset[str]] = frozenset()  # that the class overrides

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.events = frozenset(event for event in EVENTS if getattr(cls, event) is not getattr(Observer, event))
        if "wants" not in vars(cls):  # what a base class says of its own methods
            cls.wants = Observer.wants  # type: ignore[method-assign]

    def watch(self, chunk) -> Observer:
        """Note that `chunk` is about to run. Returns the observer for its events, this one by default."""
        self.chunk = chunk
        return self

    def end_launch(self, profile, finished: bool) -> None:
        """Write what was seen into the launch's `LaunchProfile`, as it is over. `finished`: no error has stopped it."""

    def wants(self, event: str, space: str = "") -> int | None:
        """Return of how many lanes, from the first on, machine code is to tell of an event, None for all of them: 0 of
        what it tests, compares and counts as the observer itself would."""
        return None

    # -- control flow ----------------------------------------------------------------------------------------------

    def end_chunk(self) -> None:
        """Note that all lanes of the chunk have ended."""

    def block(self, number: int, group: Group, time: int) -> None:
        """Note that `group` is about to run basic block `number`. `time`: the chunk's instructions before it."""

    def diverge(self, block: Block, group: Group, taken: Group, other: Group) -> None:
        """Note that, at the branch or guard that ends `block`, `group` has split in two."""

    def jump(self, block: Block, group: Group) -> None:
        """Note that, at the branch or guard that ends `block`, all of `group` go to its target."""

    # -- memory ----------------------------------------------------------------------------------------------------

    def load(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        """Note that the group is about to load."""

    def loaded(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, values: list[np.ndarray]) -> None:
        """Note that the group has loaded `values`: for each element one entry per lane, or one for all."""

    def store(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, values, /) -> None:
        """Note that the group is about to store `values`."""

    def stored(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        """Note that the group has stored."""

    def atomic(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, reads: bool, /) -> None:
        """Note that the group is about to execute an atomic operation. `reads`: what was there before matters."""

    def freed(self, address: int) -> None:
        """Note that a lane has given back the memory at `address` (free or delete)."""

    def read_registers(self, read: RegisterRead, written: tuple[np.ndarray, ...], lanes: Lanes) -> None:
        """Note that a matrix instruction is about to read registers that nothing may have written. `written`: for each
        of them one flag per lane, or one for all."""

    # -- asynchronous copies ---------------------------------------------------------------------------------------

    def copy(self, site: Site, reader: Site, source: Addresses, target: Addresses, read: np.ndarray | None) -> None:
        """Note that the group executes cp.async: `reader` at `source` reads, `site` at `target` writes. `read`: which
        lanes read at all, None for all."""

    def copy_request(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        """Note that a cp.async with sources shorter than its width asks for them; `copy_read` of each byte follows."""

    def copy_read(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        """Note that a copy is about to read its source past the load and store units."""

    def copy_issued(self, site: Site, addresses: Addresses, lanes: Lanes, values) -> None:
        """Note that a copy to shared memory is under way: from now on its target holds nothing certain."""

    def copy_done(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, values) -> None:
        """Note that a copy is about to write its target, for which a thread has waited."""

    def tensor_copy(self, site: Site, addresses: Addresses, lanes: np.ndarray, swizzle: int) -> None:
        """Note that a tensor copy into shared memory begins: `addresses` of the pieces of 16 bytes that it will write,
        exchanged by a swizzle of so many bytes, 0 for none."""

    def reduced(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray) -> None:
        """Note that a copy is about to combine what it brings with what its target holds (cp.reduce.async.bulk)."""

    def bulk_copy(self, site: Site, copies: int) -> None:
        """Note that the group executes cp.async.bulk: so many of its lanes copy something. `site`: what reads."""

    # -- synchronisation -------------------------------------------------------------------------------------------

    def barrier(self, lanes: Lanes) -> None:
        """Note that the thread blocks of these lanes have passed a barrier of the whole block."""

    def grid_barrier(self) -> None:
        """Note that all blocks of the grid have waited for one another."""

    def sync_warp(self, lanes: Lanes) -> None:
        """Note that the lanes have passed a `__syncwarp`."""

    def exchange(self, lanes: Lanes) -> None:
        """Note that the lanes take part in a shuffle, vote or the like."""

    def fence(self, lanes: Lanes, scope: str) -> None:
        """Note that the lanes have passed a memory fence. `scope`: "cta", "cluster", "gpu" or "sys"."""

    def proxy_fence(self, lanes: Lanes, kind: str) -> None:
        """Note that the lanes have passed a fence between two ways to memory. `kind`: "async", "alias", …"""

    def mbarrier(self, site: Site, addresses: Addresses, lanes: Lanes, initialises: bool) -> None:
        """Note that the lanes are about to use mbarriers in shared memory."""

    def async_store(self, site: Site, addresses: Addresses, lanes: Lanes) -> None:
        """Note that st.async or red.async sends what the lanes hold to shared memory; it arrives later."""

    def arrive(self, places: np.ndarray, lanes: np.ndarray, relaxed: bool = False) -> None:
        """Note that the lanes arrive at places where others wait until all have come (`phase_over`). `relaxed`: only
        what they have fenced comes before what the others do then."""

    def phase_over(self, places: np.ndarray) -> None:
        """Note that all have arrived at these places."""

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        """Note that the lanes have waited at these places."""

    # -- tensor cores ----------------------------------------------------------------------------------------------

    def matrix_product(self, product: Product | WarpgroupProduct) -> None:
        """Note that each `product.warps` warps of the group multiply matrices together."""

    def operand(self, site: Site, name: str, addresses: Addresses, lanes: np.ndarray, swizzle: int) -> None:
        """Note that wgmma takes its operand `name` ("A" or "B") from shared memory: `addresses` of pieces of 16 bytes
        that are exchanged as a swizzle of so many bytes says, 0 for none."""


NOBODY = Observer()  # sees nothing

EVENTS = frozenset(
    name
    for name, of in vars(Observer).items()
    if callable(of) and name[0] != "_" and name not in ("watch", "end_launch", "wants")
)


@functools.lru_cache(maxsize=64)
def _listeners(kinds: tuple[type[Observer], ...]) -> list[tuple[str, list[int]]]:
    """Return, by event, which of the observers of these kinds override it."""
    return [(event, [k for k, kind in enumerate(kinds) if event in kind.events]) for event in EVENTS]


class Observers:
    """For each event, the methods of the observers that override it: `for notify in observers.load: notify(…)`."""

    __slots__ = ("all", *EVENTS)  # which Python reads fastest

    def __init__(self, observers: Iterable[Observer]) -> None:
        self.all = those = tuple(observers)
        for event, numbers in _listeners(tuple(type(observer) for observer in those)):
            setattr(self, event, tuple([getattr(those[k], event) for k in numbers]))

    @classmethod
    def of(cls, observers: Sequence[Observer], before: Observers | None) -> Observers:
        """Return those of a chunk, which often are those of the chunk `before`."""
        if before is not None and len(before.all) == len(observers) and all(map(operator.is_, before.all, observers)):
            return before
        return cls(observers)

    if TYPE_CHECKING:

        def __getattr__(self, event: str) -> tuple[Callable[..., None], ...]: ...

    @property
    def see_accesses(self) -> bool:
        """Does any look at the addresses of loads, stores or atomic operations?"""
        return bool(self.load or self.store or self.atomic)
