"""The record of lab 02."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "02_memory_access",
    "Memory access",
    "coalesced L1 reaches 90 % of hand-managed shared memory",
    benchmark="benchmark",
    launches="launches",
    code_cells=100,
    pictures=19,
    shown={
        "memory-42": "Banks that the lanes of a warp load a padded tile's column from: 1 wavefront",
        "memory-16": "Bandwidth of a strided copy, beside its sectors per request",
    },
)
