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
    code_cells=63,
    pictures=5,
    shown={
        "serving-first": "Utilisation 80 %: one block on one of 132 SMs",
        "serving-streams-serial": "Copies and kernels of four chunks in one stream",
        "serving-race": "Two streams without an event: each kernel races with its copy",
    },
)
