"""The record of lab 05."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "05_tensor_cores",
    "Tensor cores",
    "a V100's 640 tensor cores reach 120 TFLOPS",
    benchmark="benchmark",
    launches="launches",
    code_cells=65,
    pictures=10,
    shown={
        "tensor-fragments-drawn": "Which lane holds which element of A, B and D of mma.m16n8k16",
        "tensor-error-positive": "The error of sums in FP16 and FP32 against their length",
        "tensor-ladder-measured": "TFLOP/s of each step, beside cuBLAS, cuBLASLt and the measured peaks",
    },
)
