"""Checks of a learner's answers: `kernel` for kernels, `examples` and `function` for functions, `array` for arrays,
`predictions` for numbers to be predicted.

A check prints one line and returns None, or raises `CheckFailed`, whose message says what was expected, what came,
for which input, and where to look.
"""

from warplab.checks.arrays import array
from warplab.checks.cases import DEFAULT_SIZES, Case, cover, cover_tiles, distinct, elementwise, summable
from warplab.checks.errors import CheckFailed
from warplab.checks.functions import examples, function
from warplab.checks.kernels import kernel
from warplab.checks.predictions import predictions

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
