"""One convolution by every algorithm, the lab's and cuDNN's: time, workspace, and error against float64."""

from collections.abc import Iterable
from typing import Any

from kernels.convolution import ladder
from kernels.convolution.cudnn.graph import NOTES, ConvolutionGraph
from kernels.convolution.cudnn.library import version
from kernels.convolution.cudnn.plan_table import OK, Row
from kernels.convolution.cudnn.plans import time_plans
from kernels.convolution.definition import networks, operands
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.definition.networks import label
from kernels.convolution.measured.ratios import MOST_ERROR, launcher
from warpcourse.bench.timing import time_gpu

# Of networks.convolutions(): windows of 3 × 3 on large and on small images, and 1 × 1.
LAYERS = (2, 3, 17)
RUNS = 5
FORMATS = (("NCHW", "float32"), ("NHWC", "float16"))


def algorithms() -> dict[str, Any]:
    """Return `layers`: each with `rows` of algorithm, by ("lab" or "cuDNN"), layout, dtype, seconds, workspace_bytes
    and relative_error.
    """
    known, found = networks.convolutions(), []
    for layer in (known[i] for i in LAYERS):
        rows = []
        for layout, dtype in FORMATS:
            sets = operands.random_sets(layer.convolution, "forward", layout, dtype, RUNS)
            rows += _ours(layer.convolution, layout, dtype, sets) + _cudnn(layer.convolution, layout, dtype, sets)
        found.append({"layer": label(layer), "convolution": str(layer.convolution), "rows": rows})
    return {"cudnn": version(), "layers": found}


def _ours(conv: Convolution, layout: str, dtype: str, sets: list[operands.Arrays]) -> list[dict[str, Any]]:
    """Time every step of the lab that can compute this convolution here."""
    error, rows = operands.error_of(conv, "forward", layout, sets[0]), []
    for step in ladder.FORWARD.values():
        if step.refuses(conv, layout, dtype) or step.missing():
            continue
        function, result = launcher(step, conv, dtype), sets[0][2]
        result.fill(float("nan"))
        function(*sets[0])
        found = error(result)
        row = _row(step.name, "lab", layout, dtype, time_gpu(function, sets, runs=RUNS).seconds)
        row |= {"workspace_bytes": step.workspace_bytes(conv, dtype), "relative_error": found}
        rows.append(row | {"correct": found < MOST_ERROR[dtype]})
    return rows


def _cudnn(conv: Convolution, layout: str, dtype: str, sets: list[operands.Arrays]) -> list[dict[str, Any]]:
    """Return the fastest plan of each kind of algorithm, as the numerical notes tell them apart."""
    graph = ConvolutionGraph(conv, "forward", layout, dtype, others=True)
    timed = time_plans(graph, sets, runs=RUNS, notes=NOTES)
    rows = []
    for name, plan in fastest_by_kind(timed.rows).items():
        row = _row(name, "cuDNN", layout, dtype, plan["seconds"])
        rows.append(row | {key: plan[key] for key in ("workspace_bytes", "relative_error", "plan")})
    return rows


def fastest_by_kind(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the fastest plan of each `kind`, by its name."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["status"] == OK:
            known = found.setdefault(kind(row), row)
            if row["seconds"] < known["seconds"]:
                found[kind(row)] = row
    return found


def kind(row: Row) -> str:
    """Return what a plan computes, by its numerical notes: "Winograd", "FFT", "tensor cores" or "multiply-adds"."""
    notes = row["numerical"].split()
    if any(note.startswith("WINOGRAD") for note in notes):
        return "Winograd"
    if "FFT" in notes:
        return "FFT"
    return "tensor cores" if "TENSOR_CORE" in notes else "multiply-adds"


def _row(algorithm: str, by: str, layout: str, dtype: str, seconds: float) -> dict[str, Any]:
    return {"algorithm": algorithm, "by": by, "layout": layout, "dtype": dtype, "seconds": seconds}
