# tries: takes memory in a graph, where none of Python's runs
# expects: graded 0 0 0
# tight: yes
@tf.function
def much(n):
    return tf.fill([n], 1.0)


try:
    much(tf.constant(1 << 36, tf.int64))
    print("GOT 256 GiB")
except BaseException:
    print("TRIED")
