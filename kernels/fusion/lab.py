"""The record of lab 09."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "09_fusion",
    "Inference and fusion",
    "TensorRT makes ResNet-50 about 20 × faster",
    status="skeleton",
    benchmark="benchmark",
    launches="launches",
    code_cells=6,
    pictures=1,
    shown={"fusion-accesses": "The elements that the threads of a skeleton's kernel load and store"},
)
