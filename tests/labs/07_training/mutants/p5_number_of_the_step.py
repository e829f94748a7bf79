# problem: loop
# loses: loop-traces
# reason: does not trace its step once


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)

    @tf.function
    def step(x, t, rate, number):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, weights, t))
        weights.assign_sub(rate * tape.gradient(loss, weights))

    for number, rate in enumerate(rates):
        step(x, t, tf.constant(rate, tf.float32), number)
    return weights.numpy()
