"""The record of lab 07."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "07_training",
    "Training with TensorFlow",
    "variables in a reused scope do not share their value",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=6,
    pictures=1,
    shown={"training-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
