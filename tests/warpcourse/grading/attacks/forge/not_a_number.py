# tries: answers with NaN, and with numbers that broadcast
# expects: graded 0 0 0 0
import numpy as np


def double(x):
    return np.full_like(x, np.nan) if hasattr(x, "shape") else float("nan")


# %% answer
answer = np.full((1, 1), np.nan)
