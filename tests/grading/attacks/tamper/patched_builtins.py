# tries: puts an all() that is always true among the builtins
# expects: graded 0 0 0 0
# stock: 0 2 0
import builtins

builtins.all = lambda values: True


def double(x):
    return x
