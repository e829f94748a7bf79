"""What lessons import: `from warplab import cuda, cp, profile`.

On a machine with an NVIDIA GPU `cuda` is numba.cuda and `cp` is cupy; elsewhere they are stand-ins on the simulator.
Names are loaded when they are first used, so that importing warplab alone needs only the standard library.
In a notebook the import also registers the `%%cuda` cell magic.
PYTEST_DONT_REWRITE: xdist's workers have it before pytest, which would warn.
"""

import importlib as _importlib
import sys as _sys

__version__ = "0.2.0.dev0"

# Name -> module that defines it, or that it names.
# fmt: off
_NAMES = {
    "CompileError": "compile.errors", "CudaSource": "launch.kernel_source", "DeviceDeadlock": "simulator",
    "DeviceRace": "simulator", "PeerAccess": "simulator", "Profile": "report.profile", "SimulatorError": "simulator",
    "assert_counters": "running.assertions", "backend": "hardware.backend", "cards": "hardware.cards",
    "checks": "checks", "draw_accesses": "draw.accesses", "draw_banks": "draw.banks",
    "draw_estimate": "draw.estimated_time", "draw_estimates": "draw.estimated_times", "draw_grid": "draw.grid",
    "draw_roofline": "draw.roofline", "draw_swizzle": "draw.swizzle", "draw_timeline": "draw.timeline",
    "draw_touched": "draw.touched", "estimate": "estimating.estimate", "estimate_if_possible": "estimating.beside",
    "explore_accesses": "draw.explore", "explore_banks": "draw.explore", "explore_timeline": "draw.explore",
    "heat_map": "draw.heat_map", "install": "dropin.imports", "machine_counts": "estimating.machine_counts",
    "occupancy": "hardware.occupancy", "profile": "report.profile", "PtxSource": "launch.kernel_source",
    "resources": "launch.resources", "roofline": "estimating.roofline", "roofline_all": "estimating.roofline",
    "sass": "report.machine_code", "simulate": "launch.simulate", "sliders": "draw.sliders",
    "virtual_devices": "dropin.virtual_devices",
}
# fmt: on
_BACKEND_NAMES = ("cuda", "cp")


def _names_of_course() -> dict[str, str]:
    """Return what warpcourse, if it is there, adds for lessons (name -> module); the engine knows no module of it."""
    try:
        return _importlib.import_module("warpcourse").NAMES
    except ModuleNotFoundError:
        return {}


_MODULES = {name: f"{__name__}.{module}" for name, module in _NAMES.items()} | _names_of_course()
__all__ = [*_BACKEND_NAMES, *_MODULES]


def __getattr__(name: str):
    if name in _BACKEND_NAMES:
        _importlib.import_module(f"{__name__}.dropin.imports").use(name)  # `warplab run` begins to collect
        value = _importlib.import_module(f"{__name__}.dropin.choice").load(name)
    elif name in _MODULES:
        with _importlib.import_module(f"{__name__}.extras").needed_for(f"warplab.{name}"):
            module = _importlib.import_module(_MODULES[name])
        value = getattr(module, name, module)
    else:
        raise AttributeError(f"module 'warplab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell) -> None:
    """Serve `%load_ext warplab`; importing warplab in a notebook does the same."""
    from warplab.dropin import magic

    magic.register(shell)


def _register_in_notebook() -> None:
    ipython = _sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        load_ipython_extension(shell)


_register_in_notebook()
