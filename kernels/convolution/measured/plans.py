"""What cuDNN offers for some layers of ResNet-50, measured: plan tables, layouts, and the sources' own search."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kernels.convolution.cudnn import plan_table
from kernels.convolution.cudnn.find import ForwardPass
from kernels.convolution.cudnn.graph import NOTES, ConvolutionGraph
from kernels.convolution.cudnn.library import version
from kernels.convolution.cudnn.plan_table import OK, Row, full_precision
from kernels.convolution.cudnn.plans import time_plans
from kernels.convolution.definition import networks, operands
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.definition.networks import label

# Of networks.convolutions(): the image's, 3 × 3 from large to small images, and 1 × 1 to and from many channels.
LAYERS = (0, 2, 3, 7, 16, 23)
FULL = 2  # the layer whose table is recorded whole
FORMATS = (("NHWC", "float16"), ("NCHW", "float32"))
RUNS = 5
KEPT_FASTEST, KEPT_PER_STATUS = 3, 1


def layers() -> list[networks.LayerGroup]:
    """Return the layers of the plan tables."""
    known = networks.convolutions()
    return [known[i] for i in LAYERS]


def table_of(layer: networks.LayerGroup, kind: str, layout: str, dtype: str) -> dict[str, Any]:
    """Measure every plan of a layer's pass, timed and checked: `rows` as `plan_table` describes them, and what they are
    of."""
    conv = layer.convolution
    graph = ConvolutionGraph(conv, kind, layout, dtype, others=True)
    timed = time_plans(graph, operands.random_sets(conv, kind, layout, dtype, RUNS), runs=RUNS, notes=NOTES)
    return {
        "layer": label(layer),
        "convolution": str(conv),
        "pass": kind,
        "layout": layout,
        "dtype": dtype,
        "flops": conv.flops,
        "bytes": conv.bytes(2 if dtype == "float16" else 4),
        "plans": len(timed.rows),
        "statuses": dict(Counter(row["status"] for row in timed.rows)),
        "rows": timed.rows,
    }


def whole_table() -> dict[str, Any]:
    """Measure all plans of one layer's forward pass, float32, NCHW: the table that the sources' search gives, today."""
    return {"cudnn": version(), **table_of(networks.convolutions()[FULL], "forward", "NCHW", "float32")}


def plan_tables() -> dict[str, Any]:
    """Measure tables of the layers, passes and formats; of each the rows that `kept` keeps."""
    tables = [
        table_of(layer, kind, layout, dtype) for layer in layers() for kind in PASSES for layout, dtype in FORMATS
    ]
    return {
        "cudnn": version(),
        "tables": [{**table, "rows": kept(table["rows"], engines=_all_engines(table))} for table in tables],
    }


def _all_engines(table: dict[str, Any]) -> bool:
    """Return whether to keep each engine's fastest plan: where they differ most in time, workspace and error."""
    return table["pass"] == "forward" and table["dtype"] == "float32"


def kept(rows: Sequence[Row], *, engines: bool = True) -> list[Row]:
    """Return the rows worth recording, in their order: the first choice, the fastest, those that a workspace limit may
    choose, of each other status the first ones; with `engines`, the fastest of each.
    """
    running = sorted(plan_table.able(rows), key=lambda row: row["seconds"])
    wanted = {row["id"] for row in [*running[:KEPT_FASTEST], *plan_table.frontier(rows), *full_frontier(rows)]}
    if engines:
        wanted |= set({row["engine"]: row["id"] for row in reversed(running)}.values())
    if any(row["proposed"] for row in running):
        wanted.add(plan_table.first_choice(rows)["id"])
    for status in {row["status"] for row in rows} - {OK}:
        wanted |= {row["id"] for row in [row for row in rows if row["status"] == status][:KEPT_PER_STATUS]}
    return [row for row in rows if row["id"] in wanted]


def full_frontier(rows: Sequence[Row]) -> list[Row]:
    """Return `plan_table.frontier` of the plans without TF32."""
    return plan_table.frontier(full_precision(rows))


def layouts() -> list[dict[str, Any]]:
    """Measure the fastest plan of each layer's forward pass by layout and type."""
    return [{"layer": label(layer), **_fastest_by_format(layer.convolution)} for layer in layers()]


def _fastest_by_format(conv: Convolution) -> dict[str, Any]:
    found = {}
    for dtype in ("float16", "float32"):
        for layout in ("NCHW", "NHWC"):
            graph = ConvolutionGraph(conv, "forward", layout, dtype)
            timed = time_plans(graph, operands.random_sets(conv, "forward", layout, dtype, RUNS), checked=False)
            row = timed.fastest()[0]
            found[f"{dtype} {layout}"] = {"seconds": row["seconds"], "workspace_bytes": row["workspace_bytes"]}
    return found


def searches() -> dict[str, Any]:
    """Measure the sources' own flow on one layer: what `cudnnFindConvolutionForwardAlgorithmEx` returns, by format."""
    layer, found = networks.convolutions()[FULL], []
    for layout, dtype, tensor_cores in (
        ("NCHW", "float32", False),
        ("NCHW", "float32", True),
        ("NCHW", "float16", True),
        ("NHWC", "float16", True),
    ):
        x, w, y = operands.random_sets(layer.convolution, "forward", layout, dtype, 1)[0]
        error = operands.error_of(layer.convolution, "forward", layout, (x, w, y))
        with ForwardPass(layer.convolution, layout, dtype, tensor_cores=tensor_cores) as forward:
            forward.find(x, w, y)  # the first search loads kernels
            rows = forward.find(x, w, y)
            for row in rows:
                row["relative_error"] = _error_of_run(forward, row, (x, w, y), error)
        found.append({"layout": layout, "dtype": dtype, "tensor_cores": tensor_cores, "rows": rows})
    return {"cudnn": version(), "layer": label(layer), "convolution": str(layer.convolution), "searches": found}


def _error_of_run(forward: ForwardPass, row: dict[str, Any], arrays: operands.Arrays, error: Any) -> float | None:
    if row["status"] != OK:
        return None
    arrays[2].fill(float("nan"))
    forward.run(row["algorithm"], *arrays)
    return error(arrays[2])
