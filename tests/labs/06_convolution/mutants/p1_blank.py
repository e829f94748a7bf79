# problem: sizes
# loses: sizes-outputs, sizes-flops, sizes-useful
# reason: not written yet


def outputs(length, window, padding, stride, dilation):
    """Return the number of outputs along one axis; at least one window fits."""


def flops(n, c, h, w, k, r, s, padding, stride, dilation, groups):
    """Return the operations of a convolution; padding, stride and dilation are the same along both axes."""


def useful(n, c, h, w, k, r, s, padding, stride, dilation, groups):
    """Return the operations without the products with padding's zeros."""
