# problem: loop
# loses: loop-traces
# reason: does not trace its step once(.|\n)*got +[3-7] for

import tensorflow as tf


def train(x, t, start, rates):
    """Return the weights after a step with each rate, and the number of traces."""
    weights = tf.Variable(start)

    traces = 0
    for rate in rates:

        @tf.function
        def step(x, t, rate):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.linalg.matvec(x, weights) - t) ** 2)
            weights.assign_sub(rate * tape.gradient(loss, weights))

        step(x, t, tf.constant(rate, tf.float32))
        traces += step.experimental_get_tracing_count()
    return {"weights": weights.numpy(), "traces": traces}
