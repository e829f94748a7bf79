"""bias + GELU as an operation of TensorFlow whose value and gradients are computed by the lab's kernels.

`bias_gelu_op` goes through NumPy: TensorFlow hands the arrays to the host, the kernel's results come back as arrays. It
works inside `tf.function`, on any backend. What device memory handed over by DLPack gains was measured with PyTorch
(`measurements.dlpack_through_pytorch`).

Do not give it to a `tf.function` as an argument: that takes the decorator of `tf.custom_gradient` off, and calls what
is below. Name it inside.
"""

from typing import Any

import numpy as np

from kernels.training import bias_gelu
from kernels.training.framework import tf
from warplab.dropin import choice

KERNEL = "cuda"


def launch_forward(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return gelu(x + bias) by the kernel, from and to host memory; x of shape (rows, columns), bias of (columns,)."""
    cp = choice.load("cp")
    y = cp.empty(x.shape, np.float32)
    return cp.asnumpy(bias_gelu.forward(cp.asarray(x), cp.asarray(bias), y, KERNEL))


def launch_backward(x: np.ndarray, bias: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (dx, dbias) by the kernel, from and to host memory."""
    cp = choice.load("cp")
    there = [cp.asarray(np.ascontiguousarray(array)) for array in (x, bias, dy)]
    dx, dbias = cp.empty(x.shape, np.float32), cp.empty(bias.shape, np.float32)
    bias_gelu.backward(*there, dx, dbias, KERNEL)
    return cp.asnumpy(dx), cp.asnumpy(dbias)


@tf.custom_gradient
def bias_gelu_op(x: Any, bias: Any) -> Any:
    """Return gelu(x + bias), with gradients: x float32 of shape (rows, columns), bias of (columns,)."""
    y = tf.numpy_function(launch_forward, (x, bias), tf.float32)
    y.set_shape(x.shape)  # numpy_function does not know what comes back

    def gradients(dy: Any) -> tuple[Any, Any]:
        dx, dbias = tf.numpy_function(launch_backward, (x, bias, dy), (tf.float32, tf.float32))
        dx.set_shape(x.shape)
        dbias.set_shape(bias.shape)
        return dx, dbias

    return y, gradients
