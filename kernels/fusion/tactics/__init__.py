"""Ways to run a layer on a GPU: the kernels with their tiles, and the registry that offers them, open for more."""

from kernels.fusion.tactics.layer import Layer, layers
from kernels.fusion.tactics.registry import NoTactic, candidates, find, forget, register
from kernels.fusion.tactics.tactic import Call, Tactic
from kernels.fusion.tactics.timing_cache import TimingCache

__all__ = ["Call", "Layer", "NoTactic", "Tactic", "TimingCache", "candidates", "find", "forget", "layers", "register"]
