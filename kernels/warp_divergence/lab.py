"""The record of lab 03."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "03_warp_divergence",
    "Warp divergence",
    "on Volta, branches of one warp can wait for each other",
    benchmark="benchmark",
    launches="launches",
    code_cells=96,
    pictures=16,
    shown={
        "divergence-handshake-deadlock": "Which lanes of a warp run in each step, and which wait for others",
        "divergence-histogram": "Bandwidth of each histogram of skewed data, beside CUB and CuPy",
    },
)
