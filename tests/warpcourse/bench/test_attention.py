"""Attention below the labs: decoding is attention of one query, from pages; a lab's kernels are found by its record."""

import numpy as np
import pytest

from tests.support.random_inputs import generator
from warpcourse.bench import attention, lab


@pytest.mark.parametrize("scale", [None, 0.7])
def test_decoding_is_the_last_query_of_each_sequence(scale):
    random, page, heads, of_keys, size = generator(), 4, 6, 2, 5
    lengths, table = np.array([9, 4, 1]), np.array([[5, 0, 3], [2, 1, 1], [4, 4, 4]])
    pages = np.full((2, 6, of_keys, page, size), np.nan)
    q, alone = random.standard_normal((3, heads, size)), []
    for sequence, length in enumerate(lengths):
        k_v = random.standard_normal((2, of_keys, length, size))
        for at in range(length):
            pages[:, table[sequence, at // page], :, at % page] = k_v[:, :, at]
        alone.append(attention.forward(q[None, sequence, :, None], *k_v[:, None], scale=scale))
    for found, right in zip(attention.decode(q, *pages, lengths, table, scale), zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, np.concatenate(right)[:, :, 0], rtol=1e-12)


def test_kernels_are_those_that_a_lab_offers(monkeypatch):
    offering = [one for one in lab.labs() if "ATTENTION" in one.offers]
    found = attention.by_kernels()
    assert (found is not None) == bool(offering)
    monkeypatch.setattr(lab, "labs", list)  # all deleted
    lab.offered.cache_clear()
    assert attention.by_kernels() is None
    monkeypatch.setattr(attention.backend, "name", lambda: "gpu")
    assert attention.on_this_machine() is attention.DEFINITION
    monkeypatch.undo()
    lab.offered.cache_clear()
    assert attention.by_kernels() is found
    monkeypatch.setattr(attention.backend, "name", lambda: "simulator")
    assert attention.on_this_machine() is attention.DEFINITION
