"""Lab 09's calibration: thresholds of known histograms, the divergence by hand, and what does not fit."""

import math

import numpy as np
import pytest

from kernels.fusion.graph import int8, interpret
from kernels.fusion.graph.build import Builder
from kernels.fusion.passes import quantise
from kernels.fusion.passes.quantise import Histogram
from kernels.fusion.trained import digits, network
from tests.support.random_inputs import generator


def test_a_histogram_counts_magnitudes():
    found = Histogram.of(np.array([[-4.0, 0, 1], [2.5, 3.9, -1]]), bins=4)
    assert found.counts.tolist() == [1, 2, 1, 2]
    assert (found.largest, found.width) == (4, 1)
    zeros = Histogram.of(np.zeros(3), bins=4)
    assert zeros.counts.tolist() == [3, 0, 0, 0]
    assert all(threshold(zeros) > 0 for threshold in quantise.METHODS.values())
    for bad in (np.array([1, np.nan]), np.array([np.inf]), np.array([])):
        with pytest.raises(ValueError, match="calibration needs finite values"):
            Histogram.of(bad)


def test_min_max_and_percentile():
    histogram = Histogram(np.array([70, 20, 9, 0, 1]), 10.0)
    assert quantise.min_max(histogram) == 10
    assert quantise.percentile(histogram, 90) == 4
    assert quantise.percentile(histogram, 91) == 6
    assert quantise.percentile(histogram, 99.5) == 10


def test_the_divergence_by_hand():
    """Four bins to two levels: P = (1, 3, 2, 4), Q = each level's mean; a clipped bin joins the last."""
    counts = [1, 3, 2, 4]
    p, q = np.array(counts) / 10, np.array([2, 2, 3, 3]) / 10
    assert quantise.divergence(counts, 4, 2) == pytest.approx((p * np.log(p / q)).sum())
    p, q = np.array([1, 3, 6]) / 10, np.array([2, 2, 2]) / 6
    assert quantise.divergence(counts, 3, 2) == pytest.approx((p * np.log(p / q)).sum())
    # An empty bin stays empty, and its level's count goes to the others.
    p, q = np.array([4, 0, 3, 3]) / 10, np.array([4, 0, 3, 3]) / 10
    assert quantise.divergence([4, 0, 3, 3], 4, 2) == 0
    assert quantise.divergence([4, 3, 0, 3], 3, 3) == math.inf  # what is clipped falls on a bin that Q leaves empty


def test_entropy_clips_outliers_and_keeps_what_is_full():
    rng = generator()
    body = np.abs(rng.standard_normal(100_000))
    with_outlier = Histogram.of(np.append(body, 40.0))
    assert 2 < quantise.entropy(with_outlier) < 8
    assert quantise.min_max(with_outlier) == 40
    uniform = Histogram.of(rng.uniform(0, 1, 100_000))
    assert quantise.entropy(uniform) > 0.9
    few = Histogram.of(np.array([0, 1.0, 2.0]))
    assert quantise.entropy(few) <= 2


def test_zeros_make_the_slides_entropy_clip_too_much():
    values = np.maximum(generator().standard_normal(200_000), 0)
    histogram = Histogram.of(values)
    assert histogram.counts[0] > 0.4 * values.size
    assert histogram.without_zeros.counts[0] == histogram.counts[1]
    slides, without = quantise.entropy_of_slides(histogram), quantise.entropy(histogram)
    assert slides < 0.6 * without
    assert without > 2


def test_divergences_are_those_of_each_candidate():
    counts = generator().integers(1, 50, 200)
    bins, values = quantise.divergences(Histogram(counts, 1.0))
    assert bins.tolist() == list(range(128, 201))
    assert values[-1] == quantise.divergence(counts, 200)
    assert values[0] == quantise.divergence(counts, 128)


@pytest.mark.parametrize("method", quantise.METHODS)
def test_every_tensor_gets_a_scale_and_rounding_costs_at_most_half_of_it(method):
    b = Builder("g")
    x = b.input("x", (2, 4, 4))
    b.add("conv", "y", [x], {"filters": generator().standard_normal((3, 2, 1, 1))})
    b.add("relu", "z", ["y"])
    graph, samples = b.graph("z"), generator().standard_normal((50, 2, 4, 4))
    found = quantise.scales(graph, samples, method=method)
    assert found.keys() == graph.tensors.keys()
    for name, values in interpret.all_tensors(graph, samples).items():
        threshold = found[name] * int8.STEPS
        kept = np.abs(values) <= threshold
        assert kept.mean() > (0.4 if "slides" in method else 0.95)
        error = np.abs(int8.rounded_values(values, found[name]) - values)
        assert error[kept].max() <= found[name] / 2 * (1 + 1e-6)


def test_an_unknown_calibration_is_refused():
    graph = network.trained_graph()
    with pytest.raises(ValueError, match="there is no calibration 'mean'; choose one of min-max, percentile, entropy"):
        quantise.scales(graph, digits.split()[1].images[:1], method="mean")
