# tries: answers with structures whose fields have the names of attributes, and that overlap
# expects: graded 0 0 0 0
import numpy as np

names = ["shape", "dtype", "__array_struct__", "T", "\x1b[2J", "a" * 10_000]
fields = {"names": names, "formats": ["<f8"] * 6, "offsets": [0] * 6, "itemsize": 8}


def double(x):
    return np.zeros(np.shape(x), np.dtype(fields))


# %% answer
answer = np.zeros((), np.dtype(fields))[()]
