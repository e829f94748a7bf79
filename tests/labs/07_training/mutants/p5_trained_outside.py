# problem: loop
# loses: loop-traces
# reason: train, with targets of its first trace, is wrong in


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights, shown = tf.Variable(start), tf.Variable(start)

    @tf.function
    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, shown, t))
        shown.assign_sub(rate * tape.gradient(loss, shown))

    for rate in rates:
        step(x, t, tf.constant(rate, tf.float32))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, weights) - t) ** 2)
        weights.assign_sub(rate * tape.gradient(loss, weights))
    return weights.numpy()
