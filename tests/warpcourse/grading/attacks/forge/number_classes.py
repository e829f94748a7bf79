# tries: answers with subclasses of numbers and arrays that compare, convert and compute as they like
# expects: graded 0 0 0 0
import enum

import numpy as np


class Number(float):
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = float.__hash__
    __sub__ = __rsub__ = __mul__ = __rmul__ = lambda self, other: self


class Array(np.ndarray):
    __array_priority__ = 1e9
    __eq__ = lambda self, other: np.ones(np.shape(other), bool)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return True

    def __array_function__(self, function, types, arguments, options):
        return True


class Answer(enum.IntEnum):
    answer = 41


def double(x):
    if isinstance(x, np.ndarray):
        return np.ma.masked_all(x.shape) if x[0] else x.view(Array)
    return Number(0.0)


# %% answer
answer = Answer.answer
