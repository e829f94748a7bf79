"""Mean, deviation and histogram of what a layer puts out."""

import json

import numpy as np
import pytest

from digits.look.answers import packed, unpacked
from digits.look.statistics import Statistics, statistics
from tests.support.random_inputs import generator


def test_figures_are_numpys():
    values = generator().normal(3, 2, (5, 7, 11)).astype(np.float32)
    values[0, 0, :5] = 0
    found = statistics(values)
    assert found.count == 385
    assert found.mean == pytest.approx(values.mean(dtype=np.float64))
    assert found.deviation == pytest.approx(values.std(dtype=np.float64))
    assert (found.least, found.most) == (values.min(), values.max())
    assert found.zeros == pytest.approx(5 / 385)
    counts, edges = np.histogram(values.astype(np.float64), bins=20)
    assert list(found.counts) == counts.tolist()
    np.testing.assert_allclose(found.edges, edges)


def test_what_is_no_number_is_counted_and_left_out():
    found = statistics(np.array([1.0, np.nan, np.inf, 3.0]))
    assert (found.count, found.not_finite, found.mean, sum(found.counts)) == (4, 2, 2.0, 2)
    lost = statistics(np.full(3, np.nan))
    assert (lost.count, lost.not_finite, lost.mean, lost.counts) == (3, 3, None, ())


@pytest.mark.parametrize("values", [np.zeros(9), np.full(4, 1e20), np.array([1, 1 + 1e-16, np.nextafter(1, 2)])])
def test_values_that_hardly_differ_have_a_histogram_of_all_of_them(values):
    found = statistics(values)
    assert sum(found.counts) == len(values)
    assert len(found.edges) == len(found.counts) + 1


def test_an_array_is_packed_beside_what_names_it():
    told, arrays = packed([np.arange(3), "two"])
    assert (told, arrays["0"].tolist()) == ([{"array": "0"}, "two"], [0, 1, 2])


def test_they_survive_json():
    for values in (np.arange(5.0), np.full(2, np.nan), np.zeros(0)):
        told, arrays = packed(statistics(values))
        assert unpacked(Statistics, json.loads(json.dumps(told)), arrays) == statistics(values)
