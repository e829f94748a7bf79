"""The record of lab 13."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "13_attention",
    "Attention: where fusion meets recomputation",
    "attention runs as fast as matrix products, and recomputing beats reading",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=7,
    pictures=1,
    shown={"attention-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
