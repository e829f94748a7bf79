# problem: op
# loses: op-backward, op-tensorflow
# reason: backward

import tensorflow as tf

from warplab import cp


@cuda.jit
def forward(x, bias, y):
    """y = max(x + bias, 0) squared; x and y are (rows, columns), bias is (columns,)."""
    i = cuda.grid(1)
    if i < x.size:
        row, column = i // x.shape[1], i % x.shape[1]
        z = max(x[row, column] + bias[column], np.float32(0))
        y[row, column] = z * z


@cuda.jit
def backward(x, bias, dy, dx):
    """dx = dy times the derivative of forward's y by x."""
    i = cuda.grid(1)
    if i < x.size:
        row, column = i // x.shape[1], i % x.shape[1]
        z = max(x[row, column] + bias[column], np.float32(0))
        dx[row, column] = dy[row, column] * (np.float32(1) if z > 0 else np.float32(0))


def launch(kernel, x, *others):
    """Run a kernel on NumPy arrays; return its last argument, an array like x."""
    out = cp.empty(x.shape, np.float32)
    kernel[-(-x.size // 128), 128](*(cp.asarray(np.ascontiguousarray(a)) for a in (x, *others)), out)
    return cp.asnumpy(out)


@tf.custom_gradient
def squared(x, bias):
    """Return y, and a function from dy to the gradients of x and bias; all of them are tensors."""
    y = tf.numpy_function(lambda *arrays: launch(forward, *arrays), (x, bias), tf.float32)

    def gradients(dy):
        dx = tf.numpy_function(lambda *arrays: launch(backward, *arrays), (x, bias, dy), tf.float32)
        dx.set_shape(x.shape)
        return dx, tf.reduce_sum(dx, axis=0)

    return y, gradients


def value_and_gradients(x, bias, weights):
    """Return y, and the gradients of the sum of weights * y by x and by bias, as arrays."""
    x, bias = tf.constant(x), tf.constant(bias)
    with tf.GradientTape() as tape:
        tape.watch([x, bias])
        y = squared(x, bias)
        loss = tf.reduce_sum(y * weights)
    dx, dbias = tape.gradient(loss, [x, bias])
    return [y.numpy(), dx.numpy(), dbias.numpy()]
