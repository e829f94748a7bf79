"""Arithmetic as PTX defines it, where NumPy differs, on whole arrays: one file per kind.

Translated code calls these functions by name. Operands are arrays of one length, or of length 1.
"""

import inspect

from warplab.simulator.numerics.bits import *  # noqa: F403
from warplab.simulator.numerics.conversions import *  # noqa: F403
from warplab.simulator.numerics.fma import *  # noqa: F403
from warplab.simulator.numerics.halves import *  # noqa: F403
from warplab.simulator.numerics.integers import *  # noqa: F403
from warplab.simulator.numerics.rounding import *  # noqa: F403
from warplab.simulator.numerics.special import *  # noqa: F403

FUNCTIONS = {name: found for name, found in globals().items() if inspect.isfunction(found)}
