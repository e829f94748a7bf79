"""The record of lab 06."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "06_convolution",
    "Convolution and cuDNN",
    "convolution is 80 to 90 % of a network's run time",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=6,
    pictures=1,
    shown={"convolution-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
