"""Arithmetic that NumPy does not have as PTX defines it, on whole arrays: one file a kind.

Translated code calls these functions by name. Operands are arrays of one length or of length 1.
"""

from . import bits, conversions, fma, fp8, halves, integers, rounding, special
from .bits import *  # noqa: F403
from .conversions import *  # noqa: F403
from .fma import *  # noqa: F403
from .fp8 import *  # noqa: F403
from .halves import *  # noqa: F403
from .integers import *  # noqa: F403
from .rounding import *  # noqa: F403
from .special import *  # noqa: F403

_FILES = (bits, conversions, fma, fp8, halves, integers, rounding, special)
__all__ = [name for file in _FILES for name in file.__all__]
