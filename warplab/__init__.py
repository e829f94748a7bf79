"""Warp Lab's bench: `from warplab import cuda, cp, profile`.

On a machine with an NVIDIA GPU `cuda` is numba.cuda and `cp` is cupy; elsewhere they are stand-ins on the simulator.
Names are loaded when they are first used: importing warplab alone needs the standard library only.
In a notebook the import also brings the `%%cuda` cell magic.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys

# name -> module that defines it (the module itself where the two are the same)
_NAMES = {
    "CompileError": "compilers",
    "CudaSource": "kernel",
    "Profile": "profiling",
    "SimulatorError": "simulator",
    "cards": "cards",
    "checks": "checks",
    "draw_accesses": "figures",
    "draw_banks": "figures",
    "draw_grid": "figures",
    "draw_roofline": "figures",
    "draw_timeline": "figures",
    "heat_map": "figures",
    "predict": "roofline",
    "predict_all": "roofline",
    "profile": "profiling",
    "resources": "resources",
    "simulate": "kernel",
}
_BACKEND_NAMES = {"cuda": ("numba.cuda", "warplab.dropin.cuda"), "cp": ("cupy", "warplab.dropin.cp")}

__all__ = [*_BACKEND_NAMES, *_NAMES]


def __getattr__(name: str):
    if name in _BACKEND_NAMES:
        value = _load_backend(*_BACKEND_NAMES[name])
    elif name in _NAMES:
        module = _importlib.import_module(f"{__name__}.{_NAMES[name]}")
        value = module if _NAMES[name] == name else getattr(module, name)
    else:
        raise AttributeError(f"module 'warplab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load_backend(on_gpu: str, on_simulator: str):
    from warplab import backend

    backend.announce()
    if backend.name() == "gpu":
        from warplab import gpu

        gpu.install()
        return _importlib.import_module(on_gpu)
    module = _importlib.import_module(on_simulator)
    getattr(module, "install", lambda: None)()
    return module


def load_ipython_extension(shell) -> None:
    """`%load_ext warplab`; importing warplab in a notebook does the same."""
    from warplab import magic

    magic.register(shell)


def _register_in_notebook() -> None:
    ipython = _sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        load_ipython_extension(shell)


_register_in_notebook()
