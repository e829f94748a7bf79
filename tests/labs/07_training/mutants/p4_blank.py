# problem: op
# loses: op-forward, op-backward, op-tensorflow
# reason: forward is not written yet


@cuda.jit
def forward(x, bias, y):
    """y = max(x + bias, 0) squared; x and y are (rows, columns), bias is (columns,)."""


@cuda.jit
def backward(x, bias, dy, dx):
    """dx = dy times the derivative of forward's y by x."""


@tf.custom_gradient
def squared(x, bias):
    """Return y, and a function from dy to the gradients of x and bias; all of them are tensors."""
