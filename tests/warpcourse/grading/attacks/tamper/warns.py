# tries: answers right, and writes warnings during the tests
# expects: graded 1 2 1 0
# stock: 0 0 1
import sys


def double(x):
    print("deprecated", file=sys.stderr)
    return 2 * x


# %% answer
answer = 42
