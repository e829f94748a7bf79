"""The small network as an engine: NumPy's answers for batches of any size, on whatever backend runs."""

import numpy as np
import pytest

from kernels.serving.serve import engines
from kernels.serving.serve.engines.small_network_engine import DEEP, NetworkEngine
from kernels.serving.small_network import SmallNetwork

NETWORK = SmallNetwork(layers=2, channels=8, size=6, classes=5)


def test_every_batch_gets_numpys_answers_and_keeps_them():
    engine = engines.checked(NetworkEngine(NETWORK, (2, 1, 4)), "it")
    images = NETWORK.images(7)
    expected = NETWORK.answer(images)
    kept = [engine.predict(images[a:b]) for a, b in ((0, 1), (1, 3), (3, 6), (3, 7))]
    for found, (a, b) in zip(kept, ((0, 1), (1, 3), (3, 6), (3, 7)), strict=True):  # a later batch changed none
        np.testing.assert_allclose(found, expected[a:b], rtol=1e-4, atol=1e-4)
        assert found.dtype == np.float32
    np.testing.assert_array_equal(engine.predict(list(images[3:6])), kept[2])


def test_batches_that_do_not_fit_are_refused():
    engine = NetworkEngine(NETWORK, (1, 2))
    for count in (0, 3):
        with pytest.raises(ValueError, match=f"a batch of {count} images does not fit; this engine takes 1 to 2"):
            engine.predict(np.zeros((count, *engine.shape), np.float32))
    for sizes in ((), (0, 1)):
        with pytest.raises(ValueError, match="give batch sizes of 1 or more"):
            NetworkEngine(NETWORK, sizes)


def test_the_factories_are_engines():
    engine = engines.make("kernels.serving.serve.engines.small_network_engine:small", sizes=[1])
    assert engine.shape == (3, 32, 32)
    assert DEEP.size == 8
