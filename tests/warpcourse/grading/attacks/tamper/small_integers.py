# tries: changes Python's own small integers and True, so that wrong numbers are right here
# expects: graded 0 0 0 0
import ctypes


def double(x):
    return x


# %% answer
answer = 43
ctypes.memmove(id(42) + 24, b"\x2b", 1)
assert answer == int("42")
