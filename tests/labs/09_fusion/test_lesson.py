"""What lab 09's lesson shows and says: costs by data sheet, the claim's arithmetic, pictures, tasks on trial."""

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.fusion import claim, cost, figures, network, trial
from warplab.checks import CheckFailed
from warplab.hardware.cards import CARDS
from warplab.paths import COURSE

LESSON = COURSE / "notebooks" / "09_fusion.ipynb"
H100 = CARDS["H100"]


def text_of(cell):
    return next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)


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


def test_only_the_scarcer_of_memory_and_arithmetic_counts():
    row = cost.Cost("a", "cbr", "float32", 3_350_000, 0, 1)
    assert row.seconds(H100) == pytest.approx({"launch": 1.88e-6, "memory": 1e-6, "arithmetic": 0})
    row = cost.Cost("a", "cbr", "float16", 1, 0, int(989.4e9))
    assert row.seconds(H100) == pytest.approx({"launch": 1.88e-6, "memory": 0, "arithmetic": 1e-3})


def test_a_card_without_a_measured_launch_is_refused():
    with pytest.raises(ValueError, match="nobody measured the V100's launch overhead"):
        cost.seconds(network.trained_graph(), CARDS["V100"])


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


def test_the_divergence_marks_its_minimum():
    figure = figures.draw_divergence(np.array([128, 129, 130]), np.array([0.3, 0.1, 0.2]), 0.5, "title")
    point = figure.axes[0].lines[1]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (129.5 * 0.5, 0.1)


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
