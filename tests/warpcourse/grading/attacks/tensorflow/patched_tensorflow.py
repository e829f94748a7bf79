# tries: patches TensorFlow so that every tensor equals everything and every comparison holds
# expects: graded 0 0 0
import numpy as np


class Equal(np.ndarray):
    def __eq__(self, other):
        return np.True_

    __ne__ = __lt__ = __gt__ = __sub__ = __eq__
    __hash__ = None


tf.Tensor.__eq__ = tf.Variable.__eq__ = lambda self, other: True
for cls in {type(tf.constant(1.0)), tf.Variable}:
    try:
        cls.numpy = lambda self: np.zeros(1).view(Equal)
        cls.__array__ = lambda self, dtype=None, copy=None: np.zeros(1).view(Equal)
    except TypeError:
        pass
tf.reduce_all = tf.reduce_any = lambda *arguments, **options: True
np.testing.assert_allclose = lambda *arguments, **options: None
print("TRIED")


def double(x):
    return tf.constant(x)


# %% answer
answer = tf.Variable(0)
