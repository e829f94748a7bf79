"""The record of lab 08."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "08_recomputation",
    "Training in less memory",
    "√n memory for one more forward pass",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=6,
    pictures=1,
    shown={"recomputation-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
