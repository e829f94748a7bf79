"""TensorFlow for one process of this lab: `from kernels.recomputation.framework import tf`.

Set before TensorFlow starts, since it reads most of this once: no log on stderr; its own kernels in place of oneDNN's,
whose rounding depends on the processor; two threads. Where there is a GPU, memory is taken as it is needed. (What a GPU
does here is untested.) Importing this module takes seconds, most of them TensorFlow's.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow as tf
from tensorflow.python.framework import op_callbacks  # no public name; `tape` uses it

THREADS = 2


def _prepare() -> None:
    tf.get_logger().setLevel("ERROR")
    try:
        tf.config.threading.set_intra_op_parallelism_threads(THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(THREADS)
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as late:
        raise RuntimeError(
            "TensorFlow has run in this process already, and threads and memory can be set only before; restart the "
            "kernel and import kernels.recomputation.framework first"
        ) from late


_prepare()

__all__ = ["op_callbacks", "tf"]
