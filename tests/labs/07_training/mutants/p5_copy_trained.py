# problem: loop
# loses: loop-one-step, loop-batches, loop-traces
# reason: train returns the weights that it began with


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)

    @tf.function
    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, weights, t))
        copy = tf.identity(weights)
        copy -= rate * tape.gradient(loss, weights)

    for rate in rates:
        step(x, t, tf.constant(rate, tf.float32))
    return weights.numpy()
