# tries: replaces the built-in all() by one that is always true
# expects: graded 0 0 0 0
# stock: 0 2 0
import builtins

builtins.all = lambda values: True


def double(x):
    return x
