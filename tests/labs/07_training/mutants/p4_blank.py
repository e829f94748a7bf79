# problem: op
# loses: op-forward, op-backward, op-tensorflow
# reason: forward is not written yet

import tensorflow as tf

from warplab import cp


@cuda.jit
def forward(x, bias, y):
    """y = max(x + bias, 0) squared; x and y are (rows, columns), bias is (columns,)."""


@cuda.jit
def backward(x, bias, dy, dx):
    """dx = dy times the derivative of forward's y by x."""


def launch(kernel, x, *others):
    """Run a kernel on NumPy arrays; return its last argument, an array like x."""
    out = cp.empty(x.shape, np.float32)
    kernel[-(-x.size // 128), 128](*(cp.asarray(np.ascontiguousarray(a)) for a in (x, *others)), out)
    return cp.asnumpy(out)


@tf.custom_gradient
def squared(x, bias):
    """Return y, and a function from dy to the gradients of x and bias; all of them are tensors."""


def value_and_gradients(x, bias, weights):
    """Return y, and the gradients of the sum of weights * y by x and by bias, as arrays."""
    x, bias = tf.constant(x), tf.constant(bias)
    with tf.GradientTape() as tape:
        tape.watch([x, bias])
        y = squared(x, bias)
        loss = tf.reduce_sum(y * weights)
    dx, dbias = tape.gradient(loss, [x, bias])
    return [y.numpy(), dx.numpy(), dbias.numpy()]
