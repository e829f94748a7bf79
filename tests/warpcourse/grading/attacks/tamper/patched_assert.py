# tries: replaces assert_allclose by a function that checks nothing
# expects: graded 0 0 0 0
# stock: 1 0 0
def assert_allclose(*arguments, **options):
    pass


def double(x):
    return x
