"""How a sweep measures: seconds by events, as the labs' benchmarks do, or cycles that the kernel itself counted."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from warpcourse.bench.lab_kernels import Sources, launch
from warpcourse.bench.timing import Candidate, time_together

SMS = 132  # of an H100; a sweep fills each of them alike
WIDTHS = {4: "Load4", 8: "Load8", 16: "Load16"}  # bytes of a load: type in caches.cu
CHAINS = (1, 4)
TILES = [(side, vector, barriers) for side in (4, 8) for vector in (1, 4) for barriers in (0, 1, 2)]
LOOPS = [(length, ways) for length in (1, 2, 4, 8, 16, 32) for ways in (1, 2, 4)]  # as in instructions.cu
WALKS = (1, 4, 8)
LOCAL_WORDS = (16, 32, 64, 128, 256)
STEPS = (
    *("ffma", "fadd", "fmnmx", "imad", "imad_hi", "iadd_lop", "shf", "prmt", "select", "popc", "flo", "brev"),
    *("ex2", "rsqrt", "sin", "tanh", "i2f_f2i", "f2f_half", "hfma2", "dfma", "dadd"),
    *("shfl", "shfl_index", "ballot", "match", "redux"),
)
SOURCES = Sources(
    __package__,
    templates={
        "caches.cu": [
            *(
                f"{name}<{kind}>"
                for name in ("l1_hits", "l2_loads", "l2_stores", "store_runs", "loads_apart", "streams")
                for kind in WIDTHS.values()
            ),
            *(f"lists<{ahead}>" for ahead in WALKS),
            *(f"local_words<{words}>" for words in LOCAL_WORDS),
        ],
        "instructions.cu": [
            *(f"chain_{step}<{chains}>" for step in STEPS for chains in CHAINS),
            *(f"chain_lds<{width}, {chains}>" for width in (1, 2, 4) for chains in CHAINS),
            *(f"loops<{length}, {ways}>" for length, ways in LOOPS),
            *(f"tile<{side}, {vector}, {barriers}>" for side, vector, barriers in TILES),
        ],
    },
)


def seconds(file: str, entry: str, blocks: int, block: int, arguments: tuple, shared_bytes: int = 0) -> float:
    """Measure the median seconds of a launch, by events."""
    function = SOURCES.function(file, entry)
    candidate = Candidate(lambda: launch(function, blocks, block, arguments, shared_bytes))
    return time_together({"": candidate}, rounds=1, runs=5, warmup=1)[""].seconds


def cycles(file: str, entry: str, blocks: int, block: int, arguments: tuple) -> float:
    """Return the median over blocks of the cycles that a kernel writes; its last arguments are `cycles` and `out`."""
    import cupy

    spent, out = cupy.zeros(blocks, np.int64), cupy.zeros(2 * blocks * block, np.int32)
    function = SOURCES.function(file, entry)
    found = []
    for _ in range(3):
        launch(function, blocks, block, (*arguments, spent, out))
        found.append(float(np.median(cupy.asnumpy(spent))))
    return statistics.median(found[1:])


def registers(file: str, entry: str) -> int:
    """Count the registers of a thread, as the GPU's driver assembled the kernel."""
    function: Any = SOURCES.function(file, entry)
    return int(function.num_regs)
