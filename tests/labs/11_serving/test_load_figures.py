"""Pictures of the batcher, queues and load show what they are given; and the model that they draw."""

import numpy as np
import pytest

from kernels.serving.serve.batching import queueing
from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.load import figures as load_figures
from kernels.serving.serve.load.model import added_per_batch, limits_of, predicted
from tests.support.figure_shapes import overlapping, png, titles

TIMES = [{"batch": n, "seconds": 0.001 + 0.0001 * n, "samples_per_second": n / (0.001 + 0.0001 * n)} for n in (1, 4, 8)]


def load(with_times=True):
    curves = []
    for limits in (Limits(1, 0.0, 64), Limits(8, 0.002, 64)):
        most = limits.batch_limit / queueing.measured(TIMES)(limits.batch_limit)
        rows = predicted(TIMES, limits, [most * part for part in (0.3, 0.8, 1.2)], count=600)
        curves.append(
            {
                "batch_limit": limits.batch_limit,
                "wait_limit_seconds": limits.wait_limit,
                "capacity": limits.capacity,
                "saturated_per_second": most,
                "rows": rows,
            }
        )
    times = {"times": TIMES} if with_times else {}
    return {"curves": curves, "latency_limit_seconds": 0.01, **times}


def lines(ax):
    return [np.array(line.get_xydata()) for line in ax.get_lines()]


def test_load_is_drawn_with_the_model_or_joined():
    for value, model, drawn in ((load(), True, 7), (load(), False, 5), (load(with_times=False), True, 5)):
        figure = load_figures.draw_recorded_load(value, "load", model=model)
        left, right = figure.axes
        assert len(lines(left)) == drawn  # per curve p99, p50 and perhaps the model; the limit
        row = value["curves"][1]["rows"][1]
        point = [row["offered_per_second"], row["p99_seconds"]]
        assert any((line == point).all(axis=1).any() for line in lines(left))
        assert titles(figure) == ["load"]
        assert overlapping(figure) == []
        assert len(right.get_lines()) >= 3
    value["curves"][0]["rows"][0]["p99_seconds"] = None  # nothing was answered
    png(load_figures.draw_recorded_load(value, "load"))


def test_an_overload_is_drawn_by_the_second():
    seconds = [
        {"second": s, "offered": 10, "answered": 2, "turned_away": 8, "p99_seconds": 0.02 if s else None}
        for s in range(5)
    ]
    figure = load_figures.draw_overload({"by_second": seconds}, "overload")
    assert [patch.get_height() for patch in figure.axes[0].patches] == [2] * 5 + [8] * 5
    assert overlapping(figure) == []


def test_the_model_follows_the_formula():
    limits = Limits(8, 0.0, 64)
    assert limits_of({"batch_limit": 8, "wait_limit_seconds": 0.0, "capacity": 64}) == limits
    (row,) = predicted(TIMES, limits, [2000.0], count=20_000)
    queue = queueing.long_run(2000.0, queueing.measured(TIMES), 8, 64)
    assert row["mean_seconds"] == pytest.approx(queue.latency, rel=0.05)
    assert row["mean_batch"] == pytest.approx(queue.mean_batch, rel=0.05)
    assert row["busy"] == pytest.approx(queue.utilisation, rel=0.05)
    assert row["p50_seconds"] < row["p99_seconds"]


def test_what_the_server_adds_is_read_from_requests_one_by_one():
    value = load()
    assert added_per_batch(value) == pytest.approx(0, abs=1e-12)
    value["curves"][0]["saturated_per_second"] = 1 / 0.0014  # a batch of one takes the engine 1.1 ms
    assert added_per_batch(value) == pytest.approx(0.0003)
    assert added_per_batch({**value, "curves": value["curves"][1:]}) == 0
    (row,) = predicted(TIMES, Limits(8, 0.0, 64), [1e5], added=0.0002)
    assert row["answered_per_second"] == pytest.approx(8 / 0.002, rel=0.02)
