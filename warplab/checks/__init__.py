"""Checks of a learner's answers: `kernel` for kernels, `examples` and `function` for functions, `array` for arrays.

Each returns None and prints one line, or raises `CheckFailed`, whose message says what was expected, what came, for
which input, and where to look.
"""

from .arrays import array
from .cases import DEFAULT_SIZES, Case, cover, distinct, elementwise
from .errors import CheckFailed
from .functions import examples, function
from .kernels import kernel

__all__ = [
    "DEFAULT_SIZES",
    "Case",
    "CheckFailed",
    "array",
    "cover",
    "distinct",
    "elementwise",
    "examples",
    "function",
    "kernel",
]
