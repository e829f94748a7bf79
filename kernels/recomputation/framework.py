"""TensorFlow for one process of this lab: `from kernels.recomputation.framework import tf`.

Importing this module takes seconds, most of them TensorFlow's.
"""

import importlib

from warpcourse.bench.lab import need
from warpcourse.bench.tensorflow_start import start

need("08")
tf = start()
op_callbacks = importlib.import_module("tensorflow.python.framework.op_callbacks")  # no public name; `tape` uses it

__all__ = ["op_callbacks", "tf"]
