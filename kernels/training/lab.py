"""The record of lab 07."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "07_training",
    "Training with TensorFlow",
    "variables in a reused scope do not share their value",
    benchmark="benchmark",
    launches="launches",
    code_cells=67,
    pictures=10,
    shown={
        "training-runs-drawn": "Loss and dead units over the steps: at a rate of 1e-3 every hidden unit dies",
        "training-gradients-drawn": "Gradients of the hidden layer on the range of FP16, plain and scaled",
        "training-rates": "GB/s of bias + GELU and of its gradients: fused by hand, by XLA through JAX, and op by op",
        "training-train": "Loss and accuracy on the digits, with TensorFlow's gelu and with the lesson's kernels",
    },
)
