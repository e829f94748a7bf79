"""Live bytes and recomputation in TensorFlow, against counts by hand and against the operating system.

Everything that imports TensorFlow is in this file, so that one process of the tests loads it.
"""

import numpy as np
import pytest

from kernels.recomputation import plan as plans
from kernels.recomputation import process_memory, resnet
from tests.support.lazily import module
from warplab.checks import CheckFailed

pytestmark = pytest.mark.tensorflow
tf = module("tensorflow")
resnet_steps, segments, tracking, trial = (
    module(f"kernels.recomputation.{name}") for name in ("resnet_steps", "segments", "tape", "trial")
)

MIB = 2**20
# Activations beside the model's: in the last segment, where the loss, the mean of y², turns into gradients; in others.
LOSS, OTHERS = 5, 4


@pytest.fixture(scope="module")
def chain():
    return segments.chain(16)


@pytest.fixture(scope="module")
def kept(chain):
    return segments.step(chain)


def test_one_product_by_hand():
    a, w = tf.ones((1024, 256)), tf.Variable(tf.ones((256, 512)))
    with tracking.Tracker() as tracker, tf.GradientTape() as tape:
        y = a @ w
        assert tracker.live == 2 * MIB  # y; reading w makes no copy
        z = tf.reshape(y, (512, 1024))
        assert tracker.live == 2 * MIB  # the same memory
        del y
        assert tracker.live == 2 * MIB  # z holds it
    assert tracker.peak == 2 * MIB
    del z, tape
    assert tracker.live == 0


def test_what_the_tape_saves_lives_until_it_is_used():
    x, w = tf.ones((1024, 256)), tf.Variable(tf.eye(256))
    with tracking.Tracker() as tracker:
        with tf.GradientTape() as tape:
            y = tf.tanh(tf.tanh(x @ w) @ w)
        assert tracker.live == 2 * MIB  # two results of tanh; the products are gone
        gradient = tape.gradient(y, w)
        del y
        assert tracker.live == segments.nbytes([gradient])


def test_memory_named_as_before_is_not_counted_again():
    x = tf.ones((1024, 256))
    with tracking.Tracker() as unnamed, tracking.Tracker(before=[x]) as named:
        y = tf.stop_gradient(x)
        assert (unnamed.live, named.live) == (MIB, 0)
        z = y + 1
        assert (unnamed.live, named.live) == (2 * MIB, MIB)
    del y, z


def test_small_tensors_and_graphs_are_left_out():
    with tracking.Tracker() as tracker:
        small = tf.ones(8) + 1
        traced = tf.function(lambda x: tf.tanh(x) + 1)(tf.ones(4096))
    assert tracker.peak <= 2 * 4096 * 4  # what went in and what came out
    del small, traced


def test_other_precisions_count_their_bytes():
    for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int8):
        x = tf.ones((512, 512), dtype)
        with tracking.Tracker() as tracker:
            y = x + x
        assert tracker.live == 512 * 512 * dtype.size, dtype
        del y


@pytest.mark.parametrize("plan", [(0,), plans.even(16, 4), plans.even(16, 1), (0, 5, 9, 12, 14), (0, 15)])
def test_the_peak_of_a_step_is_the_models(chain, kept, plan):
    step = segments.step(chain, plan)
    model = plans.peak(plan, [0] + [1] * 15, [1] * 16)
    gradients = segments.nbytes(step.gradients) / MIB
    assert model + OTHERS <= step.peak_mib <= model + LOSS + gradients
    assert step.evaluations == plans.evaluations(plan, 16)
    assert step.loss == kept.loss
    assert segments.largest_difference(step.gradients, kept.gradients) == 0


def test_tensorflows_own_needs_the_same(chain, kept):
    plan = plans.even(16, 4)
    ours, theirs = (segments.step(chain, plan, by) for by in (segments.recompute, tf.recompute_grad))
    assert theirs.peak_mib == ours.peak_mib
    assert theirs.evaluations == ours.evaluations
    assert segments.largest_difference(theirs.gradients, kept.gradients) == 0


def test_gradients_are_those_of_finite_differences():
    given = segments.chain(3, width=4, batch=8)
    step = segments.step(given, plans.even(3, 1))
    h, w = 1e-2, given.weights[1]
    original = w.numpy()
    for place in ((0, 0), (2, 3)):
        losses = []
        for sign in (1, -1):
            changed = original.copy()
            changed[place] += sign * h
            w.assign(changed)
            losses.append(segments.step(given).loss)
        w.assign(original)
        numeric = (losses[0] - losses[1]) / (2 * h)
        np.testing.assert_allclose(step.gradients[1].numpy()[place], numeric, rtol=2e-2, atol=1e-4)


def test_a_fresh_process_grows_by_what_the_tracker_counts(chain):
    """The tracker's 16 layers in one process, and Linux's count of another, in activations."""
    plan = plans.even(16, 4)
    tracked = segments.step(chain, plan).tracker.peak / chain.activation_bytes
    found = process_memory.measure(16, 4)
    if not found["reset"]:
        pytest.skip("this system does not let a process reset its peak (/proc/self/clear_refs)")
    grown = (found["peak_bytes"] - found["before_bytes"]) / found["activation_bytes"]
    assert tracked - 0.5 <= grown <= tracked + 1.5


def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match="segments of at least one, not 4 and 0"):
        process_memory.measure(4, 0)


def test_resnet_101_keeps_what_its_layers_say():
    """34 blocks on 4 images of 64 x 64: the tape's bytes after the forward pass, and the plans' gradients."""
    blocks, images = resnet_steps.network(101), tf.random.Generator.from_seed(1).normal((4, 64, 64, 3))
    inputs, inside = resnet.bytes_of(resnet.blocks(101, 64, summands=True), batch=4)
    best = plans.best(inputs, inside)
    kept, again = (resnet_steps.step(blocks, images, plan) for plan in ((0,), best))
    assert kept.kept_bytes == pytest.approx(sum(inside), rel=0.01)
    assert kept.convolutions == 104
    assert again.peak_bytes < kept.peak_bytes / 2
    assert float(tf.reduce_max(tf.abs(kept.gradient))) > 0
    assert segments.largest_difference([again.gradient], [kept.gradient]) == 0


def stopped_once(f):
    """Like segments.recompute, but backward uses the stopped arguments, which share the memory of the given ones."""

    @tf.custom_gradient
    def g(*arguments):
        stopped = [tf.stop_gradient(argument) for argument in arguments]

        def backward(dy):
            with tf.GradientTape() as tape:
                tape.watch(stopped)
                again = f(*stopped)
            return tape.gradient(again, stopped, dy)

        return f(*stopped), backward

    return g


def test_a_right_recomputation_passes_the_trial(capsys):
    trial.check_recompute(stopped_once)
    assert "recompute: right for 3 chains." in capsys.readouterr().out


@pytest.mark.parametrize(
    "ready_made", [lambda: tf.recompute_grad, lambda: segments.recompute, lambda: lambda f: tf.recompute_grad(f)]
)
def test_what_is_ready_made_fails_the_trial(ready_made):
    before = tf.recompute_grad, segments.recompute
    with pytest.raises(CheckFailed, match="leaves the work to a ready-made function"):
        trial.check_recompute(ready_made())
    assert (tf.recompute_grad, segments.recompute) == before


def test_a_recompute_that_changes_the_result_fails_the_trial():
    def off(f):
        return lambda *arguments: stopped_once(f)(*arguments) + 1

    with pytest.raises(CheckFailed, match="the loss changes"):
        trial.check_recompute(off)


def test_a_recompute_that_breaks_fails_the_trial():
    def broken(f):
        return lambda x: f(x)

    with pytest.raises(CheckFailed, match="raises TypeError"):
        trial.check_recompute(broken)
