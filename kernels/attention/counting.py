"""What the steps move and compute, counted in the simulator: by length, naive beside fused; by language."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.attention.forward_pass import STEPS, forward
from warplab import cp, machine_counts, profile
from warplab.hardware import backend

CASE = 128, 64, 2, 2  # of `of_languages`: length, size, heads, heads of queries for one of keys
PIPES = "FMA", "ALU", "XU", "LSU", "tensor"
# What `of_languages` counts of `triton_kernels` with Triton 3.9.0 (2026-11-26), for where it is not installed.
OF_TRITON = {
    "bytes by DRAM, at least": 99328,
    "shared wavefronts": 2352,
    "FMA instructions": 9152,
    "ALU instructions": 9680,
    "XU instructions": 1232,
    "LSU instructions": 2112,
    "tensor instructions": 384,
    "registers": 88,
}


def of_languages() -> dict[str, dict[str, int]]:
    """Return counts of one attention as Numba (float32), CUDA C++ by `mma.sync` and Triton (float16) compute it.

    Distinct bytes, which DRAM must move at least once; wavefronts of shared memory; warps' instructions of machine code
    for an H100, by pipe; registers of a thread. Triton's are counted in the simulator where it is installed.
    """
    singles, halves = (_operands(*CASE, kind) for kind in (np.float32, np.float16))
    found = {
        "Numba": counted_once(lambda: forward(*singles, step="fused")),
        "CUDA C++": counted_once(lambda: forward(*halves, step="mma")),
    }
    if backend.name() == "gpu" or not importlib.util.find_spec("triton"):
        return found | {"Triton, recorded": OF_TRITON}
    by_triton = importlib.import_module("kernels.attention.triton_kernels").forward_triton
    return found | {"Triton": counted_once(lambda: by_triton(*halves))}


def _operands(length: int, size: int, heads: int, shared_by: int, dtype: Any) -> list[Any]:
    random, shapes = np.random.default_rng(length), (heads, *[heads // shared_by] * 2)
    return [cp.asarray(random.standard_normal((1, n, length, size)).astype(dtype)) for n in shapes]


def counted_once(call: Callable[[], Any]) -> dict[str, int]:
    """Return the counts of the one launch of `call`."""
    with profile() as profiled:
        call()
    counts, code = profiled.counts, machine_counts(profiled[0])
    passes = counts.shared_load_wavefronts + counts.shared_store_wavefronts + counts.shared_copy_wavefronts
    moved = {"bytes by DRAM, at least": sum(profiled[0].footprint.values()), "shared wavefronts": passes}
    by_pipe = {f"{pipe} instructions": round(code.by_pipe[pipe]) for pipe in PIPES}
    return moved | by_pipe | {"registers": code.resources.registers}


def counted(
    step: str | int, length: int, size: int = 64, heads: int = 1, shared_by: int = 1, causal: bool = False
) -> dict[str, Any]:
    """Return counters of a forward pass over random operands, summed over its launches.

    `loaded`, `stored`: bytes of global memory that warps asked for, an address that lanes share once; `sectors`: those
    of 32 bytes that they touched; `stored_once`: bytes that any exact attention must write, output and logarithms of
    sums; `instructions`: of warps. Step 4 loads by TMA, which the simulator does not count in bytes: ValueError.
    """
    chosen = next(s for s in STEPS.values() if step in (s.name, s.number))
    if chosen.name == "wgmma":
        raise ValueError("wgmma loads by TMA, whose bytes are not counted; choose another step")
    dtype = chosen.dtypes[0]
    q_k_v = _operands(length, size, heads, shared_by, dtype)
    with profile() as profiled:
        forward(*q_k_v, causal, step=chosen.name)
    counts = profiled.counts
    return {
        "step": chosen.name,
        "length": length,
        "launches": len(profiled),
        "loaded": counts.global_load_bytes,
        "stored": counts.global_store_bytes,
        "sectors": counts.global_load_sectors + counts.global_store_sectors,
        "stored_once": heads * length * (size * dtype.itemsize + 4),
        "instructions": counts.warp_instructions,
    }
