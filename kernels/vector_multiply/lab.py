"""The record of lab 01."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "01_vector_multiply",
    "Vector multiply",
    "copying took 1 s, multiplying 80 µs: GPUs suit training, not prediction",
    benchmark="benchmark",
    launches="launches",
    code_cells=82,
    pictures=11,
    shown={
        "multiply-41": "The elements that each thread of two blocks takes in a loop with the stride of the grid",
        "multiply-83": "Bandwidth of each kernel, beside a copy and cupy.multiply",
    },
)
