# problem: scaling
# loses: scaling-update, scaling-skip, scaling-grow
# reason: scaled_step returns nothing


def scaled_step(weights, gradients, scale, good, interval, rate):
    """Return new weights, the next scale and the new count of good steps; gradients are float16, `scale` times true."""
