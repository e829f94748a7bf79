"""What lab 09's lesson shows and says: costs by data sheet, the claim's arithmetic, pictures, tasks on trial."""

import ast
import re
from dataclasses import replace

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.fusion import passes, plan, recordings
from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.graph import cost, interpret
from kernels.fusion.lesson import claim, figures, trial
from kernels.fusion.measured import few_bits
from kernels.fusion.passes import quantise
from kernels.fusion.peers import on_onnxruntime
from kernels.fusion.plan import Engine, build, memory_plan, parallel
from kernels.fusion.trained import digits, network, variants
from warpcourse.bench.recordings import Measurement
from warpcourse.paths import COURSE
from warplab.checks import CheckFailed
from warplab.hardware.cards import CARDS

LESSON = COURSE / "notebooks" / "09_fusion.ipynb"
H100 = CARDS["H100"]
KERNELS = "few_bits.cu", "cbr_wgmma.cu"


@pytest.fixture(scope="module")
def texts():
    """The sources of the lesson's cells by id."""
    return {cell.id: cell.source for cell in nbformat.read(LESSON, as_version=4).cells}


# The cost of a graph, by hand.


def test_the_cost_of_a_chain_is_what_its_shapes_say():
    # Two cbr of 3 channels, 5 × 5, each followed by a ReLU, in float32.
    image, filters = 3 * 5 * 5, 3 * 3 * 3 * 3
    rows = cost.costs(trial.chain(), batch=7)
    assert [row.op for row in rows] == ["cbr", "relu", "cbr", "relu"]
    assert rows[0].read_bytes == 4 * (7 * image + filters + 3)
    assert rows[0].written_bytes == rows[1].read_bytes == rows[1].written_bytes == 4 * 7 * image
    assert rows[0].operations == 2 * 7 * filters * 25
    assert cost.total(trial.chain(), 7) == (4, sum(row.moved_bytes for row in rows), 2 * 7 * (2 * filters * 25 + image))


def test_what_gives_a_tensor_another_name_is_no_launch():
    graph = network.trained_graph()
    free = [node for node in graph.nodes if node.op in ("dropout", "identity", "flatten")]
    assert free
    assert not {node.name for node in free} & {row.name for row in cost.costs(graph)}


def test_the_verdict_gives_the_time_of_all_bytes(texts):
    launches, moved, _ = cost.total(network.trained_graph())
    needed = f"all bytes of our {launches} launches need {moved / H100.bandwidth_gbs / 1e3:.2f} µs"
    assert needed in texts["fusion-verdict-text"]


def test_only_the_scarcer_of_memory_and_arithmetic_counts():
    row = cost.Cost("a", "cbr", "float32", 3_350_000, 0, 1)
    assert row.seconds(H100) == pytest.approx({"launch": 1.88e-6, "memory": 1e-6, "arithmetic": 0})
    row = cost.Cost("a", "cbr", "float16", 1, 0, int(989.4e9))
    assert row.seconds(H100) == pytest.approx({"launch": 1.88e-6, "memory": 0, "arithmetic": 1e-3})


def test_a_card_without_a_measured_launch_is_refused():
    with pytest.raises(ValueError, match="nobody measured the V100's launch overhead"):
        cost.seconds(network.trained_graph(), CARDS["V100"])


@pytest.mark.parametrize("kind", ["unfused float32", "float32", "float16", "int8"])
def test_launches_are_those_of_the_memory_plan(kind):
    graph = variants.variant(kind)
    assert [row.name for row in cost.costs(graph)] == memory_plan.launched(graph)


def test_the_engines_launches_are_those_of_the_text(texts):
    graphs = network.trained_graph(), *map(variants.variant, ("float32", "unfused float32"))
    launches = [len(Engine(build(graph)).launches) for graph in graphs]
    nodes = cost.total(network.trained_graph())[0]
    assert launches == [63, 17, 60]
    assert f"(from {launches[2]} launches: the {launches[0]} of section 4" in texts["fusion-verdict-text"]
    assert f"{launches[0]} launches, not {nodes}" in texts["fusion-engine-after"]


def test_the_bytes_asked_for_are_those_of_the_text(texts):
    lesson = nbformat.read(LESSON, as_version=4)
    cell = next(cell for cell in lesson.cells if cell.id == "fusion-engine")
    lines = cell.outputs[0].text.splitlines()
    found = [[int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:bytes loaded|stored)", line)] for line in lines]
    before, after = (sum(each) for each in found)
    assert f"{1 - after / before:.0%} fewer".replace("%", " %") in texts["fusion-engine-after"]
    assert (
        f"what our kernels ask for, {1 - after / before:.0%} fewer".replace("%", " %") in texts["fusion-verdict-text"]
    )
    modelled = [cost.total(graph)[1] for graph in (network.trained_graph(), variants.variant("float32"))]
    assert f"the model has {1 - modelled[1] / modelled[0]:.0%}".replace("%", " %") in texts["fusion-engine-after"]


# What cells define, against the lab's own.


@pytest.fixture(scope="module")
def defined(texts):
    """The functions that the lesson's cells define, by name; not those that learners write."""
    found = {"np": np, "replace": replace, "cost": cost, "plan": plan}
    for name, text in texts.items():
        if not name.startswith(("your-turn", "check-")) and re.search(r"^def ", text, re.MULTILINE):
            functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
            exec(compile(ast.Module(functions, []), name, "exec"), found)
    return found


@pytest.mark.parametrize("kind", variants.KINDS)
def test_cells_cost_a_graph_as_the_lab_does(defined, kind):
    graph = variants.variant(kind)
    assert defined["total"](graph) == cost.total(graph)
    assert defined["seconds"](graph, H100, 128) == cost.seconds(graph, H100, 128)
    for how in ({}, {"side_by_side": True}):
        made = plan.build(graph, **how)
        assert defined["in_a_row"](made) == parallel.depth(made)


def test_cells_remove_and_fold_as_the_passes_do(defined):
    graph = network.trained_graph()
    assert defined["remove_dead"](graph) == passes.remove_dead(graph)
    after = passes.fold_batch_norm(graph)
    norms = [node for node in graph.nodes if node.op == "batch_norm"]
    assert len(norms) == 15
    for norm in norms:
        conv = graph.only_writer(norm.inputs[0])
        both = after.node(conv.name).weights
        for mine, theirs in zip(defined["folded"](conv, norm), (both["filters"], both["bias"]), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_cells_read_a_histogram_as_calibration_does(defined):
    histograms = quantise.histograms(variants.variant("float32"), digits.split()[1].images)
    for each in histograms.values():
        assert defined["percentile"](each) == quantise.percentile(each)
        assert np.array_equal(defined["without_zeros"](each).counts, each.without_zeros.counts)


# The claim.


def test_published_runs_are_found_by_precision_and_batch():
    assert claim.run("FP16", 32).images_per_second == pytest.approx(4856.25, abs=0.01)
    assert claim.run("FP32", 1).images_per_second == pytest.approx(373.52, abs=0.01)
    with pytest.raises(ValueError, match="no run in FP16 with a batch of 3"):
        claim.run("FP16", 3)


@pytest.mark.parametrize("card", claim.INT8_CARDS, ids=lambda card: card.name)
def test_the_claimed_tera_operations_are_a_dp4a_per_core_and_clock(card):
    assert round(card.cores * card.mhz * 1e6 * 8 / 1e12) == card.tera_operations


# Tasks on trial: what the answers of tests/labs/09_fusion/answers.py do not reach.


def test_a_pass_that_drops_an_output_is_refused():
    def other_output(graph):
        return type(graph)(graph.name, graph.nodes, graph.tensors, graph.inputs, (graph.nodes[0].output,))

    with pytest.raises(CheckFailed, match="other inputs or outputs"):
        trial.check_fuse_relu(other_output)


def test_a_pass_that_returns_something_else_is_refused():
    with pytest.raises(CheckFailed, match="returns no Graph"):
        trial.check_fuse_relu(lambda graph: graph.nodes)


# Pictures.


def test_the_histogram_marks_each_threshold():
    figure = figures.draw_histogram(np.arange(1, 9), 4.0, {"min-max": 4.0, "entropy": 2.5}, "title")
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [4.0, 2.5]


def test_each_divergence_marks_its_minimum():
    bins = np.array([128, 129, 130])
    curves = {"a": (bins, np.array([0.3, 0.1, 0.2])), "b": (bins, np.array([0.5, np.inf, 0.4]))}
    lines = figures.draw_divergence(curves, 0.5, "title").axes[0].lines
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines[1::2]] == [(64.75, 0.1), (65.25, 0.4)]


def test_buffers_are_boxes_of_time_and_address():
    figure = figures.draw_buffers([("b", 1, 2, 512, 256), ("a", 0, 1, 0, 512)], "title")
    boxes = [patch.get_bbox().bounds for patch in figure.axes[0].patches]
    assert boxes == [(-0.5, 0, 2, 512), (0.5, 512, 2, 256)]


def test_factors_and_what_is_left_make_the_whole():
    figure = figures.draw_factors(100, {"a": 2.0, "b": 3.0}, 1200, "title")
    ends = [(box.get_x(), box.get_x() + box.get_width()) for box in figure.axes[0].patches]
    assert np.allclose(ends, [(100, 200), (200, 600), (600, 1200)])
    assert [text.get_text() for text in figure.axes[0].texts] == ["2.00 ×", "3.00 ×", "2.00 ×"]


def test_other_pictures_are_figures():
    assert isinstance(figures.draw_batches(claim.RUNS, claim.LATENCY_LIMIT, "title"), Figure)
    parts = cost.seconds(trial.chain(), H100)
    assert isinstance(figures.draw_parts({"one": parts}, "title"), Figure)


RECORDED = {"device": "Some GPU", "date": "2001-02-03", "live": False}


def test_own_batches_have_a_line_per_precision():
    rows = [
        {"kind": kind, "batch": batch, "latency_seconds": 1e-4 * batch}
        for kind in ("float32", "int8")
        for batch in (1, 2)
    ]
    figure = figures.draw_own_batches(Measurement({"rows": rows}, **RECORDED))
    assert [line.get_label() for line in figure.axes[0].lines] == ["float32", "int8"]
    assert "recorded on Some GPU, 2001-02-03" in figure.axes[0].get_title(loc="left")


# What the text says in numbers.


@pytest.fixture(scope="module")
def right():
    """Test images that the network gets right, by precision, and by calibration in INT8."""
    test = digits.split()[2]

    def count(graph):
        found = interpret.run(graph, test.images, dtype=np.float32)["probabilities"]
        return int((found.argmax(axis=1) == test.labels).sum())

    found = {kind: count(variants.variant(kind)) for kind in ("unfused float32", "float32", "float16")}
    return found | {method: count(variants.variant("int8", method)) for method in quantise.METHODS}


def test_the_accuracies_are_those_of_the_text(texts, right):
    good = {right[method] for method in ("min-max", "percentile", "entropy")}
    assert right["unfused float32"] == right["float32"] == right["float16"] == 356
    assert good == {356, 357}
    assert right["entropy of the slides"] == 54
    assert "356 or 357 of 360 images, where FP32 has 356" in texts["fusion-verdict-text"]
    assert "as its slides describe it leaves 54" in texts["fusion-verdict-text"]


def test_the_terms_of_the_divergence_are_those_of_the_text(texts):
    seen = quantise.histograms(variants.variant("float32"), digits.split()[1].images)["b_concat"]
    kept, divergences = quantise.divergences(seen)
    least = int(kept[np.argmin(divergences)])
    # Written anew, with a loop over the groups, to split the sum.
    p, q = seen.counts[:least].astype(float), np.zeros(least)
    groups = [[j for j in range(least) if j * 128 // least == g and p[j]] for g in range(128)]
    for group in groups:
        q[group] = p[group].sum() / max(len(group), 1)
    p[-1] += seen.counts[least:].sum()
    terms = np.zeros(least)
    there = p > 0
    terms[there] = (p / p.sum())[there] * np.log((p / p.sum())[there] / (q / q.sum())[there])
    assert terms.sum() == pytest.approx(divergences.min())
    said = (
        f"the least, {terms.sum():.2f}, is at {(least + 0.5) * seen.width:.2f}: "
        f"{terms[groups[0]].sum():.2f} for the first group's {len(groups[0])} bins, "
        f"{terms[-1]:.2f} for all that is clipped"
    )
    assert said in texts["fusion-slides-after"]


def test_weights_in_few_bits_cost_what_the_text_says(texts, right):
    test, names = digits.split()[2], {"np": np, "replace": replace, "fused": variants.variant("float32")}
    exec(texts["fusion-rounded"] + "\n" + texts["fusion-few-bits"], names)

    def count(bits, group):
        found = interpret.run(names["in_few_bits"](bits, group), test.images, dtype=np.float32)["probabilities"]
        return int((found.argmax(axis=1) == test.labels).sum())

    assert right["float32"] - count(4, 1024) == 1
    assert (lost := right["float32"] - count(3, 1024)) == 74
    assert lost - (right["float32"] - count(3, 32)) == 30
    assert "Four bits cost an image, three cost 74; scales for 32 weights bring 30" in texts["fusion-four-after"]


def test_int8_stays_within_half_a_point_of_float32(right):
    for method in ("min-max", "percentile", "entropy"):
        assert abs(right[method] - right["float32"]) <= 0.005 * digits.TEST


def test_the_costs_are_those_of_the_text(texts):
    before, after = network.trained_graph(), variants.variant("float32")
    (launches, moved, _), (left, still, _) = cost.total(before), cost.total(after)
    text = texts["fusion-horizontal-after"]
    assert f"**{launches} launches have become {left}**" in text
    assert f"and {moved / 1e3:.0f} kB moved have become {still / 1e3:.0f}" in text
    bounds = [cost.seconds(graph, H100)["launch"] * 1e6 for graph in (before, after)]
    assert f"{bounds[0]:.0f} µs of launches have become {bounds[1]:.0f}" in text
    assert f"{cost.seconds(before, H100)['memory'] * 1e6:.2f} µs" in texts["fusion-cost-after"]
    at_1024 = cost.seconds(before, H100, 1024)
    assert at_1024["memory"] == pytest.approx(at_1024["launch"], rel=0.1)
    assert at_1024["arithmetic"] < at_1024["memory"]


def test_the_factors_are_those_of_the_text(texts):
    rates = {(run.precision, run.batch): run.images_per_second for run in claim.RUNS}
    batch, half = rates["FP32", 32] / rates["FP32", 1], rates["FP16", 32] / rates["FP32", 32]
    single, pair = rates["FP32", 1], rates["FP16", 2]
    beyond = claim.WITH / rates["FP16", 32]
    first, second = single / claim.WITHOUT, pair / claim.WITHOUT
    text = texts["fusion-verdict-text"]
    assert f"make {second:.2f} of it if they were FP16, two images, and {first:.2f} if FP32, one" in text
    assert f"are {claim.WITH * claim.RESNET50_FLOP / 1e12:.0f} TFLOPS" in text
    text = texts["fusion-factor-after"]
    assert f"a product of {claim.WITH / claim.WITHOUT:.1f}" in text
    then = f"**{batch * half:.1f}**: batch 32 gives {batch:.2f}, FP16 on tensor cores {half:.2f} | {beyond:.2f} |"
    assert f"| {first:.2f} (to {single:.0f} images/s) | {then}" in text
    then = f"**{rates['FP16', 32] / pair:.1f}**: batch 32; FP16 is on both sides | {beyond:.2f} |"
    assert f"| {second:.2f} (to {pair:.0f} images/s) | {then}" in text
    assert f"the first factor: {second:.1f} or {first:.1f}" in text


def test_our_own_resnet_50_is_that_of_the_text(texts):
    own = recordings.recorded("resnet50").value
    steady = {(r["way"], r["precision"], r["batch"]): r["steady_seconds"] for r in own["rows"]}
    start, graph = steady["eager", "float32", 1], steady["CUDA graph", "float32", 1]
    half, ours = steady["CUDA graph", "float16", 1], steady["our engine", "float16", 1]
    large = steady["our engine", "float16", 128]
    text = texts["fusion-verdict-text"]
    assert f"from {1 / start:.0f} to {128 / large:,.0f} images/s: {start / graph:.2f} by a CUDA graph" in text
    assert f"{graph / half:.2f} by FP16, {half / ours:.2f} by our engine, {128 * ours / large:.2f} by batch" in text
    at_128 = steady["CUDA graph", "float16", 128] / large
    assert f"worth {half / ours:.1f} with one image and {at_128:.1f} with 128" in text
    compiled = [own["ratios"][f"batch {batch}"]["compiled"] for batch in (1, 128)]
    assert f"by the GPU's time, {compiled[0]:.1f} and {compiled[1]:.1f}" in text
    launches = {row["launches"] for row in own["rows"] if row["way"] == "our engine"}
    assert launches == {56}
    assert (
        "makes 56 launches of its 174 layers" in texts["fusion-own-batches-text"]
    )  # test_import.py has a softmax more
    rows = {(r["name"], r["precision"]): r["latency_seconds"] for r in recordings.recorded("peers").value["rows"]}
    eager, fused = rows["PyTorch, eager", "float32"], rows["our engine, CUDA graph", "float32"]
    assert f"{1e6 * eager:,.0f} µs from call to result" in text
    assert f"our engine {1e6 * fused:.0f}: {eager / fused:.0f} times" in text


def test_what_fewer_bits_gained_is_that_of_the_texts(texts):
    headers = {name: (COURSE / "kernels/fusion" / name).read_text("utf-8") for name in KERNELS}
    few, network = (recordings.recorded(key) for key in ("weight_only", "resnet50_int8"))
    assert few.origin == network.origin == "NVIDIA H200, 2026-11-27"
    took = {row["weights"]: 1e6 * row["seconds"] for row in few.value["rows"] if row["size"] == 8192}
    assert took.keys() >= few_bits.FORMATS.keys()
    assert took["FP8"] == pytest.approx(took[f"FP8, groups of {few_bits.GROUP}"], rel=0.01)
    own = "{:.0f}, {:.0f} and {:.0f} µs".format(*(took[name] for name in ("FP16", "FP8", few_bits.INT4)))
    assert f"Reached: {own}" in headers["few_bits.cu"]
    assert f"took {own} ({few.origin}" in texts["fusion-four-after"]
    half, eight = (row["gpu_seconds"] for row in network.value["rows"] if row["batch"] == 128)
    assert half / eight > 1.4, "what the lab set out to reach"
    assert f"in {1e3 * eight:.2f} ms, {eight / half:.2f} of float16's {1e3 * half:.2f}" in headers["cbr_wgmma.cu"]
    verdict = texts["fusion-verdict-text"]
    assert f"takes {eight / half:.2f} of FP16's time in INT8 for 128 images ({network.origin})" in verdict


@pytest.mark.parametrize(
    ("key", "least"),
    [
        ("resnet50", {1: 1.3, 32: 1.3, 128: 1.1}),
        ("googlenet", {1: 1.2, 32: 1.2}),
        ("mobilenet_v2", {1: 1.2, 32: 1.2}),
    ],
)
def test_recorded_engines_are_as_much_faster_than_torch_compile_as_the_lab_set_out_to_be(key, least):
    rows = {(row["way"], row["batch"]): row for row in recordings.recorded(key).value["rows"]}
    for batch, factor in least.items():
        ours, theirs = (rows[way, batch] for way in ("our engine", "compiled"))
        assert ours["precision"] == theirs["precision"] == "float16"
        assert ours["correct"]
        assert theirs["gpu_seconds"] / ours["gpu_seconds"] >= factor


def test_the_tactics_that_won_are_those_of_the_text(texts):
    took = recordings.recorded("tactics").value["seconds"]["float32, batch 1"].values()
    fastest = [min(each, key=each.get) for each in took if "pixels_32x8_in_8" in each]
    narrow = sum(name in ("pixels_32x4_in_16", "pixels_32x4_in_32") for name in fastest)
    cell = next(c for c in nbformat.read(LESSON, as_version=4).cells if c.id == "fusion-tune")
    chosen = re.findall(r"pixels_32x\d_in_\d+(?= +\d)", cell.outputs[-1].text)
    text = texts["fusion-cache-predict-text"]
    eight = chosen.count("pixels_32x8_in_8")
    assert f"For {eight} of the {len(chosen)} convolutions the roofline takes `pixels_32x8_in_8`" in text
    assert len(fastest) == len(chosen)
    assert f"`pixels_32x4_in_16` and `pixels_32x4_in_32` won {narrow} of them" in text


def test_the_memory_is_that_of_the_text(texts):
    found = memory_plan.plan(variants.variant("float32"))
    largest = max(nbytes for *_, nbytes in found.rows)
    text = texts["fusion-memory-predict-text"]
    assert (
        f"take {found.nbytes_without_reuse / 1e3:.1f} kB side by side; the largest of them {largest / 1e3:.1f} kB"
        in text
    )


def test_onnx_runtime_leaves_what_the_text_says(texts):
    model = export_onnx(network.trained_graph())
    peer = on_onnxruntime.run(model, digits.split()[2].images[:40])
    assert peer.before.total() == 61
    assert (peer.after["FusedConv"], peer.after["Conv"], peer.after["Add"], peer.after["Concat"]) == (14, 1, 1, 2)
    assert not peer.after.keys() & {"BatchNormalization", "Dropout"}
    assert "14 convolutions with their ReLUs" in texts["fusion-onnxruntime-after"]
    exact = interpret.run(network.trained_graph(), digits.split()[2].images[:40])["probabilities"]
    assert np.abs(peer.outputs - exact).max() < 1e-5
