"""Tactics: the ways to run a layer, in a registry that is open for more.

    tactics.candidates(layer)          # those that can run it, the default first
    tactics.register(tactics.Tactic("mine", ("cbr",), refuses, weights, bind))

A tactic says what it refuses and why, lays out a layer's weights as its kernels read them, and binds its kernels to
arrays. The engine calls what `bind` returns, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.fusion.layer import Layer
from warplab.bench.lab_kernels import Kernel, launch

Arrays = Mapping[str, Any]


class NoTactic(ValueError):
    """No tactic can run a layer: the message names it, and says why each one refused."""


@dataclass(frozen=True)
class Call:
    """One launch, bound to its arrays. `kernel`: its name, for reports. `queue()` queues it on the current stream."""

    kernel: str
    queue: Callable[[], None]


@dataclass(frozen=True)
class Tactic:
    """One way to run layers of some operators.

    `refuses(layer)`: why it cannot run a layer, "" if it can. `weights(layer)`: host arrays as its kernels read them.
    `bind(layer, inputs, outputs, weights)`: the launches. `inputs`: device arrays of the tensors read; `outputs`: of
    the tensors written, whole, one for each slice; shaped (batch, *shape), images in the tensor's layout. `weights`:
    the device copies of what `weights(layer)` gave, under the same names. `capability`: least compute capability, 80
    for 8.0. `sort`: how early the default choice takes it, the smallest first; None: only tuning does.
    """

    name: str
    ops: tuple[str, ...]
    refuses: Callable[[Layer], str]
    weights: Callable[[Layer], dict[str, np.ndarray]]
    bind: Callable[[Layer, Sequence[Any], Sequence[Any], Arrays], list[Call]]
    capability: int = 0
    sort: Callable[[Layer], float] | None = None


_registry: dict[str, Tactic] = {}


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
    """The tactic of that name; ValueError lists those that there are."""
    if name not in _registry:
        raise ValueError(
            f"there is no tactic {name!r}; there are {', '.join(_registry)}. If a notebook registered it, register it "
            "again before a plan that names it is loaded"
        )
    return _registry[name]


def candidates(layer: Layer, capability: int | None = None) -> list[Tactic]:
    """The tactics that can run a layer, the default first. `capability`: of the device; None leaves it open.

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


def call(kernel: Kernel, grid: int, block: int, arguments: tuple) -> Call:
    """One launch of a lab's kernel. The function is looked up now, so that nothing is compiled while the engine runs."""
    function = kernel.function()
    return Call(kernel.name, lambda: launch(function, grid, block, arguments))
