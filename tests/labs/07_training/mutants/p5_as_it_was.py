# problem: loop
# loses: loop-one-step, loop-batches, loop-traces
# reason: train returns the weights that it began with

import tensorflow as tf

weights = tf.Variable(tf.zeros(3))


@tf.function
def step(x, t, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.linalg.matvec(x, weights) - t) ** 2)
    weights.assign_sub(rate * tape.gradient(loss, weights))


def train(x, t, start, rates):
    """Return the weights after a step with each rate, and the number of traces."""
    weights = tf.Variable(start)
    before = step.experimental_get_tracing_count()
    for rate in rates:
        step(x, t, rate)
    return {"weights": weights.numpy(), "traces": step.experimental_get_tracing_count() - before}
