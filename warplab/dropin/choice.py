"""Which libraries `cuda` and `cp` are: numba.cuda and cupy on a GPU, their stand-ins on the simulator elsewhere."""

import importlib
from types import ModuleType

from warplab.extras import needed_for
from warplab.hardware import backend
from warplab.launch import on_gpu

# name -> (module on a GPU, module on the simulator)
MODULES = {"cuda": ("numba.cuda", "warplab.dropin.numba_cuda"), "cp": ("cupy", "warplab.dropin.cupy")}


def load(name: str) -> ModuleType:
    """Return the module that `cuda` or `cp` stands for on this machine, ready to launch kernels.

    Says once per process which backend runs and why. Raises MissingExtra where a package is not installed.
    """
    backend.announce()
    gpu_module, simulator_module = MODULES[name]
    if backend.name() == "gpu":
        on_gpu.install()
        return importlib.import_module(gpu_module)
    with needed_for(f"warplab.{name}"):
        module = importlib.import_module(simulator_module)
    getattr(module, "install", lambda: None)()
    return module
