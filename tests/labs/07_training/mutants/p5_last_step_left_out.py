# problem: loop
# loses: loop-batches, loop-traces
# reason: weights .* is wrong

import tensorflow as tf


def train(x, t, start, rates):
    """Return the weights after a step with each rate, and the number of traces."""
    weights = tf.Variable(start)

    @tf.function
    def step(x, t, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, weights) - t) ** 2)
        weights.assign_sub(rate * tape.gradient(loss, weights))

    for rate in rates[: max(1, len(rates) - 1)]:
        step(x, t, tf.constant(rate, tf.float32))
    return {"weights": weights.numpy(), "traces": step.experimental_get_tracing_count()}
