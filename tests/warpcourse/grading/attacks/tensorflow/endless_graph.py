# tries: an endless loop in a graph, which Ctrl-C does not end, after a right answer
# expects: timeout 1 2 0
# tight: cell 5
# word: longer than|did not stop
def double(x):
    return 2 * x


# %% answer
@tf.function
def endless():
    return tf.while_loop(lambda i: i >= 0, lambda i: [i * 0], [tf.constant(0)])


endless()
answer = 42
