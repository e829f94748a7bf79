"""Lab 11's engines: what a name gives, what is refused, and what the lab's own ones answer."""

import sys
from types import ModuleType

import numpy as np
import pytest

from kernels.serving.serve import engines
from kernels.serving.serve.engines import EngineError, Virtual, digits_network, make
from tests.support.random_inputs import generator

DIGITS = "kernels.serving.serve.engines:digits"


class Sums:
    name, shape = "sums", (2,)

    def predict(self, batch):
        return batch.sum(axis=1)


@pytest.fixture
def factories(monkeypatch):
    """A module `made_up` whose functions tests write."""
    module = ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    return module


def test_digits_answer_probabilities_and_get_most_digits_right():
    engine = make(DIGITS)
    _, _, images, labels = digits_network.digits()
    found = engines.answer(engine, images)
    assert engines.warm_up(engine) == (10,)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert (found.argmax(axis=1) == labels).mean() > 0.95


def test_an_answer_does_not_depend_on_the_batch():
    engine, images = make(DIGITS), generator().random((33, 1, 8, 8), np.float32)
    one_by_one = np.concatenate([engine.predict(image[None]) for image in images])
    np.testing.assert_allclose(engine.predict(images), one_by_one, atol=2e-5)  # sums in another order


def test_training_follows_the_gradient():
    """Against differences, for some weights of each array; and more steps get more digits right."""
    random = np.random.default_rng(1)
    x, labels = random.random((20, 64)), random.integers(0, 10, 20)
    shapes = {"hidden": (64, 64), "hidden_bias": (64,), "classes": (64, 10), "classes_bias": (10,)}
    weights = {name: random.standard_normal(shape) for name, shape in shapes.items()}

    def loss():
        return -np.log(digits_network.probabilities(weights, x)[np.arange(20), labels]).mean()

    slopes = digits_network._gradient(weights, x, np.eye(10)[labels])
    for name, values in weights.items():
        for place in random.integers(0, values.size, 5):
            kept, found = values.flat[place], []
            for step in (1e-6, -1e-6):
                values.flat[place] = kept + step
                found.append(loss())
            values.flat[place] = kept
            assert slopes[name].flat[place] == pytest.approx((found[0] - found[1]) / 2e-6, abs=1e-6)
    images, labels, *_ = digits_network.digits()
    right = [digits_network.accuracy(digits_network.trained(images, labels, n), images, labels) for n in (1, 40)]
    assert right[0] < 0.6 < 0.85 < right[1]


def test_a_virtual_engine_takes_the_time_it_is_told():
    passed = []
    engine = Virtual(0.5, 0.25, (3,), passed.append)
    np.testing.assert_array_equal(engine.predict(np.arange(6, dtype=np.float32).reshape(2, 3)), [[3], [12]])
    assert passed == [1.0] == [engine.seconds(2)]
    assert make("kernels.serving.serve.engines:virtual", per_batch=0, per_sample=0.0, shape=[2, 2]).shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digits", "'digits' is no name of an engine: write module:function"),
        ("kernels.serving.serve.engines:", "is no name of an engine"),
        ("kernels/serving/serve/engines/__init__.py:digits", "is no name of an engine"),
        ("nowhere:digits", "there is no module 'nowhere', which the engine 'nowhere:digits' names"),
        ("kernels.serving.nowhere:digits", "there is no module 'kernels.serving.nowhere'"),
        ("kernels.serving.serve.engines:digit", "module 'kernels.serving.serve.engines' has no function 'digit'"),
        ("kernels.serving.serve.engines:DISCARDED", "has no function 'DISCARDED'"),
    ],
)
def test_names_of_nothing_are_refused(name, message):
    with pytest.raises(EngineError, match=message):
        make(name)


def test_a_module_that_lacks_another_says_which(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import not_to_be_found_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EngineError, match="needs the module 'not_to_be_found_anywhere', which is not installed"):
        make("needs_more:engine")


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(EngineError, match=r"could not be made of size=3: .*unexpected keyword argument 'size'"):
        make(DIGITS, size=3)
    for option in ({"per_batch": -1}, {"per_sample": "long"}, {"per_batch": float("nan")}):
        with pytest.raises(EngineError, match="must be a number, 0 or more"):
            make("kernels.serving.serve.engines:virtual", **option)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"shape": [2]}, r"has the shape \[2\]; it must be a tuple"),
        ({"shape": (2, 0)}, "whole numbers above 0"),
        ({"shape": ()}, "whole numbers above 0"),
        ({"at_once": 0}, "takes 0 batches at once"),
    ],
)
def test_what_is_no_engine_is_refused(factories, attributes, message):
    factories.engine = lambda: type("Odd", (Sums,), attributes)()
    with pytest.raises(EngineError, match=message):
        make("made_up:engine")
    factories.engine = lambda: 3
    with pytest.raises(EngineError, match="made a int, which is no engine: it has no 'name'"):
        make("made_up:engine")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (lambda batch: batch[1:], r"answered a batch of 3 with float32 of shape \(2, 2\)"),
        (lambda batch: 1.0, r"of shape \(\)"),
        (lambda batch: ["a"] * len(batch), "it must answer numbers, a row for each sample"),
        (lambda batch: batch / 0, "numbers that are not finite"),
    ],
)
def test_answers_are_held_to_the_interface(results, message):
    engine = type("Odd", (Sums,), {"predict": lambda self, batch: results(batch)})()
    with np.errstate(all="ignore"), pytest.raises(EngineError, match=message):
        engines.answer(engine, np.zeros((3, 2), np.float32))


def test_an_engine_that_fails_on_its_first_sample_says_so(factories):
    def fail(self, batch):
        raise RuntimeError("out of memory")

    factories.engine = lambda: type("Odd", (Sums,), {"predict": fail})()
    with pytest.raises(EngineError, match="sums fails on its first sample, zeros: out of memory"):
        engines.warm_up(make("made_up:engine"))
