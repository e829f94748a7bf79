"""The record of lab 04."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "04_matrix_multiply",
    "Matrix multiply",
    "cuBLAS is 1.5 × faster on V100 than on P100",
    benchmark="benchmark",
    launches="launches",
    counted="counting",
    code_cells=101,
    pictures=19,
    shown={
        "matmul-warp-drawn": "The tiles of A, B and C that a block, its first warp and its first thread work on",
        "matmul-ladder": "TFLOP/s of each step, beside cuBLAS and the measured peak of multiply-adds",
        "matmul-pass-roofline": "Each step under the roofline of the path from shared memory and L1 to the cores",
    },
)
