"""The record of lab 07."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "07_training",
    "Training with TensorFlow",
    "variables in a reused scope do not share their value",
    needs=("tensorflow",),
    benchmark="benchmark",
    launches="launches",
    code_cells=83,
    pictures=6,
    shown={
        "training-fits": "What the network gives: at a rate of 1e-3 a constant, since every hidden unit is dead",
        "training-mended": "The same network with the mean as loss, at a rate of 0.1",
        "training-rates": "GB/s of bias + GELU and of its gradients: fused by hand, by XLA through JAX, and op by op",
        "training-train-drawn": "Loss on the digits by TensorFlow's gelu and by the lesson's kernels; the difference",
    },
)
