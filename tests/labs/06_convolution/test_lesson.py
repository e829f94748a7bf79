"""What lab 06's lesson shows beside pictures: tables of plans, older networks, shares of a network's time; and what it
says of the recordings.
"""

import ast
import math
import symtable

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.convolution import benchmark, lab, ladder, recordings
from kernels.convolution.cudnn import plan_table
from kernels.convolution.cudnn.calls import CALLS
from kernels.convolution.definition import networks
from kernels.convolution.lesson import claim, figures, tables
from tests.support.random_inputs import generator
from warpcourse.bench.recordings import Measurement
from warpcourse.paths import COURSE
from warplab import cp
from warplab.hardware.cards import CARDS


def cells():
    """The lesson's cells by their id."""
    return {cell.id: cell.source for cell in nbformat.read(lab.LAB.notebook, as_version=4).cells}


def defined(*ids):
    """What these cells of the lesson import and define."""
    found = {}
    for name in ids:
        nodes = [
            n for n in ast.parse(cells()[name]).body if isinstance(n, (ast.Import, ast.ImportFrom, ast.FunctionDef))
        ]
        exec(compile(ast.Module(nodes, []), name, "exec"), found)
    return found


def plan(id_, engine, seconds, workspace=0, status="ok", numerical=""):
    return {
        "id": id_,
        "engine": engine,
        "proposed": "A",
        "status": status,
        "seconds": seconds,
        "workspace_bytes": workspace,
        "behavior": "",
        "numerical": numerical,
        "relative_error": None if seconds is None else 1e-6,
    }


PLANS = [
    plan(0, 7, 4e-5, 0, numerical="TENSOR_CORE DOWN_CONVERT_INPUTS"),
    plan(1, 7, 3e-5, 1000, numerical="TENSOR_CORE"),
    plan(2, 5, 2e-5, 2_000_000, numerical="WINOGRAD"),
    plan(3, 9, None, None, status="not supported: too large"),
    plan(4, 9, 9e-5),
    plan(5, 11, None, None, status="not supported: too large"),
]
LABEL = Measurement(None, "Some GPU", "2001-02-03", live=False)


def test_the_table_of_plans_has_each_engines_fastest_and_then_those_that_cannot_run():
    rows = tables.plans(PLANS).rows
    assert [row[0] for row in rows] == ["2", "1", "4", "5"]
    assert rows[1] == ["1", "7", "A", "0.0300", "0.001", "1e-06", "tensor core", "ok"]
    assert rows[3] == ["5", "11", "A", "", "", "", "", "not supported"]


def test_the_table_of_the_sources_search_is_fastest_first():
    found = [
        {"algorithm": "FFT", "seconds": None, "workspace_bytes": None, "status": "no", "relative_error": None},
        {"algorithm": "GEMM", "seconds": 3e-3, "workspace_bytes": 5e6, "status": "ok", "relative_error": 1e-7},
        {"algorithm": "DIRECT", "seconds": 2e-3, "workspace_bytes": 0, "status": "ok", "relative_error": 1e-7},
    ]
    rows = tables.algorithms(found).rows
    assert [row[0] for row in rows] == ["DIRECT", "GEMM", "FFT"]
    assert rows[1] == ["GEMM", "3.0000", "5", "1e-07", "ok"]


def test_every_call_of_the_sources_has_a_row():
    lines = tables.calls().splitlines()
    assert lines[1] == "| :--- | :--- | :--- |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| `{call.then}`" for call in CALLS]


@pytest.mark.parametrize(
    ("name", "products", "weights"), [("VGG-16", 15.47, 138_357_544), ("AlexNet", 0.714, 61_100_840)]
)
def test_older_networks_are_those_of_the_papers(name, products, weights):
    layers = networks.OLDER[name](1)
    convolutions = [layer.convolution for layer in layers if layer.convolution]
    dense = [layer for layer in layers if layer.kind == "fully connected"]
    assert (len(convolutions), len(dense)) == ({"VGG-16": 13, "AlexNet": 5}[name], 3)
    flops = sum(conv.flops for conv in convolutions) + sum(2 * layer.nchw[1] * layer.outputs for layer in dense)
    assert flops / 2e9 == pytest.approx(products, rel=1e-3)  # multiply-adds, as frameworks count them
    biases = sum(conv.k for conv in convolutions)
    assert networks.parameters(layers) + biases == weights  # as frameworks count them


def test_the_cells_arithmetic_is_the_kernels():
    found = defined("conv-imports", "conv-workspace", "conv-spectra", "conv-arithmetic", "conv-workspaces")
    step_of = {"matrix_bytes": "im2col", "winograd_bytes": "winograd", "fft_bytes": "fft"}
    asked = 0
    for layer in networks.convolutions(3):
        for function, name in step_of.items():
            step = ladder.step(name)
            if not step.refuses(layer.convolution, "NCHW", np.float32):
                asked += 1
                assert found[function](layer.convolution) == step.workspace_bytes(layer.convolution, np.float32)
    assert asked == 2 * 24 + 4  # of 24 sizes, 4 are 3 × 3 with stride 1
    conv = next(layer.convolution for layer in networks.convolutions() if layer.name == "conv4_x 3×3")
    assert conv.flops / 2 / (16 * found["winograd_tiles"](conv) * conv.k * conv.c) == 2.25


def test_the_other_layers_kernels_compute_what_they_are_called():
    texts = (cells()[f"conv-{name}"].removeprefix("%%cuda") for name in ("pooling", "softmax", "dropout", "lrn"))
    names = ("max_pooling", "average_pooling", "softmax", "dropout", "lrn")
    module = cp.RawModule(code="\n".join(texts), name_expressions=names)
    rng = generator()
    x = rng.standard_normal((2, 8, 16, 16), np.float32)

    def result(name, blocks, shape, *numbers):
        y = cp.asarray(np.full(shape, np.nan, np.float32))
        module.get_function(name)((blocks,), (256,), (cp.asarray(x), y, *map(np.int32, numbers)))
        return cp.asnumpy(y)

    windows = x.reshape(2, 8, 8, 2, 8, 2)
    np.testing.assert_array_equal(result("max_pooling", 4, (2, 8, 8, 8), 2, 8, 1024), windows.max((3, 5)))
    np.testing.assert_allclose(result("average_pooling", 4, (2, 8, 8, 8), 2, 8, 1024), windows.mean((3, 5)), atol=1e-6)
    exponentials = np.exp(x.astype(np.float64))
    exact = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_allclose(result("softmax", 32, x.shape, 16, 256), exact, rtol=1e-5)
    around = np.pad(x.astype(np.float64) ** 2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    scale = 2 + 1e-4 * sum(around[:, k : k + 8] for k in range(5))
    np.testing.assert_allclose(result("lrn", 16, x.shape, 8, 256, 4096), x / scale**0.75, rtol=1e-5)
    dropped = result("dropout", 4, x.shape, 0, 4096)
    kept = dropped != 0
    np.testing.assert_array_equal(dropped, np.where(kept, 2 * x, 0))
    # Philox's words of counter 0 and key 0 by its authors: 6627e8d5, e169c58d, bc57ac4c, 9b00dbd8.
    assert kept.ravel()[:4].tolist() == [True, False, False, False]
    assert abs(kept.mean() - 0.5) < 0.04
    assert (result("dropout", 4, x.shape, 7, 4096) != dropped).any()


def test_shares_are_of_all_layers_of_a_kind():
    rows = [
        {"layer": "a", "kind": "convolution", "seconds": 1.0, "count": 3},
        {"layer": "b", "kind": "ReLU", "seconds": 6.0, "count": 1},
        {"layer": "c", "kind": "convolution", "seconds": 1.0, "count": 1},
    ]
    assert defined("conv-second-imports", "conv-shares-of")["shares"](rows) == {"ReLU": 0.6, "convolution": 0.4}
    figure = figures.draw_treemaps({"one": rows, "another": rows[:1]}, "somewhere")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["one: 10.0 s", "another: 3.00 s"]


def test_the_picture_of_plans_marks_what_a_limit_chooses():
    table = {"layer": "a layer", "dtype": "float32", "layout": "NCHW", "rows": PLANS}
    figure = figures.draw_plans(LABEL, limit_bytes=10_000, table=table)
    ring = next(line for line in figure.axes[0].lines if str(line.get_label()).startswith("fastest within"))
    assert list(ring.get_xydata()[0]) == [1000, 3e-5]
    assert "recorded on Some GPU, 2001-02-03" in figure.axes[0].get_title(loc="left")
    assert isinstance(figures.draw_gains(LABEL, {"one": [table], "another": [table]}), Figure)


# What the text says of the recordings; one that is recorded anew may need other words.


def test_the_workspace_gives_away_winograds_tiles():
    table, conv = recordings.recorded("whole_table").value, networks.convolutions()[2].convolution
    found = {row["workspace_bytes"] for row in table["rows"] if "WINOGRAD" in row["numerical"]}
    transformed = 36 * (math.prod(conv.x_shape()) + math.prod(conv.y_shape())) // 16 + 36 * conv.k * conv.c
    assert found == {4 * transformed} == {116_195_328}


def test_plans_on_tensor_cores_ask_for_copies_of_x_and_y():
    table, conv = recordings.recorded("whole_table").value, networks.convolutions()[2].convolution
    copies = math.prod(conv.x_shape()) + math.prod(conv.y_shape())
    best = plan_table.choose(table["rows"])
    assert best["numerical"] == "TENSOR_CORE DOWN_CONVERT_INPUTS"
    assert best["workspace_bytes"] == pytest.approx(2 * copies, rel=0.01)
    exact = plan_table.choose(plan_table.full_precision(table["rows"]), 0)
    assert min(row["relative_error"] for row in on_tensor_cores(table)) / exact["relative_error"] > 600
    assert max(row["relative_error"] for row in on_tensor_cores(table)) / exact["relative_error"] < 800
    assert (round(1e3 * exact["seconds"], 2), round(1e3 * best["seconds"], 2)) == (0.24, 0.08)


def on_tensor_cores(table):
    return [row for row in plan_table.able(table["rows"]) if "TENSOR_CORE" in row["numerical"]]


def test_workspace_buys_what_the_text_says():
    tables = [table for table in recordings.recorded("plan_tables").value["tables"] if table["pass"] == "forward"]
    full = [plan_table.full_precision(table["rows"]) for table in tables if table["dtype"] == "float32"]
    half = [table["rows"] for table in tables if table["dtype"] == "float16"]
    assert [round(gain(rows), 1) for rows in full] == [1, 1.6, 1, 1, 1, 2.6]
    assert [gain(rows) > 1.01 for rows in half] == [True, False, False, False, False, False]


def test_workspace_still_buys_speed_for_the_gradient_of_filters():
    rows, sizes = {}, {}
    for table in recordings.recorded("plan_tables").value["tables"]:
        if (table["pass"], table["dtype"]) == ("backward_filter", "float16"):
            rows[table["layer"]] = gain(table["rows"])
            sizes[table["layer"]] = plan_table.choose(table["rows"])["workspace_bytes"]
    gains = [round(found, 1) for found in rows.values()]
    assert gains[1:] == [3.2, 2.6, 1.5, 1, 1]
    assert [round(size / 1e6) for size in list(sizes.values())[1:4]] == [2, 4, 2]
    of_dw = [4 * 64 * 64 * 9, 4 * 256 * 64]  # float32
    found = list(sizes.values())[1:3]
    assert [size // dw for size, dw in zip(found, of_dw, strict=True)] == [13, 60]
    assert all(size % dw < 1024 for size, dw in zip(found, of_dw, strict=True)), "no whole copies"


def test_plans_that_convert_inputs_round_the_result_too():
    table = recordings.recorded("whole_table").value
    errors = {"TENSOR_CORE": set(), "TENSOR_CORE DOWN_CONVERT_INPUTS": set()}
    for row in on_tensor_cores(table):
        errors[row["numerical"]].add(round(row["relative_error"], 5))
    assert list(errors.values()) == [{2.6e-4}, {3.3e-4}]
    uniform, normal = 1.845e-4, 2.07e-4  # relative rounding errors to FP16 of x and w, and of y
    assert 2**0.5 * uniform == pytest.approx(2.6e-4, rel=0.02)
    assert (2 * uniform**2 + normal**2) ** 0.5 == pytest.approx(3.33e-4, rel=0.02)


def test_the_first_layers_workspace_is_x_with_a_fourth_channel():
    conv = networks.convolutions()[0].convolution
    tables = recordings.recorded("plan_tables").value["tables"]
    rows = next(table["rows"] for table in tables if (table["pass"], table["dtype"]) == ("forward", "float16"))
    copies = 2 * 4 * (conv.n * conv.h * conv.w + conv.k * conv.r * conv.s)
    assert 0 <= plan_table.choose(rows)["workspace_bytes"] - copies < 1024


def test_workspace_buys_more_for_gradients_where_the_text_says():
    gains = {}
    for table in recordings.recorded("plan_tables").value["tables"]:
        if table["dtype"] == "float32":
            found = (plan_table.full_precision(table["rows"]), table["rows"])
            gains.setdefault(table["pass"], []).append([gain(rows) > 1.05 for rows in found])
    full, tf32 = ([sum(row[i] for row in gains[kind]) for kind in ("backward_filter", "backward_data")] for i in (0, 1))
    assert (full, tf32) == ([2, 3], [6, 3])


def gain(rows):
    return plan_table.choose(rows, 1000)["seconds"] / plan_table.choose(rows)["seconds"]


def test_the_shares_of_convolutions_are_those_of_the_text():
    found = recordings.recorded("network").value["configurations"]
    training = {row["precision"]: row for row in found if row["mode"] == "training"}
    assert round(training["float32"]["convolution_share"], 2) == 0.69
    assert round(training["mixed"]["convolution_share"], 2) in (0.33, 0.34)
    seconds = [sum(training[name]["convolution_seconds"].values()) for name in ("float32", "mixed")]
    assert seconds[0] / seconds[1] == pytest.approx(8, abs=0.5)
    kinds = [of_kinds(training[name]["layers"]) for name in ("float32", "mixed")]
    others = [kinds[0][kind] / kinds[1][kind] for kind in ("ReLU", "addition", "batch norm")]
    assert (round(min(others), 1), round(max(others), 1)) == (1.4, 2.2)


def test_the_shares_of_older_networks_are_those_of_the_text():
    shares, pooling = {}, {}
    for row in recordings.recorded("older_networks").value["configurations"]:
        key = row["network"], row["precision"]
        shares.setdefault(key, {})[row["mode"], row["batch"]] = round(row["convolution_share"], 2)
        pooling[*key, row["mode"], row["batch"]] = of_kinds(row["layers"])["pooling"] / row["seconds"]
    single = [sorted(shares[name, "float32"].values()) for name in networks.OLDER]
    assert [(found[0], found[-1]) for found in single] == [(0.82, 0.85), (0.57, 0.76)]
    training = [
        share for name in networks.OLDER for (mode, _), share in shares[name, "mixed"].items() if mode == "training"
    ]
    assert 1 / 3 < min(training) < max(training) < 0.53
    assert round(pooling["VGG-16", "mixed", "training", 128], 2) == 0.43
    said = cells()["conv-verdict-text"]
    for text in ("82 to 85 %", "57 to 76 %", "43 % of VGG-16's mixed training"):
        assert text in said


def test_the_bounds_of_networks_on_a_p100_are_those_of_the_text():
    found = []
    for whole in (*networks.OLDER.values(), networks.resnet50):
        inner = [layer for layer in whole(32) if layer.convolution]
        least = [claim.least_seconds(CARDS["P100"], layers, mixed=False) for layers in (inner, whole(32))]
        found.append(round(100 * least[0] / least[1]))
    assert found == [94, 87, 71]


def test_the_shares_of_folded_networks_are_those_of_the_text():
    folded = recordings.recorded("folded_network").value["configurations"]
    assert sorted(round(row["convolution_share"], 2) for row in folded) == [0.49, 0.67, 0.71, 0.82]
    plain = recordings.recorded("network").value["configurations"]
    taken = [
        next(
            of_kinds(row["layers"])["convolution"]
            for row in rows
            if row["precision"] == "tf32" and row["batch"] == 32 and row["mode"].startswith("inference")
        )
        for rows in (folded, plain)
    ]
    assert [round(1e3 * seconds, 1) for seconds in taken] == [3.9, 2.6]


def test_the_row_that_a_kernel_of_cudnn_distorts_says_so():
    found = recordings.recorded("network").value
    taken = {
        row["precision"]: of_kinds(row["layers"])["batch norm"]
        for row in found["configurations"]
        if (row["mode"], row["batch"]) == ("inference", 1)
    }
    assert taken["mixed"] > 3 * taken["float32"]
    half, single = (f"{1e3 * taken[precision]:.2f}" for precision in ("mixed", "float32"))
    lines = benchmark.BENCHMARK.tables["network"].text(found).splitlines()
    (line,) = [line for line in lines if "so the row tells" in line]
    assert line.startswith(
        f"ResNet-50, mixed inference, batch 1: cuDNN's batch norm takes {half} ms, and {single} in float32"
    )
    cells = nbformat.read(COURSE / "notebooks" / "06_convolution.ipynb", as_version=4).cells
    said = next(cell.source for cell in cells if cell.id == "conv-shares-after")
    assert f"takes {half} ms in mixed precision, but {single} ms in FP32" in said


def of_kinds(layers):
    """Seconds by kind of layer."""
    found = {}
    for layer in layers:
        found[layer["kind"]] = found.get(layer["kind"], 0) + layer["seconds"] * layer["count"]
    return found


def test_the_ratios_are_those_of_the_text():
    forward = recordings.recorded("forward").value
    assert (round(forward["geometric_mean"], 2), round(forward["least"], 2)) == (1.05, 0.93)
    worst = min(forward["rows"], key=lambda row: row["ratio"])
    assert worst["layer"] == "conv4_x 1×1, 1024 → 256, 14²"
    depthwise = recordings.recorded("depthwise").value["forward"]
    assert (round(depthwise["geometric_mean"], 2), round(depthwise["least"], 3)) == (1.19, 1.049)
    algorithms = recordings.recorded("algorithms").value["layers"][0]["rows"]
    seconds = {row["algorithm"]: row["seconds"] for row in algorithms if row["by"] == "lab"}
    assert seconds["direct"] / seconds["implicit_gemm"] == pytest.approx(15, abs=0.5)
    assert seconds["implicit_gemm"] / seconds["wgmma_im2col"] == pytest.approx(10, abs=0.5)
    assert [round(1e6 * seconds[name]) for name in ("fft", "implicit_gemm", "winograd")] == [732, 244, 214]
    asked = {row["algorithm"]: row["workspace_bytes"] for row in algorithms if row["by"] == "lab"}
    assert [round(asked[name] / 1e6) for name in ("fft", "winograd")] == [122, 206]
    theirs = [
        row["seconds"] for row in algorithms if row["algorithm"] in ("FFT", "Winograd") and row["dtype"] == "float32"
    ]
    assert [round(1e6 * found) for found in theirs] == [145, 150]


def test_the_search_of_the_sources_found_what_the_text_says():
    found = recordings.recorded("searches")
    (cell,) = [source for source in cells().values() if "FFT in tiles takes" in source]
    search = found.value["searches"][0]
    assert (search["layout"], search["dtype"], search["tensor_cores"]) == ("NCHW", "float32", False)
    rows = {row["algorithm"]: row for row in search["rows"]}
    names = ("FFT_TILING", "WINOGRAD_NONFUSED", "IMPLICIT_GEMM")
    tiles, winograd, gemm = (f"{1e3 * rows[name]['seconds']:.3f} ms" for name in names)
    sizes = [rows[name]["workspace_bytes"] / 1e6 for name in names]
    assert f"({found.origin}) FFT in tiles takes {tiles} with {sizes[0]:.0f} MB of workspace" in cell
    assert f"Winograd {winograd} with {sizes[1]:.0f} MB, while algorithm 0, `IMPLICIT_GEMM`, takes {gemm}" in cell
    assert sizes[2] < 0.001
    assert sum(row["status"] == "ok" for row in search["rows"]) == 6 == len(search["rows"]) - 2


def test_channels_last_gains_what_the_text_says():
    layers = recordings.recorded("layouts").value
    longer = [row["float16 NCHW"]["seconds"] / row["float16 NHWC"]["seconds"] for row in layers]
    (other,) = [row["layer"] for row, ratio in zip(layers, longer, strict=True) if not 2 < ratio < 3]
    assert "1×1" in other


def test_persistent_algorithms_take_what_the_text_says():
    case = recordings.recorded("lstm").value["cases"][0]
    steps = {
        (row["algorithm"], row["dtype"], row["tensor_cores"]): round(1e6 * row["seconds"] / case["steps"])
        for row in case["rows"]
        if row["by"] == "cuDNN"
    }
    names = ("STANDARD", "PERSIST_STATIC", "PERSIST_DYNAMIC")
    assert [steps[name, "float32", False] for name in names] == [28, 30, 24]
    assert [steps[name, "float32", True] for name in names] == [12, 29, 22]
    assert [steps[name, "float16", True] for name in names] == [10, 3, 29]
    own = {(row["algorithm"], row["dtype"]): row["seconds"] for row in case["rows"] if row["by"] == "lab"}
    taken = [1e6 * own[name, "float16"] / case["steps"] for name in ("separate", "fused", "persistent")]
    cells = nbformat.read(COURSE / "notebooks" / "06_convolution.ipynb", as_version=4).cells
    said = next(cell.source for cell in cells if cell.id == "conv-lstm-after")
    text = "a step takes {:.0f} µs with a kernel per operation, {:.0f} µs with one kernel after each product"
    assert text.format(*taken[:2]) in said
    assert f"ours {taken[2]:.1f}" in said


def test_any_cell_can_run_again_after_the_last():
    """What a cell takes from another one, no third cell binds anew."""
    cells = nbformat.read(COURSE / "notebooks" / "06_convolution.ipynb", as_version=4).cells
    sources = {c.id: c.source for c in cells if c.cell_type == "code" and not c.source.startswith("%%")}
    bound = {
        name: {
            symbol.get_name()
            for symbol in symtable.symtable(source, name, "exec").get_symbols()
            if symbol.is_assigned() or symbol.is_imported()
        }
        for name, source in sources.items()
    }
    # Begins the second sitting: it imports again what the first did, and draws from its own generator.
    second = bound.pop("conv-second-imports")
    conflicts = {}
    for name, source in sources.items():
        nodes = list(ast.walk(ast.parse(source)))
        loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in nodes if isinstance(node, ast.arg)} | bound.get(name, second)
        for taken in loaded - own:
            binders = [other for other in bound if taken in bound[other]]
            if len(binders) > 1:
                conflicts[name, taken] = binders
    assert not conflicts
    first, again = defined("conv-imports"), defined("conv-second-imports")
    assert all(first[name] is again[name] for name in set(first) & set(again) - {"__builtins__"})
