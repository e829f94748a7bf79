"""Undefined values: an error if the result of the launch depends on one.

A shuffle brings one from a lane that does not take part: PTX leaves the value undefined when the source lane has ended,
never existed or is not in the mask. A load brings one from a local array's element that was never set
(`unwritten_reads`). To fetch it is no mistake: a kernel may throw it away, as a scan does at the end of a partial warp.
So a launch in which it happened runs again, from the same memory, with other values in its place, twice at most. If
memory then ends up different, the kernel used them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warplab.simulator.check.unwritten_reads import Place, reads_local_arrays
from warplab.simulator.errors import SimulatorError, UndefinedShuffle, UninitializedRead
from warplab.simulator.memory.device_memory import Allocation, Content, DeviceMemory
from warplab.simulator.ptx.program import Where

MOST_BYTES = 1 << 28  # of device memory that is copied for this; a launch on more is not examined
_MOST_PLACES = 16
_DISTURBANCE = 0x5AA5C33C
_REASON = (
    "Such a value is undefined. Let every lane of the warp reach the shuffle (a guard belongs around the load and the "
    "store, not around the shuffle), or use what it brings only where the other lane takes part."
)


def examined(translation, memory: DeviceMemory, used_reads_only: bool) -> bool:
    """Return whether a kernel can meet undefined values, on memory that is not too large to be copied."""
    shuffles = any(i.opcode == "shfl" for block in translation.blocks for i in block.counted)
    return (shuffles or used_reads_only or reads_local_arrays(translation)) and memory.used_bytes <= MOST_BYTES


@dataclass
class UndefinedValues:
    """Those of one launch. `met`: by place, the error if the result depends on them.

    `disturbed`: the places where other values are put in; `sign`: 0 or 1, flips their highest bit, too, since a
    maximum hides lower values.
    """

    met: dict[Place, UninitializedRead] = field(default_factory=dict)
    disturbed: frozenset[Place] = frozenset()
    sign: int = 0

    def shuffled(
        self, chunk, place: Place, mode: str, values: np.ndarray, lanes, source: np.ndarray, undefined: np.ndarray
    ) -> np.ndarray:
        """Return what a shuffle brings: `values`, in which lanes with `undefined` sources have their own.

        `source`: lane of the warp that each lane reads.
        """
        if place in self.disturbed:
            return np.where(undefined, values ^ np.uint32(_DISTURBANCE ^ self.sign << 31), values)
        if place not in self.met:
            first = int(np.argmax(undefined))
            lane = first if lanes is None else int(lanes[first])
            self.met[place] = _error(chunk, place, mode, lane, int(source[first]))
        return values

    def check(self, memory: DeviceMemory, before: dict[Allocation, Content], run: Callable[[], None]) -> None:
        """Raise the error if what is in memory depends on undefined values. `run`: repeats the launch."""
        places = list(self.met)
        after = memory.contents()
        if any(allocation.of_heap for allocation in after.keys() ^ before.keys()):  # the kernel allocated it itself
            return

        def matters(disturbed: list[Place]) -> bool:
            self.disturbed = frozenset(disturbed)
            try:
                for self.sign in (0, 1):
                    memory.replace(before)
                    run()
                    if not memory.same(after):
                        return True
            except SimulatorError:  # an address or a loop depends on it
                return True
            finally:
                self.disturbed = frozenset()
            return False

        try:
            if not matters(places):
                return
            guilty = next((place for place in places[:_MOST_PLACES] if matters([place])), places[0])
        finally:
            memory.replace(after)
        raise self.met[guilty]


def _error(chunk, place: Place, mode: str, lane: int, source: int) -> UndefinedShuffle:
    warp = int(chunk.warp_of[lane])
    if source >= int(chunk.warp_sizes[warp]):
        why = "which its warp does not have"
    elif not int(chunk.scheduler.alive[warp]) >> source & 1:
        why = "which has ended"
    else:
        why = "which does not take part"
    what = (
        f"`shfl.sync.{mode}` brings lane {int(chunk.lane_of[lane])} the value of lane {source}, {why}, and the result "
        "depends on it"
    )
    return chunk.error(Where(*place), lane, what, _REASON, UndefinedShuffle)
