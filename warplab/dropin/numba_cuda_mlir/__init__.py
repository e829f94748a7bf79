"""numba-cuda-mlir, NVIDIA's successor of numba-cuda, on the simulator.

Its own dispatcher types, compiles and caches; it launches through two classes of its extension module, of which
`launcher` has stand-ins. What kernels call stays its own, in `numba_cuda_mlir.cuda`; the host's functions of that
module (arrays, streams, devices) become those of the stand-in for numba.cuda, which needs numba-cuda beside it.

    from warplab.dropin import numba_cuda_mlir as simulated
    simulated.install()

Read in numba-cuda-mlir 0.6.0. It is an extra, and nothing else of warplab imports it.
"""

from __future__ import annotations

import functools
import os


@functools.cache
def install() -> None:
    """Let `numba_cuda_mlir.cuda` launch on the simulator, in this process. ImportError where it is not installed."""
    import numba_cuda_mlir.cuda as cuda
    from numba_cuda_mlir import numba_cuda, tools
    from numba_cuda_mlir.numba_cuda.core import config
    from numba_cuda_mlir.numba_cuda.cudadrv import devicearray, devices

    from warplab.compile.architecture import DEFAULT_ARCH
    from warplab.dropin.numba_cuda import api
    from warplab.dropin.numba_cuda.cudadrv import devicearray as ours
    from warplab.dropin.numba_cuda.cudadrv.devices import gpus
    from warplab.dropin.numba_cuda_mlir import launcher

    tools._cached_cc = divmod(DEFAULT_ARCH, 10)
    launcher.replace_native()
    for name in ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"):  # costs that the simulator lacks
        if f"NUMBA_{name}" not in os.environ:
            setattr(config, name, 0)
    functions = {name: value for name, value in vars(api).items() if getattr(value, "__module__", "") == api.__name__}
    host = functions | {"event_elapsed_time": api.event_elapsed_time, "gpus": gpus, "DeviceNDArray": ours.DeviceNDArray}
    for module in (cuda, numba_cuda, devices):
        for name, value in host.items():
            if hasattr(module, name):
                setattr(module, name, value)
    for name in ("auto_device", "from_array_like", "from_record_like"):
        setattr(devicearray, name, getattr(ours, name))
