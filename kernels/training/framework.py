"""TensorFlow for one process of a lesson: `from kernels.training.framework import tf`.

Set before TensorFlow starts, since it reads most of this once: no log on stderr; its own kernels in place of oneDNN's,
whose rounding depends on the processor; two threads; and two logical devices on one CPU, so that a step on two devices
can be written on a machine that has one. On a machine with a GPU, memory is taken as it is needed: kernels launched by
CuPy live on the same card. (What a GPU does here is untested.)

Importing this module takes seconds, most of them TensorFlow's.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow as tf

THREADS = 2
DEVICES = ("CPU:0", "CPU:1")


def _prepare() -> None:
    tf.get_logger().setLevel("ERROR")  # warnings about retracing, which the lesson provokes
    try:
        tf.config.threading.set_intra_op_parallelism_threads(THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(THREADS)
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * len(DEVICES))
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as late:
        raise RuntimeError(
            "TensorFlow has run in this process already, and devices can be set up only before; restart the kernel and "
            "import kernels.training.framework first"
        ) from late


_prepare()

__all__ = ["DEVICES", "tf"]
