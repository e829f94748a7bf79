# problem: loop
# loses: loop-batches, loop-traces
# reason: the result of train is wrong in


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)

    @tf.function
    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, weights, t))
        weights.assign_sub(rate * tape.gradient(loss, weights))

    for rate in rates[: max(1, len(rates) - 1)]:
        step(x, t, tf.constant(rate, tf.float32))
    return weights.numpy()
