"""`Options`: how a launch is simulated."""

from dataclasses import dataclass

from warplab.simulator.observer import Observer

POLICIES = ("volta", "pascal")


@dataclass(frozen=True)
class Options:
    """How a launch is simulated.

    `checks`: test every access. `races`: also look for data races. `volatile_orders`: `volatile` in shared memory
    excuses races between lanes of a warp, and all in kernels that wait for flags; otherwise none (see `check.races`).
    `used_reads_only`: report a read of shared memory that nobody wrote only if the result depends on it.
    `unwritten_reads`: report reads of what nobody wrote.
    `counters`: count, and trace the first `trace_warps` warps, up to `trace_events` accesses and steps.
    `max_seconds`: seconds of processor time that the launch may take, in place of the limits by number that follow.
    None: as many as it takes, but a chunk that executes 2**30 instructions and works for 10 s, and none of whose lanes
    gets on meanwhile, counts as too long. 0: no limit by time, so that a chunk may only execute 2**30 in that way.
    `instruction_limit`: thread instructions that the launch may execute, in place of those of a chunk.
    `path_limit`: instructions along the path of one chunk. A launch that exceeds it counts as endless. None: a million,
    but as many as they take for loops that count towards a bound (see `counted_loops`).
    `chunk_lanes`: roughly how many threads run at one time; behind the first 16 times as many, up to four times that.
    `scheduling`: "volta" (one program counter per thread) or "pascal" (one per warp); see `scheduler`.
    `lanes_apart`: take what CUDA does not promise for not given: `activemask` names the calling lane alone, as if the
    warp had come apart before, and masks of shuffles, votes and matches may not name lanes that have ended.
    `fenced_barriers`: also report mbarriers that TMA may not see yet, for want of a fence after their initialisation,
    which some compilers leave out.
    `ended_arrive`: a barrier of the whole block does not wait for threads that have ended, as on a GPU since Volta.
    `replicas`: lanes of a warp may store different values to one element of shared memory at once, of which one stays.
    `cooperative`: all blocks run together and can wait for one another (see `launch_limits`).
    `cluster`: blocks of a cluster along x, y and z, for a kernel that does not say so itself (__cluster_dims__).
    `wide_clusters`: a cluster may have 16 blocks, as on GPUs that are asked (NonPortableClusterSizeAllowed).
    `sample_blocks`: run only about this many blocks of a larger grid and scale the counters (see `sampling`). Memory
    then holds the results of those blocks alone, and checks see nothing of the others. Not for kernels whose blocks
    wait for one another. `machine_code`: run loops of a few lanes (`translate.narrow_loops`), blocks that all lanes run
    (`translate.machine_blocks`) and sums of tensor cores (`translate.aligned_sums`) as machine code, which is faster.
    `observers`: further observers of the launch (see `observer`).
    """

    checks: bool = True
    races: bool = True
    volatile_orders: bool = False
    used_reads_only: bool = False
    unwritten_reads: bool = True
    counters: bool = True
    trace_warps: int = 4
    trace_events: int = 4096
    max_seconds: float | None = None
    instruction_limit: int | None = None
    path_limit: int | None = None
    chunk_lanes: int = 1 << 15
    scheduling: str = "volta"
    lanes_apart: bool = False
    fenced_barriers: bool = False
    ended_arrive: bool = False
    replicas: bool = False
    cooperative: bool = False
    cluster: tuple[int, ...] | None = None
    wide_clusters: bool = False
    sample_blocks: int | None = None
    machine_code: bool = True
    observers: tuple[Observer, ...] = ()

    def __post_init__(self) -> None:
        if self.sample_blocks is not None and self.sample_blocks < 1:
            raise ValueError(f"sample_blocks must be at least 1, not {self.sample_blocks}")
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise ValueError(f"max_seconds must not be negative, but is {self.max_seconds}")
        if self.scheduling not in POLICIES:
            raise ValueError(f"scheduling must be one of {POLICIES}, not {self.scheduling!r}")
