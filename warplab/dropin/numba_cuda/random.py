"""`numba.cuda.random` on the simulator: xoroshiro128+ generators, one per thread.

Numba's own functions make the first states and draw the numbers, so a seed gives the same numbers as on a GPU.
"""

import numba.cuda.random as _random
from numba.cuda import types as _types

from warplab.dropin.numba_cuda.api import device_array
from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray

_numba_type_ = _types.Module(_random)


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream=0) -> DeviceNDArray:
    """Make the states of `n` generators in device memory, 2**64 numbers apart in the sequence of `seed`."""
    states = device_array(n, _random.xoroshiro128p_dtype)
    _random.init_xoroshiro128p_states(states, seed, subsequence_start, stream)
    return states


def install() -> None:
    """Let Numba's module make its states on the simulator, for `from numba.cuda.random import ...`."""
    _random.create_xoroshiro128p_states = create_xoroshiro128p_states


def __getattr__(name: str):
    return getattr(_random, name)


def __dir__() -> list[str]:
    return dir(_random)
