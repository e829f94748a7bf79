# problem: loop
# loses: loop-traces
# reason: does not trace its step once(.|\n)*got +[3-7] runs


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)

    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, weights, t))
        weights.assign_sub(rate * tape.gradient(loss, weights))

    for rate in rates:
        step(x, t, tf.constant(rate, tf.float32))
    return weights.numpy()
