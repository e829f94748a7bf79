"""A look into models whose answers can be computed by hand, and what happens when their process dies."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

from digits import look
from digits.files import write_json
from digits.look import client
from digits.training import checkpoints
from digits.workspace import Workspace
from tests.support.random_inputs import generator
from tests.support.waiting import until
from warpcourse.paths import COURSE

SHAPE = (6, 5, 1)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("look")
    script = Path(__file__).with_name("make_look_runs.py")
    environment = {**os.environ, "PYTHONPATH": str(COURSE)}
    made = subprocess.run([sys.executable, str(script), str(root)], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return Workspace(root)


def folder(workspace, name):
    (found,) = [workspace.runs / id for id in workspace.ids("runs") if id.endswith(f"-{name}")]
    return found


@pytest.fixture(scope="module")
def opened(workspace):
    """`opened(name)`: a look into the run of that name; all share the processes."""
    looks = {}

    def one(name):
        for other, inside in looks.items():
            if other != name:
                inside.close()  # one TensorFlow at a time
        return looks.setdefault(name, look.open(folder(workspace, name)))

    yield one
    for inside in looks.values():
        inside.close()


def drawn(count, shape=SHAPE):
    return generator().integers(0, 256, (count, *shape), np.uint8)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def kernel_and_bias(inside):
    """The linear network's weights, as the look shows them."""
    out = inside.layer(np.zeros(SHAPE, np.uint8), "out")
    return out.weights[0].tiles[0, 0], np.float32([0.1, 0.2, -0.3])


def by_hand(inside, images):
    kernel, bias = kernel_and_bias(inside)
    return softmax((images / 255).reshape(len(images), -1) @ kernel + bias)


def test_the_model_is_described(opened):
    model = opened("linear").model()
    assert (model.kind, model.input, model.parameters) == ("classification", SHAPE, 93)
    assert model.classes == ("zero", "<b>one</b>", "two")
    assert [(row.kind, row.shape, row.parameters) for row in model.layers] == [
        ("Flatten", (30,), 0),
        ("Dense", (3,), 93),
    ]


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 130])
def test_probabilities_are_those_of_the_formula(opened, count):
    inside, images, told = opened("linear"), drawn(count), []
    found = inside.classify(images, progress=told.append)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hand(inside, images), rtol=1e-4, atol=1e-6)
    assert told[-1] == 1.0


def test_gradient_times_input_of_a_linear_network_is_weight_times_pixel(opened):
    inside, (image,) = opened("linear"), drawn(1)
    kernel, _ = kernel_and_bias(inside)
    for label in range(3):
        found = inside.saliency(image, label, "gradient")
        expected = kernel[:, label].reshape(6, 5) * image[:, :, 0] / 255
        np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-6)
        assert (found.label, found.method) == (label, "gradient")
        assert found.probability == pytest.approx(by_hand(inside, image[None])[0, label], rel=1e-4)


def test_saliency_asks_about_the_answer_unless_told_otherwise(opened):
    inside, (image,) = opened("linear"), drawn(1)
    assert inside.saliency(image).label == inside.classify(image[None])[0].argmax()


def test_occlusion_is_the_fall_of_the_probability(opened):
    inside, (image,) = opened("linear"), drawn(1)
    label, prepared = 1, image / 255
    whole = by_hand(inside, image[None])[0, label]
    kernel, bias = kernel_and_bias(inside)
    sums, covered = np.zeros((6, 5)), np.zeros((6, 5))
    for row in range(5):
        for column in range(4):
            hidden = prepared.copy()
            hidden[row : row + 2, column : column + 2] = prepared.mean()
            fall = whole - softmax(hidden.reshape(-1) @ kernel + bias)[label]
            sums[row : row + 2, column : column + 2] += fall
            covered[row : row + 2, column : column + 2] += 1
    found = inside.saliency(image, label, "occlusion")
    assert found.patch == 2
    np.testing.assert_allclose(found.values, sums / covered, rtol=1e-3, atol=1e-5)


def test_a_whole_part_of_the_dataset_is_tested(opened, workspace):
    inside = opened("linear")
    found = inside.test("validation")
    (dataset,) = workspace.ids("datasets")
    images = np.load(workspace.datasets / dataset / "validation_images.npy")
    assert found.indices.tolist() == list(range(30))
    assert found.labels.tolist() == np.load(workspace.datasets / dataset / "validation_labels.npy").tolist()
    np.testing.assert_allclose(found.probabilities, by_hand(inside, images), rtol=1e-4, atol=1e-6)
    some = inside.test("validation", images=4)
    assert some.indices.tolist() == [0, 9, 19, 29]
    np.testing.assert_allclose(some.probabilities, found.probabilities[some.indices], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda inside: inside.classify(drawn(2, (5, 5, 1))), "6 × 5 × 1.*5 × 5 × 1 in uint8.*size first"),
        (lambda inside: inside.classify(drawn(2).astype(np.float32)), "in float32"),
        (lambda inside: inside.layer(drawn(1)[0], "<i>"), "no layer '<i>'. It has flatten"),
        (lambda inside: inside.saliency(drawn(1)[0], 3), "no class 3.*0 to 2"),
        (lambda inside: inside.saliency(drawn(1)[0], method="guess"), "no method 'guess'"),
        (lambda inside: inside.test("test"), "has no test images"),
        (lambda inside: inside.test("../train"), "parts train, validation, test"),
        (lambda inside: inside.model("step-9"), "no checkpoint 'step-9'"),
        (lambda inside: inside.classify(np.array([object()])), "cannot be asked"),
    ],
)
def test_a_question_without_answer_gets_a_sentence_and_the_next_one_its_answer(opened, ask, words):
    inside = opened("linear")
    inside.model()
    before = inside.pid
    with pytest.raises(look.LookError, match=words):
        ask(inside)
    assert inside.model().kind == "classification"
    assert inside.pid == before


def correlate(image, kernel, stride=1):
    """A convolution as networks have it, without padding: (h, w, in) and (kh, kw, in, out)."""
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[:2], axis=(0, 1))[::stride, ::stride]
    return np.einsum("hwcij,ijco->hwo", windows, kernel)


def test_layers_show_what_the_network_computes(opened):
    inside = opened("tangled")
    (image,) = drawn(1, (6, 6, 3))
    layers = {layer.name: layer for layer in inside.layers(image)}
    assert list(layers)[:3] == ["near", "bend", "bend #2"]
    near, far = layers["near"], layers["inner/far"]
    kernels = {name: layers[name].weights[0].tiles.transpose(2, 3, 1, 0) for name in ("near", "inner/far")}
    bias = {name: next(w for w in layers[name].weights if w.name == "bias") for name in kernels}
    assert all(w.tiles is None and w.shape == (n,) for w, n in zip(bias.values(), (4, 5), strict=True))

    padded = np.pad(image / 255, ((1, 1), (1, 1), (0, 0)))
    first = correlate(padded, kernels["near"])
    difference = near.maps.transpose(1, 2, 0) - first  # the bias, the same everywhere
    np.testing.assert_allclose(difference, np.broadcast_to(difference[0, 0], difference.shape), atol=1e-5)
    assert difference[0, 0].mean() == pytest.approx(bias["near"].statistics.mean, abs=1e-5)

    once = np.tanh(near.maps)
    np.testing.assert_allclose(layers["bend"].maps, once, atol=1e-5)
    np.testing.assert_allclose(layers["bend #2"].maps, np.tanh(once), atol=1e-5)
    # Nothing is dropped when a network is used.
    np.testing.assert_allclose(layers["drop"].maps, once + np.tanh(once), atol=1e-5)
    deeper = correlate(layers["drop"].maps.transpose(1, 2, 0), kernels["inner/far"], stride=2)
    difference = far.maps.transpose(1, 2, 0) - deeper
    np.testing.assert_allclose(difference, np.broadcast_to(difference[0, 0], difference.shape), atol=1e-4)
    assert (far.shape, far.channels, far.kind, far.parameters) == ((2, 2, 5), 5, "Conv2D", 4 * 9 * 5 + 5)

    np.testing.assert_allclose(layers["inner"].maps, far.maps.transpose(1, 2, 0).ravel(), atol=1e-5)
    answered = inside.classify(image[None])[0]
    np.testing.assert_allclose(layers["probabilities"].maps, answered, atol=1e-6)
    np.testing.assert_allclose(softmax(layers["scores"].maps), answered, atol=1e-5)
    assert near.activation.mean == pytest.approx(near.maps.mean(), abs=1e-5)
    assert {row.name for row in inside.model().layers} == set(layers)


def test_gradient_times_input_agrees_with_differences(opened):
    """Of two classes' scores, whose difference is that of the probabilities' logarithms."""
    inside = opened("tangled")
    image = drawn(1, (6, 6, 3))[0].clip(1, 254)
    gradient = inside.saliency(image, 0).values - inside.saliency(image, 1).values
    estimate = np.zeros((6, 6))
    for channel in range(3):
        moved = np.repeat(image[None], 72, axis=0)
        for i in range(36):
            moved[i, i // 6, i % 6, channel] += 1
            moved[36 + i, i // 6, i % 6, channel] -= 1
        p = np.log(inside.classify(moved).astype(np.float64))
        score = (p[:, 0] - p[:, 1]).reshape(2, 6, 6)
        estimate += (score[0] - score[1]) / 2 * image[:, :, channel]
    np.testing.assert_allclose(gradient, estimate, atol=0.02 * np.abs(estimate).max())


def test_a_deleted_dataset_leaves_the_classes_numbers(opened):
    inside = opened("tangled")
    assert inside.model().classes == ("0", "1", "2")
    with pytest.raises(look.LookError, match="deleted"):
        inside.test("validation")


def test_mixed_precision_is_looked_at_in_float32(opened):
    inside = opened("half")
    layers = inside.layers(drawn(1)[0])
    assert {layer.maps.dtype for layer in layers} == {np.dtype(np.float32)}
    assert inside.saliency(drawn(1)[0]).values.dtype == np.float32


def test_a_network_that_diverged_is_shown_as_it_is(opened):
    inside = opened("diverged")
    assert np.isnan(inside.classify(drawn(2))).all()
    out = inside.layer(drawn(1)[0], "out")
    assert (out.activation.mean, out.activation.not_finite) == (None, 3)
    with pytest.raises(look.LookError, match="diverged"):
        inside.saliency(drawn(1)[0])


def test_other_kinds_show_layers_and_raw_outputs(opened):
    inside, images = opened("scenes"), drawn(3)
    found = inside.predict(images)
    assert {name: array.shape for name, array in found.items()} == {"coverage": (3, 6, 5, 2), "boxes": (3, 6, 5, 4)}
    assert {layer.name for layer in inside.layers(images[0])} == {"coverage", "boxes"}
    with pytest.raises(look.LookError, match=r"kind is detection.*Scenes"):
        inside.classify(images)


def test_each_checkpoint_can_be_looked_into_and_the_last_is_the_newest(opened):
    inside, images = opened("kept"), drawn(3)
    assert [(one.name, one.step, one.epoch) for one in inside.checkpoints()] == [
        ("step-000000020", 20, 2.0),
        ("step-000000010", 10, 1.0),
    ]

    def scores(checkpoint):
        p = np.log(inside.classify(images, checkpoint).astype(np.float64))
        return p - p.mean(axis=1, keepdims=True)

    np.testing.assert_allclose(scores("step-000000020"), 2 * scores("step-000000010"), atol=1e-4)
    np.testing.assert_allclose(scores(None), scores("step-000000020"), atol=1e-6)

    # The training goes on: the process holds the model of a step that is not the last any more.
    arrays, _ = checkpoints.read(checkpoints.listed(inside.folder)[0])
    newer = {name: 3 * array for name, array in arrays.items()}
    checkpoints.write(inside.folder, 30, newer, {"epoch": 3.0}, keep=True)
    np.testing.assert_allclose(scores(None), 1.5 * scores("step-000000020"), atol=1e-4)
    with pytest.raises(look.LookError, match="no checkpoint 'step-000000010'"):
        inside.classify(images, "step-000000010")

    # A damaged one is passed over, and said where it was asked for.
    checkpoints.listed(inside.folder)[-1].arrays.write_bytes(b"PK")
    (inside.folder / "checkpoints" / "touched").touch()
    np.testing.assert_allclose(scores(None), scores("step-000000020"), atol=1e-6)
    with pytest.raises(look.LookError, match="step 30 is damaged"):
        inside.classify(images, "step-000000030")


@pytest.mark.parametrize(("name", "words"), [("empty", "no weights yet"), ("damaged", "model.keras")])
def test_a_run_without_a_model_says_so(opened, name, words):
    with pytest.raises(look.LookError, match=words):
        opened(name).model()


def test_a_process_that_was_killed_starts_again(opened):
    inside, images = opened("linear"), drawn(2)
    before = inside.classify(images)
    first = inside.pid
    os.kill(first, signal.SIGKILL)
    assert np.array_equal(inside.classify(images), before)
    assert inside.pid != first


def test_a_process_that_is_killed_while_it_answers_starts_again(opened):
    inside, images, answered = opened("linear"), drawn(2), []
    before, first = inside.classify(images), inside.pid
    os.kill(first, signal.SIGSTOP)  # it will not answer
    asking = threading.Thread(target=lambda: answered.append(inside.classify(images)))
    asking.start()
    until(inside._lock.locked)
    os.kill(first, signal.SIGKILL)
    asking.join()
    assert np.array_equal(answered[0], before)


def test_a_question_can_be_broken_off(opened):
    inside, told = opened("linear"), []
    inside.model()
    os.kill(inside.pid, signal.SIGSTOP)

    def ask():
        try:
            inside.model()
        except look.LookError as error:
            told.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    until(inside._lock.locked)
    until(lambda: inside.cancel() or told)
    asking.join()
    assert told == ["The question was broken off."]
    assert inside.model().kind == "classification"


def test_a_process_that_answers_nothing_is_given_up(opened, monkeypatch):
    inside = opened("linear")
    inside.model()
    stopped = inside.pid
    os.kill(stopped, signal.SIGSTOP)
    monkeypatch.setattr(client, "PATIENCE", 0.1)
    with pytest.raises(look.LookError, match="not answered"):
        inside.model()
    assert inside.pid is None
    assert not psutil.pid_exists(stopped)


def test_a_process_that_cannot_live_is_said_with_its_end(workspace, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with look.open(folder(workspace, "linear")) as inside, pytest.raises(look.LookError, match=r"twice.*exit code 1"):
        inside.model()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with look.open(folder(workspace, "linear")) as inside, pytest.raises(look.LookError, match="cannot be started"):
        inside.model()


def test_the_process_ends_with_the_one_that_asked(workspace):
    code = (
        "import sys, time; from digits import look; inside = look.open(sys.argv[1]); inside.model();"
        "print(inside.pid, flush=True); time.sleep(1000)"
    )
    asking = subprocess.Popen(
        [sys.executable, "-c", code, str(folder(workspace, "linear"))], stdout=subprocess.PIPE, text=True, cwd=COURSE
    )
    pid = int(asking.stdout.readline())
    asking.kill()
    asking.wait()
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "its end")


def test_no_run_is_said_at_once(tmp_path):
    with pytest.raises(look.LookError, match="no run"):
        look.open(tmp_path)
    write_json(tmp_path / "run.json", {"kind": "classification"})
    inside = look.open(tmp_path)
    assert inside.checkpoints() == []
    (tmp_path / "run.json").unlink()
    with pytest.raises(look.LookError, match="may have been deleted"):
        inside.model()


def test_the_page_imports_no_tensorflow():
    code = (
        "import sys; from digits import look; from digits.look import client, confusion, pictures, words;"
        "print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=COURSE, check=True)
    assert found.stdout.strip() == "[]"
