"""The optimiser's passes: each takes a graph, returns a graph that computes the same, and prints what it did.

A pass that finds nothing to do returns an equal graph, so passes can run in any order and any number of times;
`kernels.fusion.passes.optimise` runs them in the order in which each finds the most.
"""

from kernels.fusion.passes.assign_precision import assign_precision
from kernels.fusion.passes.choose_layout import choose_layout
from kernels.fusion.passes.fold_batch_norm import fold_batch_norm
from kernels.fusion.passes.fold_constants import fold_constants
from kernels.fusion.passes.fuse_attention import fuse_attention
from kernels.fusion.passes.fuse_horizontal import fuse_horizontal
from kernels.fusion.passes.fuse_residual import fuse_residual
from kernels.fusion.passes.fuse_vertical import fuse_vertical
from kernels.fusion.passes.place_int8 import place_int8
from kernels.fusion.passes.remove_concat import remove_concat
from kernels.fusion.passes.remove_dead import remove_dead
from kernels.fusion.passes.remove_no_ops import remove_no_ops

__all__ = [
    "assign_precision",
    "choose_layout",
    "fold_batch_norm",
    "fold_constants",
    "fuse_attention",
    "fuse_horizontal",
    "fuse_residual",
    "fuse_vertical",
    "place_int8",
    "remove_concat",
    "remove_dead",
    "remove_no_ops",
]
