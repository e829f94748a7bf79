# problem: loop
# loses: loop-traces
# reason: got +0 runs


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)

    @tf.function
    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, weights) - t) ** 2)
        weights.assign_sub(rate * tape.gradient(loss, weights))

    for rate in rates:
        step(x, t, tf.constant(rate, tf.float32))
    return weights.numpy()
