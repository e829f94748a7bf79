# problem: loop
# loses: loop-traces
# reason: got +[3-7] runs


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = tf.Variable(start)
    update = tf.function(lambda rate, gradient: weights.assign_sub(rate * gradient))
    for rate in rates:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_errors(x, weights, t))
        update(tf.constant(rate, tf.float32), tape.gradient(loss, weights))
    return weights.numpy()
