"""cupy.fft on the simulator, by NumPy's functions of the same names."""

import numpy as np

from warplab.dropin.cupy._core.core import lift
from warplab.dropin.cupy._core.missing import do_nothing as _do_nothing
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.missing import small_module as _small_module

_FUNCTIONS = """
    fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
"""
for _name in _FUNCTIONS.split():
    globals()[_name] = lift(getattr(np.fft, _name))


class _PlanCache:
    """The cache of plans. No transform has a plan here, so it stays empty, whatever its limits."""

    clear = set_size = set_memsize = staticmethod(_do_nothing)

    def get_curr_size(self) -> int:
        return 0

    get_curr_memsize = get_curr_size


_cache = _PlanCache()
config = _small_module(
    "cupy.fft.config",
    enable_nd_planning=True,
    use_multi_gpus=False,
    get_plan_cache=lambda: _cache,
    clear_plan_cache=_do_nothing,
)


def __getattr__(name: str):
    raise _missing("cupy.fft", name)
