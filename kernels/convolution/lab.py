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
    code_cells=64,
    pictures=9,
    shown={"conv-layouts": "The bytes that a warp's load along the depth asks for and gets, in NCHW and in NHWC"},
)
