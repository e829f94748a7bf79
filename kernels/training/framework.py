"""TensorFlow for one process of this lab: `from kernels.training.framework import tf`.

Two logical devices on one CPU, so that a step on two devices can be written on a machine that has one. Importing this
module takes seconds, most of them TensorFlow's.
"""

from warpcourse.bench.lab import need
from warpcourse.bench.tensorflow_start import start

need("07")
DEVICES = ("CPU:0", "CPU:1")
tf = start(devices=len(DEVICES))

__all__ = ["DEVICES", "tf"]
