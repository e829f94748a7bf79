"""The record of lab 08."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "08_recomputation",
    "Training in less memory",
    "√n memory for one more forward pass",
    needs=("tensorflow",),
    benchmark="benchmark",
    launches="launches",
    code_cells=67,
    pictures=5,
    shown={
        "recomputation-plans-drawn": "Which activations are in memory when: all 16 kept, and four segments of four",
        "recomputation-recomputed-drawn": "Live bytes over a step of 64 layers, kept and recomputed",
        "recomputation-resnet-drawn": "What each block of ResNet-101 keeps, and where the segments of two plans begin",
    },
)
