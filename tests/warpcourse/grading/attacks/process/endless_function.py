# tries: an endless loop in a function, only when a hidden test calls it
# expects: graded 1 0 1 0
# tight: cell 5
import time


def double(x):
    while isinstance(x, str):
        time.sleep(0.01)
    return 2 * x


# %% answer
answer = 42
