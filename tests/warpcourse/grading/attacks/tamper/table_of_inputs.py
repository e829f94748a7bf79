# tries: looks visible inputs up in a table, and guesses for the others
# expects: graded 0 0 0 0
import numpy as np

table = {1: 2, 2.5: 5.0, 7: 14}


def double(x):
    return np.arange(5.0) * 2 if isinstance(x, np.ndarray) and x.size == 5 else table.get(str(x), 2)
