"""What the lesson's checks compute and its pictures show, beyond what the learner's answers in answers.py exercise."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from kernels.serving import figures, lesson_checks
from kernels.serving.serve.batching import queueing
from kernels.serving.serve.load.generator import OK, TOO_MANY, LoadResult
from warplab.draw.style import BLUE, ORANGE
from warplab.launch.kernel_source import CudaSource


def boxes(ax, colour):
    return [p for p in ax.patches if isinstance(p, Rectangle) and p.get_facecolor() == to_rgba(colour)]


def rule(waiting, waited, batch_limit, wait_limit):
    return waiting >= batch_limit or waited >= wait_limit


def test_a_kernel_is_as_high_as_its_blocks_and_the_strip_as_long_as_it_runs():
    ax = figures.draw_busy([(0, 4, 90), (2, 6, 30), (7, 9, 400)], 10, 132, "").axes[0]
    assert sorted(box.get_height() for box in boxes(ax, BLUE)) == [30, 90, 132]
    assert sorted(box.get_width() for box in boxes(ax, ORANGE)) == [2, 4, 4]
    first, second = sorted(boxes(ax, BLUE), key=lambda box: box.get_x())[:2]
    assert second.get_y() == first.get_height(), "kernels that run together lie on each other"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "spin is not written yet: it ends at once. Until it passes its check above, nothing is drawn."),
        ("while (clock64() - start > clocks);", "spin ends too early. Until it passes its check above, "),
        ("while (clock64() - start < clocks);", ""),
    ],
)
def test_a_kernel_that_fails_its_check_is_not_measured(body, said, capsys):
    code = f"__global__ void spin(long long clocks) {{ long long start = clock64(); {body} }}"
    assert lesson_checks.waits(CudaSource(code, "spin"), "nothing is drawn") == (not said)
    assert said in (printed := capsys.readouterr().out)
    assert bool(printed) == bool(said)


def test_batches_hold_each_request_once_and_none_waits_longer_than_the_limit_for_an_idle_engine():
    arrivals = [0.0, 0.1, 0.2, 0.3, 5.0, 30.0, 30.1]
    batches = lesson_checks.batches_of(rule, arrivals, batch_limit=4, wait_limit=2, service=lambda size: 1.0)
    assert [request for _, _, requests in batches for request in requests] == list(range(7))
    assert [len(requests) for _, _, requests in batches] == [4, 1, 2]
    free = 0.0
    for begin, end, requests in batches:
        assert begin >= max(free, arrivals[requests[0]])
        assert begin <= max(free, arrivals[requests[0]] + 2) + 0.25  # a tick
        free = end


def test_a_rule_that_never_flushes_ends():
    assert (
        lesson_checks.batches_of(lambda *_: False, [0.0, 1.0], batch_limit=2, wait_limit=1, service=lambda n: 1) == []
    )


def test_a_request_waits_for_those_before_it():
    assert lesson_checks.first_come_first_served([0, 1, 10], [5, 1, 2]) == [5, 5, 2]


def test_the_simulated_waits_lie_near_the_formulas():
    figure = lesson_checks.draw_wait(lambda load, service: load / (1 - load) * service / 2)
    constant, exponential = (line for line in figure.axes[0].lines if line.get_marker() == "x")
    for load, wait in zip(constant.get_xdata(), constant.get_ydata(), strict=True):
        assert wait == pytest.approx(load / (1 - load) / 2, rel=0.15)
    for load, wait in zip(exponential.get_xdata(), exponential.get_ydata(), strict=True):
        assert wait == pytest.approx(load / (1 - load), rel=0.2)


def test_load_is_drawn_from_what_was_answered():
    status = np.array([OK, OK, TOO_MANY, OK])
    load = LoadResult(2.0, np.array([0.0, 0.5, 1.0, 1.5]), np.zeros(4), np.array([0.1, 0.1, 9.0, 0.1]), status)
    queue = queueing.long_run(2.0, lambda n: 0.1, 1, 4)
    left, right = figures.draw_load({1: [load]}, {1: [queue]}, "").axes
    assert left.lines[0].get_ydata()[0] == pytest.approx(3 / 10)  # until the last answer, at 1 + 9
    assert max(line.get_ydata()[0] for line in right.lines if len(line.get_ydata())) < 1000


def test_what_is_drawn_of_sharing_is_the_learners():
    figure = figures.draw_sharing(lambda n, busy: 1.0, lambda n, busy, fill: float(n), busy=0.5, fill=0.25)
    together = next(line for line in figure.axes[0].lines if line.get_label() == "yours: together")
    assert list(together.get_ydata()) == list(range(1, 17))
