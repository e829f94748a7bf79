"""Pictures of sharing, of the model and of recordings as a GPU that follows the model would give them."""

import pytest

from kernels.serving.overlap.sharing import figures as sharing_figures
from kernels.serving.overlap.sharing.model import Client, Gpu, in_turns, predict, together
from warpcourse.bench.recordings import Measurement

GPU = Gpu(request=150e-6, host=20e-6, width=10.0, switch=60e-6)
LABEL = "recorded on a model, 2026-01-01"


def _recorded(value):
    return Measurement(value, "a model", "2026-01-01", live=False)


@pytest.fixture(scope="module")
def ways():
    rows = [
        {"way": way, "clients": k, "batch": batch, **predict(GPU, way, k, batch)}
        for way, batches in (("time slices", (1, 8)), ("MPS", (1, 4)), ("streams", (1,)))
        for batch in batches
        for k in (1, 2, 4)
    ]
    return _recorded({"rows": rows, "alone": [{"batch": 1, "seconds": GPU.request}]})


@pytest.fixture(scope="module")
def batches():
    rows = [{"way": "one batch", "clients": 1, "batch": b, **predict(GPU, "one batch", 1, b)} for b in (1, 8, 64)]
    return _recorded({"rows": rows, "alone": [{"batch": b, "seconds": GPU.seconds(b)} for b in (1, 8, 64)]})


def _texts(figure):
    found = [text.get_text() for ax in figure.axes for text in (*ax.texts, ax.title)]
    legends = [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    return (
        found
        + [text.get_text() for legend in legends for text in legend.get_texts()]
        + [ax.get_title(loc="left") for ax in figure.axes]
    )


def test_a_timeline_has_a_box_per_request():
    clients = [Client()] * 3
    found = {"time slices": in_turns(GPU, clients, 2e-3), "MPS": together(GPU, clients, 2e-3)}
    figure = sharing_figures.draw_processes(found, "three clients")
    for ax, requests in zip(figure.axes, found.values(), strict=True):
        assert len(ax.patches) == 2 * len(requests)
        widths = [patch.get_width() for patch in ax.patches[1::2]]
        assert widths == pytest.approx([one.answered - one.began for one in requests])
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [
        f"three clients\ntime slices: {len(found['time slices'])} answers",
        f"MPS: {len(found['MPS'])} answers",
    ]


def test_ways_with_and_without_the_model(ways):
    figure = sharing_figures.draw_ways(ways)
    left, right = figure.axes
    assert len(left.lines) == 4  # three ways, and k times one
    assert len(right.lines) == 3
    assert LABEL in _texts(figure)
    curve = next(line for line in left.lines if line.get_label() == "MPS")
    rates = [row["images_per_second"] for row in ways.value["rows"] if (row["way"], row["batch"]) == ("MPS", 1)]
    assert list(curve.get_ydata()) == rates
    assert len(sharing_figures.draw_ways(ways, GPU).axes[1].lines) == 6
    more = _recorded({"rows": [{"way": "MPS", "clients": 32, "batch": 1, **predict(GPU, "MPS", 32)}]})
    figure = sharing_figures.draw_ways(ways, GPU, more)
    curve = next(line for line in figure.axes[0].lines if line.get_label() == "MPS")
    assert list(curve.get_xdata()) == [1, 2, 4, 32]


def test_the_trade_of_throughput_for_latency(ways, batches):
    figure = sharing_figures.draw_trade(ways, batches)
    assert {"1", "64", "4", "16"} <= set(_texts(figure))
    assert len(figure.axes[0].lines) == 5


def test_parts_and_neighbours():
    row = {"images_per_second": 10.0, "p50_seconds": 1e-3, "p99_seconds": 2e-3}
    pairs = [
        {"way": way, "shares": shares, "neighbour": name, **row}
        for way, shares in (("time slices", ""), ("MPS", "10 % and 90 %"))
        for name in ("alone", "beside batches of 64")
    ]
    alone = [{"percentage": percent, **row} for percent in (100, 50, 10)]
    figure = sharing_figures.draw_parts(_recorded({"alone": alone, "neighbours": pairs}))
    left, right = figure.axes
    assert list(left.lines[0].get_xdata()) == [10, 50, 100]
    assert [label.get_text() for label in right.get_yticklabels()] == ["time slices", "MPS\n10 % and 90 %"]
    assert len(right.patches) == 4
    assert LABEL in _texts(figure)
