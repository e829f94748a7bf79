# problem: accumulate
# loses: accumulate-tokens, accumulate-half, accumulate-clip
# reason: accumulate returns nothing


def accumulate(parts):
    """Return the gradient of the mean loss over all tokens of all micro-batches, float32."""


def clipped(parts, most):
    """Return what accumulate does, shortened to the norm `most` if it is longer; float32."""
