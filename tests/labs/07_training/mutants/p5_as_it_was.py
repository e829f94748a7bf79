# problem: loop
# loses: loop-one-step, loop-batches, loop-traces
# reason: train returns the weights that it began with

weights = tf.Variable(tf.zeros(3))


@tf.function
def step(x, t, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(squared_errors(x, weights, t))
    weights.assign_sub(rate * tape.gradient(loss, weights))


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)
    for rate in rates:
        step(x, t, rate)
    return weights.numpy()
