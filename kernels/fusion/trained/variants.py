"""The trained network as it is measured: without any pass, and optimised in each precision."""

import contextlib
import functools
import io

from kernels.fusion.graph import Graph
from kernels.fusion.passes import quantise, remove_dead, remove_no_ops
from kernels.fusion.passes.optimise import optimise
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import trained_graph

UNFUSED = "unfused float32"
KINDS = (UNFUSED, "float32", "float16", "int8")


@functools.cache
def variant(kind: str, calibration: str = "entropy") -> Graph:
    """Return one of KINDS. The unfused network has lost its dead layers and no-ops, which no framework runs either.

    `calibration`: how INT8's scales are chosen, a key of quantise.METHODS. ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no variant {kind!r}; choose one of {', '.join(KINDS)}")
    with contextlib.redirect_stdout(io.StringIO()):  # what the passes say
        if kind == UNFUSED:
            return remove_no_ops(remove_dead(trained_graph()))
        return optimise(trained_graph(), kind, lambda graph: _scales(graph, calibration))


def _scales(graph: Graph, calibration: str) -> dict[str, float]:
    # Only here, since loading the digits takes scikit-learn, and a second.
    return quantise.scales(graph, digits.split()[1].images, method=calibration)
