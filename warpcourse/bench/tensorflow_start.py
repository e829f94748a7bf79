"""TensorFlow for a lab: `tf = start()` sets it up before it runs anything, since it reads most of this once."""

import importlib
import os
import sys
from types import ModuleType

THREADS = 2
_LATE = (
    "TensorFlow has run in this process already, and threads, devices and memory can be set up only before; restart "
    "the kernel and import the lab's framework module first"
)


def start(devices: int = 1, threads: int = THREADS) -> ModuleType:
    """Import TensorFlow, which takes seconds, and return it.

    No log on stderr, not even of the retracing that a lesson provokes; its own kernels in place of oneDNN's, whose
    rounding depends on the processor; two pools of `threads` threads. `devices`: logical devices on the one CPU, at
    least; with more than one, a step on several devices can be written on any machine. On a machine with a GPU, memory
    is taken as it is needed: kernels launched by CuPy live on the same card. (What a GPU does here is untested.)

    May be called again in the same process. RuntimeError if TensorFlow has run otherwise; ValueError for no device.
    """
    for name, value in (("devices", devices), ("threads", threads)):
        if value < 1:
            raise ValueError(f"{name} is {value}; TensorFlow needs at least 1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    # Keras would import scikit-learn for its wrappers, which nobody here uses, where it is installed: 1.7 of 5.6 s.
    hidden = sys.modules.setdefault("sklearn", None) is None  # type: ignore[arg-type]
    try:
        tf = importlib.import_module("tensorflow")
    finally:
        if hidden:
            del sys.modules["sklearn"]
    tf.get_logger().setLevel("ERROR")
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        if devices > 1:
            (cpu,) = tf.config.list_physical_devices("CPU")
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as late:
        raise RuntimeError(_LATE) from late
    return tf
