"""Block-wide barriers: threads wait until as many have arrived as the barrier expects.

Covers `bar` and `barrier` with .sync, .arrive and .red, 16 barriers per block, with or without a number of threads, and
barrier.cluster with .arrive and .wait. barrier.grid is not PTX: it stands for the wait of cooperative groups.
"""

from typing import NamedTuple

import numpy as np

from warplab.simulator.constants import BARRIERS, WARP_SIZE
from warplab.simulator.errors import DivergentBarrier
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.ptx.program import Immediate, Instruction, Negated, Operand, name_of
from warplab.simulator.translate.basic_blocks import Block


class _Form(NamedTuple):
    """Operands of a barrier instruction."""

    kind: str  # "sync", "arrive" or "red"
    number: Operand
    expected: Operand | None
    result: Operand | None
    predicate: Operand | None
    aligned: bool


def form(instruction: Instruction) -> _Form:
    kind = next(m for m in instruction.modifiers if m in ("sync", "arrive", "red"))
    operands = list(instruction.operands)
    result = operands.pop(0) if kind == "red" else None
    predicate = operands.pop() if kind == "red" else None
    expected = operands[1] if len(operands) > 1 else None
    aligned = instruction.opcode == "bar" or "aligned" in instruction.modifiers
    return _Form(kind, operands[0] if operands else Immediate(0), expected, result, predicate, aligned)


class _State:
    """The barrier of one number in all blocks of the chunk."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.arrived = np.zeros(blocks, np.int64)
        self.expected = np.full(blocks, threads, np.int64)
        self.true = np.zeros(blocks, np.int64)  # how many predicates of .red hold
        self.waiting: list[tuple[Block, np.ndarray]] = []  # block of code, lanes
        self.left: list[tuple[Block, np.ndarray]] = []  # those that the last release let go

    def missing(self, owner: int) -> str:
        """Say who waits for whom in thread block `owner`."""
        return f"{int(self.arrived[owner])} of {int(self.expected[owner])} threads wait for the others, which have"


_NOT_ARRIVED = -1
_CLUSTER = BARRIERS  # the number of its barrier


class _ClusterState:
    """barrier.cluster in all clusters of the chunk. It does not wait for threads that have ended."""

    def __init__(self, chunk) -> None:
        self.cluster_of = chunk.block_of // chunk.cluster_blocks  # of each lane
        self.clusters = chunk.blocks // chunk.cluster_blocks
        self.phase = np.zeros(self.clusters, np.int64)
        self.arrived = np.full(
            chunk.lanes, _NOT_ARRIVED, np.int64
        )  # the phase in which each lane arrived, until it has waited
        self.waiting: list[tuple[Block, np.ndarray]] = []

    def missing(self, owner: int) -> str:
        return "a thread waits for others of its cluster, which have not arrived and have"


class _GridState:
    """The barrier of all blocks of a cooperative launch."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Block, np.ndarray]] = []

    def missing(self, owner: int) -> str:
        return "a thread waits for others of the grid, which have"


class Barriers:
    """Lanes that wait at barriers of one chunk."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.chunk = scheduler, scheduler.chunk
        self.chunk.barriers = self
        self.states: dict[int, _State] = {}
        self.cluster: _ClusterState | None = None  # made when it is used
        self.grid = _GridState()

    @property
    def waiting(self) -> list[np.ndarray]:
        """Return lanes held back, as sorted arrays."""
        return [lanes for state in self._all_states() for _, lanes in state.waiting]

    def _all_states(self) -> list:
        return [*self.states.values(), self.grid, *([self.cluster] if self.cluster is not None else [])]

    def arrive(self, block, group: Group) -> tuple[int, Group | None]:
        """Return the block at which the group continues and the group, None if they were put aside or released."""
        if "cluster" in block.last.modifiers:
            return self._cluster(block, group)
        if "grid" in block.last.modifiers:
            return self._grid(block, group)
        chunk, what = self.chunk, form(block.last)
        if group.lanes is None and what.kind == "sync" and what.expected is None and isinstance(what.number, Immediate):
            for notify in chunk.observers.barrier:
                notify(None)
            return block.index + 1, group
        if what.aligned:
            self._check_whole_warps(block, group)
        lanes = group.all_lanes
        numbers = np.broadcast_to(self._values(what.number, group), lanes.shape)
        for number in np.unique(numbers):
            chosen = numbers == number
            if not 0 <= number < BARRIERS:
                wrong = f"a barrier of number {number}: a block has 0 to {BARRIERS - 1}"
                raise chunk.error(block.last, lanes[chosen][0], wrong, kind=DivergentBarrier)
            self._arrive(block, what, int(number), lanes[chosen], group, chosen)
        if what.kind == "arrive":
            return block.index + 1, group
        return block.index, None

    def _arrive(self, block, what: _Form, number: int, lanes: np.ndarray, group: Group, chosen: np.ndarray) -> None:
        chunk = self.chunk
        state = self.states.setdefault(number, _State(chunk.blocks, chunk.threads))
        owner = chunk.block_of[lanes]
        if what.expected is not None:
            expected = np.broadcast_to(self._values(what.expected, group), chosen.shape)[chosen].astype(np.int64)
            if (expected % WARP_SIZE).any() or not expected.all():
                wrong = f"a barrier for {int(expected[0])} threads: the number must be a multiple of {WARP_SIZE}"
                raise chunk.error(block.last, lanes[0], wrong, kind=DivergentBarrier)
            state.expected[owner] = expected
        else:
            state.expected[owner] = chunk.threads
        if what.predicate is not None:
            holds = np.broadcast_to(self._values(what.predicate, group), chosen.shape)[chosen]
            state.true += np.bincount(owner[holds], minlength=chunk.blocks)
        for notify in chunk.observers.arrive:
            notify(self._places(number, owner), lanes)
        state.arrived += np.bincount(owner, minlength=chunk.blocks)
        if what.kind != "arrive":
            state.waiting.append((block, lanes))
        complete = (state.arrived >= state.expected) & (state.arrived > 0)
        if complete.any():
            self._release(number, state, complete)

    def _places(self, number: int, owner: np.ndarray) -> np.ndarray:
        """Return a barrier of thread blocks `owner` as a place of `Observer.arrive`: negative, unlike addresses."""
        return -1 - (number * self.chunk.blocks + owner)

    def _release(self, number: int, state: _State, complete: np.ndarray) -> None:
        chunk, still, released = self.chunk, [], []
        state.left = []
        for block, lanes in state.waiting:
            ready = complete[chunk.block_of[lanes]]
            if ready.any():
                going = lanes[ready]
                released.append(going)
                state.left.append((block, going))
                self._give_result(block, state, going)
                self.scheduler.put(block.index + 1, going)
            if not ready.all():
                still.append((block, lanes[~ready]))
        state.waiting = still
        state.arrived[complete] = state.true[complete] = 0
        if released:
            self._tell(number, complete, np.concatenate(released))

    def _tell(self, number: int, complete: np.ndarray, lanes: np.ndarray) -> None:
        """Tell the observers that `lanes`, which waited, come after all at barrier `number` of blocks `complete`."""
        chunk, observers = self.chunk, self.chunk.observers
        owner = chunk.block_of[lanes]
        everyone = self._alive(chunk.block_of, chunk.blocks) if chunk.options.ended_arrive else chunk.threads
        whole = np.bincount(owner, minlength=chunk.blocks) == everyone
        if (complete & whole).any():
            for notify in observers.barrier:
                notify(np.flatnonzero((complete & whole)[chunk.block_of]))
        if (complete & ~whole).any():
            for notify in observers.phase_over:
                notify(self._places(number, np.flatnonzero(complete & ~whole)))
            some = ~whole[owner]
            for notify in observers.wait_over:
                notify(self._places(number, owner[some]), lanes[some])

    def _give_result(self, block, state: _State, lanes: np.ndarray) -> None:
        """Write the result of .red: how many predicates held, or whether all or any did."""
        what = form(block.last)
        slot = self.chunk.translation.slots.get(name_of(what.result)) if what.result is not None else None
        if slot is None:
            return
        owner = self.chunk.block_of[lanes]
        true, all_of_them = state.true[owner], state.expected[owner]
        operation = next(m for m in block.last.modifiers if m in ("popc", "and", "or"))
        value = {"popc": true.astype(np.uint32), "and": true == all_of_them, "or": true > 0}[operation]
        self.chunk.scatter(slot, lanes, value)

    def _values(self, operand: Operand, group: Group) -> np.ndarray:
        if isinstance(operand, Immediate):
            return np.array([operand.value])
        if isinstance(operand, Negated):
            return ~self._values(operand.register, group)
        values = self.chunk.registers[self.chunk.translation.slots[name_of(operand)]]
        return values if group.lanes is None else self.chunk.at(values, group.lanes)

    def _check_whole_warps(self, block, group: Group) -> None:
        chunk = self.chunk
        warp_of = chunk.warp_of[group.all_lanes]
        present = np.bincount(warp_of, minlength=chunk.warps)
        sizes = self._alive(chunk.warp_of, chunk.warps) if chunk.options.ended_arrive else chunk.warp_sizes
        partial = (present > 0) & (present != sizes)
        if partial.any():
            self.scheduler.convergence.check_none_left()
            warp = int(np.argmax(partial))
            lane = int(group.all_lanes[np.searchsorted(warp_of, warp)])
            what = f"divergent barrier: only {present[warp]} of the {chunk.warp_sizes[warp]} threads of a warp reach it"
            raise chunk.error(block.last, lane, what, _REASON, DivergentBarrier)

    def _grid(self, block, group: Group) -> tuple[int, Group | None]:
        self.grid.waiting.append((block, group.all_lanes))
        alive = int(np.bitwise_count(self.scheduler.alive).sum())
        if sum(lanes.shape[0] for _, lanes in self.grid.waiting) == alive:
            waiting, self.grid.waiting = self.grid.waiting, []
            for before, lanes in waiting:
                self.scheduler.put(before.index + 1, lanes)
            for notify in self.chunk.observers.grid_barrier:
                notify()
        return block.index, None

    # -- barrier.cluster -------------------------------------------------------------------------------------------

    def _cluster(self, block, group: Group) -> tuple[int, Group | None]:
        chunk, lanes = self.chunk, group.all_lanes
        state = self.cluster = self.cluster or _ClusterState(chunk)
        if "aligned" in block.last.modifiers:
            self._check_whole_warps(block, group)
        arrives = "arrive" in block.last.modifiers
        wrong = (state.arrived[lanes] != _NOT_ARRIVED) == arrives
        if wrong.any():
            what = "arrive twice without a wait" if arrives else "wait without an arrive"
            reason = "Each thread must arrive and wait in turn."
            raise chunk.error(block.last, lanes[np.argmax(wrong)], f"barrier.cluster.{what}", reason)
        own = state.cluster_of[lanes]
        if arrives:
            state.arrived[lanes] = state.phase[own]
            for notify in chunk.observers.arrive:
                notify(self._places(_CLUSTER, own), lanes, "relaxed" in block.last.modifiers)
            self._release_clusters(state)
            return block.index + 1, group
        ready = state.arrived[lanes] < state.phase[own]
        if not ready.all():
            state.waiting.append((block, lanes[~ready]))
        self._leave_cluster(state, block, lanes[ready])
        return block.index, None

    def _leave_cluster(self, state: _ClusterState, block: Block, lanes: np.ndarray) -> None:
        """Release these lanes, whose wait is over."""
        if lanes.size:
            state.arrived[lanes] = _NOT_ARRIVED
            self.scheduler.put(block.index + 1, lanes)
            for notify in self.chunk.observers.wait_over:
                notify(self._places(_CLUSTER, state.cluster_of[lanes]), lanes)

    def _release_clusters(self, state: _ClusterState) -> bool:
        """End the phases at which all threads that still run have arrived. True if lanes were released."""
        chunk = self.chunk
        alive = (self.scheduler.alive[chunk.warp_of] >> chunk.lane_of & 1).astype(bool)
        here = state.arrived == state.phase[state.cluster_of]
        missing = np.bincount(state.cluster_of[alive & ~here], minlength=state.clusters)
        complete = (missing == 0) & (np.bincount(state.cluster_of[here], minlength=state.clusters) > 0)
        if not complete.any():
            return False
        state.phase[complete] += 1
        for notify in chunk.observers.phase_over:
            notify(self._places(_CLUSTER, np.flatnonzero(complete)))
        waiting, state.waiting = state.waiting, []
        for block, lanes in waiting:
            ready = complete[state.cluster_of[lanes]]
            self._leave_cluster(state, block, lanes[ready])
            if not ready.all():
                state.waiting.append((block, lanes[~ready]))
        return bool(waiting)

    def wake(self) -> bool:
        """Release clusters, and by `ended_arrive` blocks, that waited for threads that have ended, as nothing else can
        run. True if there were any."""
        woken = self.cluster is not None and bool(self.cluster.waiting) and self._release_clusters(self.cluster)
        if self.chunk.options.ended_arrive:
            alive = self._alive(self.chunk.block_of, self.chunk.blocks)
            for number, state in self.states.items():
                whole = state.expected == self.chunk.threads
                complete = (state.arrived > 0) & whole & (state.arrived >= alive)
                if state.waiting and complete.any():
                    self._release(number, state, complete)
                    woken = True
        return woken

    def _alive(self, owner_of: np.ndarray, owners: int) -> np.ndarray:
        """Count the threads that have not ended of each block or warp, which `owner_of` has by lane."""
        chunk = self.chunk
        alive = (self.scheduler.alive[chunk.warp_of] >> chunk.lane_of & 1).astype(bool)
        return np.bincount(owner_of[alive], minlength=owners)

    # -- errors ----------------------------------------------------------------------------------------------------

    def check_none_left(self) -> None:
        """Raise DivergentBarrier if threads still wait: those they wait for will never arrive."""
        for state in self._all_states():
            for block, lanes in state.waiting:
                owner = self.chunk.block_of[lanes[0]]
                what = f"divergent barrier: {state.missing(owner)} ended or wait elsewhere"
                raise self.chunk.error(block.last, lanes[0], what, _REASON, DivergentBarrier)


_REASON = (
    "Every thread of the block must reach the same barrier: move it out of the `if` or the loop, or put it before "
    "the early `return` that some threads take."
)
