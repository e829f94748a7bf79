"""The registry of tactics, open for more.

tactics.candidates(layer)          # those that can run it, the default first
tactics.register(Tactic("mine", ("cbr",), refuses, weights, bind))
"""

from kernels.fusion.tactics import cbr_tactics, element_tactics, other_tactics, wgmma_tactics
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.tactic import Tactic


class NoTactic(ValueError):
    """No tactic can run a layer: the message names it, and says why each one refused."""


_MODULES = cbr_tactics, wgmma_tactics, other_tactics, element_tactics
_registry = {tactic.name: tactic for module in _MODULES for tactic in module.TACTICS}


def register(tactic: Tactic, *, replace: bool = False) -> Tactic:
    """Add a tactic to the registry. ValueError if another one has its name, unless it is to be replaced."""
    if tactic.name in _registry and not replace:
        raise ValueError(f"there is a tactic {tactic.name!r} already; choose another name, or pass replace=True")
    _registry[tactic.name] = tactic
    return tactic


def forget(name: str) -> None:
    """Take a tactic out of the registry; nothing happens if there is none of that name."""
    _registry.pop(name, None)


def find(name: str) -> Tactic:
    """Return the tactic of that name; ValueError lists those that there are."""
    if name not in _registry:
        raise ValueError(
            f"there is no tactic {name!r}; there are {', '.join(_registry)}. If a notebook registered it, register it "
            "again before a plan that names it is loaded"
        )
    return _registry[name]


def candidates(layer: Layer, capability: int | None = None) -> list[Tactic]:
    """Return the tactics that can run a layer, the default first. `capability`: of the device; None leaves it open.

    NoTactic if there is none.
    """
    able, refusals = [], []
    for tactic in _registry.values():
        if layer.node.op not in tactic.ops:
            continue
        why = tactic.refuses(layer)
        if not why and capability is not None and capability < tactic.capability:
            why = f"needs compute capability {tactic.capability / 10}, and this device has {capability / 10}"
        if why:
            refusals.append(f"{tactic.name}: {why}")
        else:
            able.append(tactic)
    if not able:
        raise NoTactic(f"no tactic can run {layer}. {'; '.join(refusals) or 'None knows the operator'}")
    return sorted(able, key=lambda tactic: tactic.sort(layer) if tactic.sort else float("inf"))
