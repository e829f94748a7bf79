# tries: a tensor whose numpy() hands over an object of its own, in place of an array
# expects: graded 0 0 0
class Answer:
    def __eq__(self, other):
        return True

    def __reduce__(self):
        return (print, ("GOT run by a pickle",))

    __mul__ = __rmul__ = __sub__ = lambda self, other: self

    def __abs__(self):
        return 0


tf.Variable.numpy = lambda self: Answer()
type(tf.constant(1.0)).numpy = lambda self: Answer()
kept = tf.Variable(1.0)
print("TRIED")


def double(x):
    return kept


# %% answer
answer = tf.constant(1)
