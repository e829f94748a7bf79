"""The record of lab 10."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "10_collectives",
    "NCCL, rings, and training across GPUs",
    "nearly linear from 1 to 32 GPUs",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=7,
    pictures=1,
    shown={"collectives-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
