"""Why Nsight Compute and the simulator count kernels with asynchronous copies (cp.async, TMA) differently."""

import math

from warpcourse.bench.compared_launches import EFFICIENCY, Difference

NOT_COUNTED = Difference("global_load_bytes", math.inf, "The metric leaves out what cp.async copies to shared memory.")
_DURING_COPIES = (
    "At most 0.4 % more passes than the addresses ask for: taken to be loads that meet writes of cp.async under way, "
    "which a simulator without time cannot place."
)
DURING_COPIES = (
    Difference("shared_load_wavefronts", 0.004, _DURING_COPIES),
    Difference("shared_load_conflicts", 1, _DURING_COPIES),
)
PREDICATED = Difference(
    "shared_copy",
    0.5,
    "ptxas makes the copies within the loop depend on a predicate instead of a branch, and ncu counts those whose "
    "predicate is false, too, with as many passes as they have lanes or fewer: the copies that the last tiles along k "
    "do without.",
)
PREDICATED_LARGE = PREDICATED._replace(counters="shared_copy_wavefronts", within=0.9)  # of large tiles, few along k
ZERO_FILL = Difference(
    "shared_copy_wavefronts",
    0.1,
    "Copies of zeros, beyond the edges of the matrices, take fewer passes on the GPU, and not the same in every run.",
)
WAITING = Difference(
    EFFICIENCY,
    0.05,
    "Who waits for a barrier asks again and again, in the warp that loads one thread alone: on the GPU as often as "
    "time makes it.",
)
BESIDE_TMA = (
    "More passes than the addresses ask for, mostly not the same in every run: taken to be accesses that meet what TMA "
    "writes and wgmma reads, which a simulator without time cannot place."
)
