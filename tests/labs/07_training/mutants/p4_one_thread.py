# problem: op
# loses: op-forward
# reason: one thread does too much of the work(.|\n)*by thread 0 of block 0: (nearly )?all of it


@cuda.jit
def forward(x, bias, y):
    """y = max(x + bias, 0) squared; x and y are (rows, columns), bias is (columns,)."""
    first = cuda.grid(1)
    for i in range(x.size if first == 0 else 0):
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
        dx[row, column] = dy[row, column] * (np.float32(2) * z)


@tf.custom_gradient
def squared(x, bias):
    """Return y, and a function from dy to the gradients of x and bias; all of them are tensors."""
    y = tf.numpy_function(lambda *arrays: launch(forward, *arrays), (x, bias), tf.float32)

    def gradients(dy):
        dx = tf.numpy_function(lambda *arrays: launch(backward, *arrays), (x, bias, dy), tf.float32)
        dx.set_shape(x.shape)
        return dx, tf.reduce_sum(dx, axis=0)

    return y, gradients
