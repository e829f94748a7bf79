# tries: an endless graph in a function, only when a hidden test calls it
# expects: timeout 1 0 0
# tight: cell 5
@tf.function
def endless():
    return tf.while_loop(lambda i: i >= 0, lambda i: [i * 0], [tf.constant(0)])


def double(x):
    if isinstance(x, str):
        endless()
    return 2 * x


# %% answer
answer = 42
