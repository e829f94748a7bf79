"""The record of lab 02."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "02_memory_access",
    "Memory access",
    "coalesced L1 reaches 90 % of hand-managed shared memory",
    benchmark="benchmark",
    launches="launches",
    code_cells=58,
    pictures=21,
    shown={
        "memory-40": "Banks that the lanes of a warp store to and load from in a tile: 1 wavefront, and 32",
        "memory-52": "Bandwidth of each transpose, beside a copy",
    },
)
