"""The record of lab 06."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "06_convolution",
    "Convolution and cuDNN",
    "convolution is 80 to 90 % of a network's run time",
    benchmark="benchmark",
    launches="launches",
    counted="lesson.counting",
    code_cells=98,
    pictures=11,
    shown={
        "conv-algorithms-measured": "Time and error of all algorithms on one layer, the course's and cuDNN's",
        "conv-ladder": "Speed of step 5 on ResNet-50's convolutions, beside cuDNN's fastest plan",
        "conv-verdict-plans": "Time against workspace of cuDNN's plans for one layer, and those that a limit chooses",
        "conv-verdict-network": "ResNet-50's training as treemaps of its layers' time, in FP32 and in mixed precision",
        "conv-lstm-measured": "A step of an LSTM: a kernel per operation, fused, and persistent, beside cuDNN's",
    },
)
