"""The record of lab 05."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "05_tensor_cores",
    "Tensor cores",
    "a V100's 640 tensor cores reach 120 TFLOPS",
    benchmark="benchmark",
    launches="launches",
    counted="counting",
    code_cells=60,
    pictures=7,
    further=(("05_tensor_machines", 67, 6),),
    shown={
        "tensor-error-positive": "The error of sums in FP16 and FP32 against their length",
        "tensor-formats-drawn": "The largest error of each format against the size of the number",
        "tensor-verdict-ladder": "TFLOP/s of each step, beside cuBLAS, cuBLASLt and the measured peaks",
    },
)
