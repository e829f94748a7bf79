"""Checks of a learner's answers: `kernel` for kernels, `examples` and `function` for functions, `array` for arrays,
`predictions` for numbers to be told beforehand.

Each returns None and prints one line, or raises `CheckFailed`, whose message says what was expected, what came, for
which input, and where to look.
"""

from .arrays import array
from .cases import DEFAULT_SIZES, Case, cover, cover_tiles, distinct, elementwise, summable
from .errors import CheckFailed
from .functions import examples, function
from .kernels import kernel
from .predictions import predictions

__all__ = [
    "DEFAULT_SIZES",
    "Case",
    "CheckFailed",
    "array",
    "cover",
    "cover_tiles",
    "distinct",
    "elementwise",
    "examples",
    "function",
    "kernel",
    "predictions",
    "summable",
]
