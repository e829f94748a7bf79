"""The record of lab 06."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "06_convolution",
    "Convolution and cuDNN",
    "convolution is 80 to 90 % of a network's run time",
    benchmark="benchmark",
    launches="launches",
    code_cells=65,
    pictures=15,
    shown={
        "conv-layouts": "The bytes that a warp's load along the depth asks for and gets, in NCHW and in NHWC",
        "conv-plans-drawn": "Time against workspace of cuDNN's plans for one layer, and those that a limit chooses",
        "conv-gains": "What workspace buys, layer by layer, in float32, TF32 and float16",
        "conv-ladder": "Speed of step 5 on ResNet-50's convolutions, beside cuDNN's fastest plan",
        "conv-network": "ResNet-50's training as treemaps of its layers' time, in float32 and in mixed precision",
    },
)
