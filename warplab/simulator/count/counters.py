"""The counters of a launch: `Counts` (the numbers) and `LaunchProfile` (those of one launch, by source line).

Names follow Nsight Compute. Instructions are machine instructions as `ptxas_model` estimates them from PTX. Memory
requests, sectors and wavefronts are those that the hardware counts. evidence/counters compares both with an H100.
"""

from __future__ import annotations

import operator
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE

if TYPE_CHECKING:
    from warplab.simulator.count.reuse import Reuse, Watched
    from warplab.simulator.count.warp_steps import StepTrace
    from warplab.simulator.translate.translation import Translation

Place = tuple[str, int]  # file and line


class Counter(NamedTuple):
    """One counter: field of `Counts`, label in reports, Nsight Compute metric, meaning."""

    name: str
    label: str
    ncu: str
    description: str


def _counter(ncu: str, description: str, label: str = "") -> int:
    """Return a field of `Counts`, 0 at first; its label is its name where none is given."""
    return field(default=0, metadata={"ncu": ncu, "description": description, "label": label})


def _flops(letter: str) -> str:
    """Return the metrics that add up to operations of one precision, the second and third abbreviated."""
    return f"smsp__sass_thread_inst_executed_op_{letter}add_pred_on.sum + …_{letter}mul_… + 2 * …_{letter}fma_…"


@dataclass
class Counts:
    """Counters of a launch, of a source line, or a sum of these: plain integers; `COUNTERS` tells of each."""

    warp_instructions: int = _counter(
        "smsp__inst_executed.sum", "machine instructions issued, once per warp; estimated from PTX"
    )
    thread_instructions: int = _counter(
        "smsp__thread_inst_executed.sum", "machine instructions issued, once per active thread; estimated from PTX"
    )
    global_load_requests: int = _counter(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "load instructions that a warp sent to the L1 cache"
    )
    global_load_sectors: int = _counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "32-byte sectors that global loads touched"
    )
    # ncu's metric leaves out those of cp.async.
    global_load_bytes: int = _counter(
        "smsp__sass_data_bytes_mem_global_op_ld.sum",
        "bytes that the threads asked for, also by asynchronous copies; once if threads of a warp share an address",
    )
    global_store_requests: int = _counter(
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "store instructions that a warp sent to the L1 cache"
    )
    global_store_sectors: int = _counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "32-byte sectors that global stores touched"
    )
    global_store_bytes: int = _counter(
        "smsp__sass_data_bytes_mem_global_op_st.sum",
        "bytes that the threads wrote; once if threads of a warp share an address",
    )
    shared_load_requests: int = _counter(
        "smsp__inst_executed_op_shared_ld.sum", "load instructions that a warp sent to shared memory"
    )
    shared_load_wavefronts: int = _counter(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "passes that serve shared loads: one each, or more if lanes need different words of one bank",
    )
    shared_load_conflicts: int = _counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "wavefronts beyond those that the width of the access needs",
        label="shared load bank conflicts",
    )
    shared_store_requests: int = _counter(
        "smsp__inst_executed_op_shared_st.sum", "store instructions that a warp sent to shared memory"
    )
    shared_store_wavefronts: int = _counter(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "passes that serve shared stores"
    )
    shared_store_conflicts: int = _counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "wavefronts beyond those that the width of the access needs",
        label="shared store bank conflicts",
    )
    shared_copy_requests: int = _counter(
        "smsp__inst_executed_op_ldgsts.sum", "copies of a warp from global to shared memory (cp.async, LDGSTS)"
    )
    shared_copy_wavefronts: int = _counter(
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
        "passes that write what asynchronous copies bring",
    )
    shared_copy_conflicts: int = _counter(
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        "wavefronts beyond those that the width of the copy needs; none for copies past the L1 cache",
        label="shared copy bank conflicts",
    )
    bulk_copies: int = _counter(
        "", "copies by cp.async.bulk, once per thread; neither their requests nor their bytes count as loads or stores"
    )
    global_atomic_requests: int = _counter(
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum + l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
        "atomic operations on global memory, once per warp",
    )
    global_atomic_sectors: int = _counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum + l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
        "32-byte sectors that global atomics touched; lanes with one address take turns",
    )
    shared_atomic_requests: int = _counter(
        "smsp__inst_executed_op_shared_atom.sum", "atomic operations on shared memory, once per warp"
    )
    shared_atomic_wavefronts: int = _counter(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
        "passes that serve shared atomics; lanes with one address take turns",
    )
    shared_atomic_conflicts: int = _counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
        "wavefronts beyond those that the width of the access needs",
        label="shared atomic bank conflicts",
    )
    local_load_requests: int = _counter("smsp__inst_executed_op_local_ld.sum", "once per warp")
    local_store_requests: int = _counter("smsp__inst_executed_op_local_st.sum", "once per warp")
    branches: int = _counter(
        "smsp__sass_branch_targets.sum",
        "conditional branches of the machine code, once per warp, without conditional exits",
    )
    divergent_branches: int = _counter(
        "smsp__sass_branch_targets_threads_divergent.sum", "branches at which the threads of one warp went two ways"
    )
    barriers: int = _counter("", "block-wide barriers, once per warp")
    atomics: int = _counter(
        "smsp__sass_inst_executed_op_global_atom.sum + smsp__inst_executed_op_global_red.sum + …_shared_atom.sum",
        "atomic operations on global and shared memory, once per warp",
    )
    tensor_operations: int = _counter(
        "smsp__inst_executed_pipe_tensor.sum",
        "machine instructions of the tensor cores, once per warp; one PTX instruction may take several",
    )
    flops_f16: int = _counter(_flops("h"), "an FMA counts two, once per thread", label="FP16 operations")
    flops_f32: int = _counter(_flops("f"), "an FMA counts two, once per thread", label="FP32 operations")
    flops_f64: int = _counter(_flops("d"), "an FMA counts two, once per thread", label="FP64 operations")

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(operator.add, vars(self).values(), vars(other).values()))

    def __radd__(self, other: int) -> Counts:
        return self if other == 0 else NotImplemented

    def as_dict(self) -> dict[str, int]:
        return asdict(self)

    @property
    def warp_efficiency(self) -> float | None:
        """Return the share of a warp's 32 lanes that were active, averaged over instructions (0 to 1)."""
        return _ratio(self.thread_instructions, WARP_SIZE * self.warp_instructions)

    @property
    def sectors_per_load_request(self) -> float | None:
        return _ratio(self.global_load_sectors, self.global_load_requests)

    @property
    def sectors_per_store_request(self) -> float | None:
        return _ratio(self.global_store_sectors, self.global_store_requests)

    @property
    def load_efficiency(self) -> float | None:
        """Return the share of the bytes in the loaded sectors that threads asked for (0 to 1)."""
        return _ratio(self.global_load_bytes, SECTOR_BYTES * self.global_load_sectors)

    @property
    def store_efficiency(self) -> float | None:
        return _ratio(self.global_store_bytes, SECTOR_BYTES * self.global_store_sectors)


COUNTERS = tuple(
    Counter(f.name, f.metadata["label"] or f.name.replace("_", " "), f.metadata["ncu"], f.metadata["description"])
    for f in fields(Counts)
)


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None


@dataclass
class Access:
    """One memory instruction of the traced warps: which thread touched which address.

    `block`, `thread`: linear block index, and linear thread index in the block, one entry per active lane.
    `address`: address of each lane's first byte, uint64. `width`: bytes per lane.
    `array`: name of the allocation, None if it has none. `array_start`: its first address.
    """

    op: str  # "load", "store" or "atomic"
    space: str  # "global", "shared" or "local"
    file: str
    line: int
    width: int
    block: np.ndarray
    thread: np.ndarray
    address: np.ndarray
    array: str | None
    array_start: int


@dataclass
class LaunchProfile:
    """One launch: its counters, in total and by source line, and a trace of its first warps.

    `accesses`: their memory accesses, in order. `steps`: their instructions (`warp_steps.StepTrace`), None if not
    traced. `footprint`: distinct bytes touched, in whole 32-byte sectors, which must cross the DRAM at least once
    unless a cache holds them: "global_load_bytes", "global_store_bytes" and, if there are any, "global_atomic_bytes".
    `watched`: what a few blocks read, None if that was not watched; `reuse` says what of it they read again.
    `mix`: warp instructions by kind (`operations.KINDS`). `tensor_operations`: matrix products of PTX, once per warp,
    by shape, type of the sums and type of the factors, as in "m16n8k16.f32.f16" (`fragments.flops` of one).
    `flow`: how often each basic block of the PTX ran, None without counters.
    `lines` and the three `line_…` hold the same per source line, by file and line number. Distinct bytes of lines do
    not add up, as several lines may touch the same ones.
    `sampled`: (blocks run, blocks of the grid) if the counters are scaled from some blocks, None if all ran.
    `static`: what the compiled kernel needs: "shared_bytes" per block, including dynamic ones; whoever compiles the
    kernel for a GPU may add more. `output`: what the kernel printed. `log`: what NumPy ran although machine code might
    have, and why, a line for each reason.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counts: Counts = field(default_factory=Counts)
    lines: dict[Place, Counts] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    steps: StepTrace | None = field(default=None, repr=False, compare=False)
    flow: BlockFlow | None = field(default=None, repr=False, compare=False)
    footprint: dict[str, int] = field(default_factory=dict)
    watched: Watched | None = field(default=None, repr=False, compare=False)
    mix: dict[str, int] = field(default_factory=dict)
    tensor_operations: dict[str, int] = field(default_factory=dict)
    line_footprint: dict[Place, dict[str, int]] = field(default_factory=dict)
    line_mix: dict[Place, dict[str, int]] = field(default_factory=dict)
    line_tensor_operations: dict[Place, dict[str, int]] = field(default_factory=dict)
    sampled: tuple[int, int] | None = None
    static: dict[str, int | None] = field(default_factory=dict)
    output: str = ""
    log: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def reuse(self) -> Reuse | None:
        """Return what a few blocks read again; None if that was not watched."""
        return None if self.watched is None else self.watched.reuse


@dataclass(eq=False)
class BlockFlow:
    """How often each basic block of a kernel's PTX ran in a launch: what machine code is counted by. The lists have an
    entry for each block of `translation`, scaled where a sample of the grid ran.

    `threads`, `warps`: how often the block was run, by thread and by warp. For a block that ends in a branch or guard:
    `taken_threads`, `taken_warps` went to its target (warps that parted count on both sides), the others on to the
    next block; `parted`: warps that went both ways. `trips`: by the head of each loop, how many threads went round it
    how often (`launch_counting.TripCounts`).
    """

    translation: Translation
    threads: list[float]
    warps: list[float]
    taken_threads: list[float]
    taken_warps: list[float]
    parted: list[float]
    trips: dict[int, dict[int, float]]

    def add_scaled(self, other: BlockFlow, factor: float) -> None:
        """Add `factor` times the counts of another run of the same kernel."""
        for name in ("threads", "warps", "taken_threads", "taken_warps", "parted"):
            ours, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, [a + factor * b for a, b in zip(ours, theirs, strict=True)])
        for head, trips in other.trips.items():
            for number, threads in trips.items():
                self.trips[head][number] = self.trips[head].get(number, 0) + factor * threads
