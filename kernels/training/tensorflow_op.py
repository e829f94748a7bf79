"""bias + GELU as an operation of TensorFlow whose value and gradients are computed by the lab's kernels.

`bias_gelu_op` goes through NumPy: TensorFlow hands the arrays to the host, the kernel's results come back as arrays. It
works inside `tf.function`, on any backend. `bias_gelu_on_gpu` hands over the device memory itself by DLPack, without a
copy; it works eagerly or inside `tf.py_function`, and only on a GPU. The second is untested: where the course's GPU
figures come from there is no TensorFlow. The same hand-over was measured with PyTorch
(`measurements.dlpack_through_pytorch`).

Do not give these functions to a `tf.function` as an argument: it takes the decorator of `tf.custom_gradient` off, and
calls what is below. Name them inside it.
"""

from __future__ import annotations

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


def _shared(tensor: Any) -> Any:
    """Return the device memory of an eager tensor as CuPy's array, without a copy."""
    import cupy

    return cupy.from_dlpack(tensor)


@tf.custom_gradient
def bias_gelu_on_gpu(x: Any, bias: Any) -> Any:
    """Return the same for eager tensors on a GPU, whose memory the kernels use in place. Untested.

    ValueError for a tensor in host memory.
    """
    for name, tensor in (("x", x), ("bias", bias)):
        if "GPU" not in tensor.device:
            raise ValueError(f"{name} is on {tensor.device}; create it under tf.device('GPU:0'), or use bias_gelu_op")
    y = tf.zeros_like(x)
    _wait()
    bias_gelu.forward(_shared(x), _shared(bias), _shared(y), KERNEL)
    _wait_for_kernel()

    def gradients(dy: Any) -> tuple[Any, Any]:
        dx, dbias = tf.zeros_like(x), tf.zeros_like(bias)
        _wait()
        bias_gelu.backward(*map(_shared, (x, bias, dy, dx, dbias)), KERNEL)
        _wait_for_kernel()
        return dx, dbias

    return y, gradients


def _wait() -> None:
    """Wait until TensorFlow, which has streams of its own, has computed what it was asked for."""
    tf.test.experimental.sync_devices()


def _wait_for_kernel() -> None:
    """Before TensorFlow reads what the kernel writes."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()
