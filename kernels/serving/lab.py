"""The record of lab 11."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "11_serving",
    "Is the GPU busy? Utilisation, concurrency and serving",
    "MPS gives 7 × the inference throughput",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=7,
    pictures=1,
    shown={"serving-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
