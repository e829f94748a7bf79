"""numba.cuda's functions that only compile. They need no GPU once a device's compute capability is named."""

import functools
import inspect
from collections.abc import Callable

from numba import cuda

from warplab.compile.numba_internals import numba_without_gpu
from warplab.dropin.simulated_device import COMPUTE_CAPABILITY


def _without_gpu(name: str) -> Callable:
    """Make Numba's function `name` compile for the simulator unless it is given a capability `cc`."""
    function = getattr(cuda, name)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def compile_for(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        capability = given.arguments["cc"] = given.arguments.get("cc") or COMPUTE_CAPABILITY
        with numba_without_gpu(capability):
            return function(*given.args, **given.kwargs)

    return compile_for


def _for_simulator(name: str, compile: Callable) -> Callable:
    """Give `compile` the parameters of Numba's function `name`, which has no `cc`."""

    @functools.wraps(getattr(cuda, name))
    def compile_for_it(pyfunc, sig, **kwargs):
        return compile(pyfunc, sig, **kwargs)

    return compile_for_it


compile = _without_gpu("compile")
compile_ptx = _without_gpu("compile_ptx")
compile_for_current_device = _for_simulator("compile_for_current_device", compile)
compile_ptx_for_current_device = _for_simulator("compile_ptx_for_current_device", compile_ptx)
