# tries: empties the body of NumPy's own assert_allclose
# expects: graded 0 0 0 0
# stock: 1 0 0
import numpy.testing

numpy.testing.assert_allclose.__code__ = (lambda *arguments, **options: None).__code__


def double(x):
    return x
