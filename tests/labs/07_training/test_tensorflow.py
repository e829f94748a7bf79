"""Lab 07's experiments with TensorFlow."""

import numpy as np
import pytest

from kernels.training import reference
from tests.support.lazily import module
from tests.support.random_inputs import generator

pytestmark = pytest.mark.tensorflow
tf, framework = module("tensorflow"), module("kernels.training.framework")
as_number, digits, regression, tensorflow_op = (
    module(f"kernels.training.{name}") for name in ("as_number", "digits", "regression", "tensorflow_op")
)


def gelu(x, bias):
    return tf.nn.gelu(x + bias, approximate=True)


def normal(*shape):
    return tf.constant(generator().standard_normal(shape, dtype=np.float32))


def test_there_are_two_devices():
    assert [device.name[-5:] for device in tf.config.list_logical_devices("CPU")] == list(framework.DEVICES)


@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (65, 40)])
def test_the_operation_is_numpys(shape):
    x, bias = normal(*shape), normal(shape[1])
    expected = reference.gelu(x.numpy().astype(float) + bias.numpy())
    np.testing.assert_allclose(tensorflow_op.bias_gelu_op(x, bias), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_its_gradients_are_tensorflows(traced):
    x, bias, weight = normal(37, 12), normal(12), normal(37, 12)

    def gradients(operation):
        with tf.GradientTape() as tape:
            tape.watch((x, bias))
            loss = tf.reduce_sum(weight * operation(x, bias))
        return tape.gradient(loss, (x, bias))

    def by_kernels():
        return gradients(tensorflow_op.bias_gelu_op)

    found = (tf.function(by_kernels) if traced else by_kernels)()
    for one, other in zip(found, gradients(gelu), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)


def test_its_gradients_are_those_of_small_steps():
    by_kernel, by_steps = tf.test.compute_gradient(tensorflow_op.bias_gelu_op, [normal(3, 4), normal(4)], delta=1e-2)
    for one, other in zip(by_kernel, by_steps, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_network_trained_with_the_kernels_is_the_one_without():
    data = digits.load()
    own, kernels = (digits.train(activation, data, epochs=3) for activation in (gelu, tensorflow_op.bias_gelu_op))
    np.testing.assert_allclose(kernels.losses, own.losses, atol=1e-5)
    assert kernels.losses[-1] < kernels.losses[0] / 3
    assert kernels.accuracies[-1] > 0.8
    for one, other in zip(own.parameters, kernels.parameters, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_too_large_a_rate_kills_every_unit(seed):
    inputs, x = regression.data()
    large, small = (regression.train(rate, inputs, x, steps=100, seed=seed) for rate in (1e-3, 1e-5))
    assert large.dead[-1] == 1
    assert large.loss[-1] == pytest.approx(x.var(), rel=1e-3)  # the best that a constant can do
    assert large.gradient[-1] < 1e-6 * large.gradient[0]
    assert small.dead[-1] < 0.2
    assert small.loss[-1] < 0.5 * small.loss[0]


def test_a_sum_with_a_rate_is_a_mean_with_that_rate_times_the_samples():
    inputs, x = regression.data()
    one = regression.train(1e-5, inputs, x, steps=20)
    other = regression.train(1e-5 * len(x), inputs, x, reduce=tf.reduce_mean, steps=20)
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-3)


def test_mended_it_is_far_below_the_variance_at_ordinary_rates():
    inputs, x = regression.data()
    scaled = (x - np.pi) / np.pi
    for rate in (0.03, 0.1, 0.2):
        run = regression.train(rate, inputs, scaled, reduce=tf.reduce_mean, deviation=None, steps=1000)
        assert run.loss[-1] < 0.2 * scaled.var()
        assert run.dead[-1] == 0


def test_the_mean_alone_mends_it_and_the_others_alone_do_not():
    inputs, x = regression.data()
    scaled = (x - np.pi) / np.pi
    mean, he = {"reduce": tf.reduce_mean}, {"deviation": None}
    for rate in (1e-3, 0.1):
        for target, options in ((x, mean), (scaled, mean | he)):
            run = regression.train(rate, inputs, target, **options)
            assert run.dead[-1] == 0
            assert run.loss[-1] < target.var() / 2
    for target, options, dead in ((scaled, {}, 1), (x, he, 0.5)):
        assert regression.train(1e-3, inputs, target, **options).dead[-1] >= dead
        assert not np.isfinite(regression.train(0.1, inputs, target, **options).loss[-1])


def test_half_precision_learns_between_two_scales():
    data = digits.load()
    full = digits.train(gelu, data)
    runs = {k: digits.train(gelu, data, precision=tf.float16, scale=2.0**k) for k in (-20, -16, 0, 15, 20)}
    for k in (0, 15):
        assert runs[k].losses[-1] == pytest.approx(full.losses[-1], rel=0.05)
        assert runs[k].accuracies[-1] > 0.95
    assert runs[-20].accuracies[-1] < runs[-16].accuracies[-1] < 0.9
    assert np.isnan(runs[20].losses[-1])
    assert {p.dtype for p in runs[0].parameters} == {tf.float32}


def test_feeding_what_the_loss_reads_works_with_both_kinds_of_variables():
    v1 = tf.compat.v1
    for use_resource in (False, True):
        with tf.Graph().as_default(), v1.Session() as session:
            w = v1.get_variable("w", initializer=3.0, use_resource=use_resource)
            read = w.value()
            loss = (read - 5.0) ** 2
            step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
            session.run(v1.global_variables_initializer())
            assert session.run([loss, step], {read: 4.0})[0] == 1
            assert session.run(w) == pytest.approx(3.2)


def test_regression_names_what_does_not_fit():
    inputs, x = regression.data(samples=8)
    with pytest.raises(ValueError, match="there are 8 inputs and 7 targets; each input needs one"):
        regression.train(1e-3, inputs, x[:7])


def test_as_number():
    def twice(x):
        return tf.constant([2.0 * x])

    def blank(x):
        """Nothing yet."""

    assert as_number.as_number(twice)(3.0) == 6.0
    assert isinstance(as_number.as_number(twice)(3.0), float)
    assert as_number.as_number(twice).__name__ == "twice"
    assert as_number.as_number(blank)(1.0) is None
    assert as_number.as_number(blank)._warplab_blank
    assert not as_number.as_number(twice)._warplab_blank


def test_slope_through():
    def cubed(x):
        return x**3, lambda dy: 10 * dy  # a gradient of its own, not the derivative

    assert as_number.slope_through(cubed, lambda y: 3 * y)(2.0) == 30
    assert as_number.slope_through(lambda x: (x, lambda dy: None), lambda y: y)(2.0) is None
    assert as_number.slope_through(lambda x: None, lambda y: y)(2.0) is None


def test_xla_cannot_compile_what_goes_through_numpy():
    x, bias = normal(3, 4), normal(4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="PyFunc"):
        tf.function(lambda x, bias: tensorflow_op.bias_gelu_op(x, bias), jit_compile=True)(x, bias)


def test_a_feed_replaces_one_read_of_a_variable_and_no_other():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=3.0, use_resource=True)
        twice = 2.0 * w
        session.run(v1.global_variables_initializer())
        assert session.run([w, twice], {w: 4.0}) == [4.0, 6.0]
