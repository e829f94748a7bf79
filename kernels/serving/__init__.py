"""Lab 11, is the GPU busy? Utilisation, concurrency and serving.

busy?      `utilisation` in virtual time, `nvml`, `monitor`; `busy_kernels` (spin.cu, copy.cu, chase.cu) to look at
why not?   `three_roads`, `course_cases`; `profilers`, `traces`, `profiled_program`
together   `streams`, `stream_timeline`, `stream_races`; `sharing`, `mps`, `small_network`
served     `batcher`, `queueing`, `simulated_queue`, `engines`, `service`, `load`

`recordings` is what was measured on a GPU. Importing this package imports none of them.
"""

from warplab.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
