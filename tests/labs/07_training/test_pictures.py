"""Pictures of lab 07 that need a recording, and what they say when there is none."""

from types import SimpleNamespace

import pytest

from kernels.training import figures
from warpcourse.bench.recordings import Measurement


def measured(*names):
    rows = [
        {"way": way, "name": name, "seconds": 1e-4, "gbps": 1000.0 + k, "correct": True}
        for way in ("forward", "backward")
        for k, name in enumerate(names)
    ]
    return Measurement({"kernels": rows}, "NVIDIA H100", "2026-11-22", live=False)


def labels(figure):
    return [[tick.get_text() for tick in ax.get_yticklabels()] for ax in figure.axes]


def test_rates_of_kernels_and_of_xla():
    figure = figures.draw_rates(measured("copy", "cuda"), measured("op by op", "XLA"))
    assert labels(figure) == [["copy", "cuda", "JAX, op by op", "JAX, XLA"]] * 2
    assert figure.get_suptitle() == "recorded on NVIDIA H100, 2026-11-22"


def test_rates_of_xla_alone():
    assert labels(figures.draw_rates(None, measured("XLA"))) == [["JAX, XLA"]] * 2


def test_nothing_measured_is_said():
    with pytest.raises(ValueError, match="neither the kernels nor XLA have been measured"):
        figures.draw_rates(None, None)


def test_two_curves_and_how_far_they_are_apart():
    one, other = (SimpleNamespace(losses=losses) for losses in ([2.0, 1.0], [2.5, 0.75]))
    figure = figures.draw_training({"one": one, "other": other})
    assert figure.axes[1].lines[0].get_ydata().tolist() == [0.5, 0.25]
