# problem: loop
# loses: loop-traces
# reason: train, with targets of its first trace, is wrong in


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    tf.function(squared_errors)(x, tf.constant(start), t)
    weights = start.copy()
    for rate in rates:
        weights -= np.float32(rate * 2 / len(x)) * (x.T @ (x @ weights - t))
    return weights
