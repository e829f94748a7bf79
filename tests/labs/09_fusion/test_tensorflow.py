"""Imported Keras models compute what Keras computes; what cannot be imported is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.fusion.exchange.keras_import import UnsupportedLayer, import_keras
from kernels.fusion.graph.interpret import run
from kernels.fusion.trained import digits, train
from kernels.fusion.trained.network import OUTPUT, trained_graph, trained_model
from tests.support.lazily import module

pytestmark = pytest.mark.tensorflow
keras, layers = module("keras"), module("keras.layers")


def randomised(model) -> None:
    """Weights other than Keras' first ones, so that no bias or mean is zero."""
    numbers = np.random.default_rng(3)
    for layer in model.layers:
        weights = layer.get_weights()
        # Variances must stay positive.
        layer.set_weights([np.abs(w) + 0.5 if w.ndim == 1 else w for w in weights])
        layer.set_weights([w * numbers.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()])


def compare(model, outputs=None) -> None:
    """The imported graph against Keras, on random images."""
    randomised(model)
    numbers = np.random.default_rng(5)
    images = [numbers.normal(size=(3, *tensor.shape[1:])).astype(np.float32) for tensor in model.inputs]
    graph = import_keras(model, outputs)
    found = run(graph, *(x.transpose(0, 3, 1, 2) if x.ndim == 4 else x for x in images))
    expected = model(images if len(images) > 1 else images[0], training=False)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    for name, one in zip(found, expected, strict=True):
        values = np.asarray(one)
        values = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-4)


def test_the_trained_network_is_the_committed_graph():
    _, _, test = digits.split()
    model = trained_model()
    graph = trained_graph()
    assert import_keras(model, [OUTPUT]) == graph
    main, _ = model(test.images.transpose(0, 2, 3, 1), training=False)
    found = run(graph, test.images)[OUTPUT]
    assert abs(np.asarray(main) - found).max() < 1e-5
    assert train.accuracy(graph, test) >= 0.97


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("size", [7, 8])
def test_windows_pad_as_tensorflow_does(padding, size):
    x = keras.Input((size, size + 1, 3))
    a = layers.Conv2D(4, 3, strides=2, padding=padding, activation="relu")(x)
    b = layers.Conv2D(4, (2, 3), strides=(2, 2), padding=padding)(x)
    c = layers.Conv2D(4, 3, dilation_rate=2, padding=padding)(x)
    d = layers.MaxPooling2D(3, strides=2, padding=padding)(x)
    e = layers.AveragePooling2D((3, 2), strides=2, padding=padding)(x)
    compare(keras.Model(x, [a, b, c, d, e]))


def test_flatten_and_dense_turn_their_weights():
    x = keras.Input((4, 5, 3))
    y = layers.Conv2D(6, 3)(x)
    y = layers.Flatten()(y)
    y = layers.Dropout(0.5)(layers.ReLU()(y))
    y = layers.Dense(7, activation="softmax")(layers.Dense(8, activation="relu")(y))
    compare(keras.Model(x, y))


def test_branches_sums_and_batch_norms():
    x = keras.Input((6, 6, 4))
    a = layers.BatchNormalization()(layers.Conv2D(4, 1)(x))
    b = layers.BatchNormalization(scale=False, center=False, epsilon=0.01)(x)
    y = layers.Activation("relu")(layers.Add()([a, b]))
    y = layers.Concatenate()([y, a, x])
    y = layers.Activation("linear")(y)
    compare(keras.Model(x, [layers.GlobalAveragePooling2D()(y), layers.GlobalAveragePooling2D(keepdims=True)(y)]))


def test_sequential_models_vectors_and_layers_used_twice():
    model = keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.BatchNormalization(), layers.Softmax()])
    compare(model)
    x, shared = keras.Input((5, 5, 2)), layers.Conv2D(2, 1, name="shared")
    model = keras.Model(x, shared(shared(x)))
    assert [node.name for node in import_keras(model).nodes] == ["shared", "shared_2"]
    compare(model)


def test_two_inputs_and_a_choice_of_outputs():
    x, y = keras.Input((4, 4, 2), name="left"), keras.Input((4, 4, 2), name="right")
    total = layers.Add(name="total")([x, y])
    other = layers.ReLU(name="other")(total)
    model = keras.Model([x, y], [total, other])
    compare(model)
    assert import_keras(model, ["other"]).outputs == ("other",)
    with pytest.raises(ValueError, match="third: not an output of the model; its outputs are total, other"):
        import_keras(model, ["third"])


def of(*chain) -> keras.Model:
    """A model of layers one behind the other."""
    x = y = keras.Input((6, 6, 4))
    for layer in chain:
        y = layer(y)
    return keras.Model(x, y)


REFUSED = {
    "layer 'deep' is a DepthwiseConv2D, which cannot be imported; possible are Conv2D": lambda: of(
        layers.DepthwiseConv2D(3, name="deep")
    ),
    "'grouped' has groups=2; possible: 1": lambda: of(layers.Conv2D(4, 1, groups=2, name="grouped")),
    "'soft' has the activation gelu": lambda: of(layers.Conv2D(4, 1, activation="gelu", name="soft")),
    "'act' is the activation tanh": lambda: of(layers.Activation("tanh", name="act")),
    "'six' is a ReLU with a maximum": lambda: of(layers.ReLU(6, name="six")),
    "'norm' normalises axis 1": lambda: of(layers.BatchNormalization(axis=1, name="norm")),
    "'flat', a flattened image, in another order than in Keras": lambda: of(layers.Flatten(name="flat")),
    "layer 'norm' would see": lambda: of(layers.Flatten(), layers.BatchNormalization(name="norm")),
    "'cls' takes the softmax along axis 1": lambda: of(layers.Softmax(axis=1, name="cls")),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_imported_is_refused_by_name(message):
    with pytest.raises(UnsupportedLayer, match=message):
        import_keras(REFUSED[message]())


def test_images_of_unknown_size_are_refused():
    x = keras.Input((None, None, 3), name="any")
    with pytest.raises(UnsupportedLayer, match="must be an image or a vector"):
        import_keras(keras.Model(x, layers.ReLU()(x)))


def test_training_lowers_the_loss_and_gives_a_graph():
    """Three epochs on 512 images; chance has a loss of 1.3 · ln 10 = 3.0."""
    training, _, _ = digits.split()
    model, losses = train.trained(digits.Digits(training.images[:512], training.labels[:512]), 3)
    assert losses[-1] < 0.7 * losses[0]
    assert [node.op for node in import_keras(model, [OUTPUT]).nodes] == [node.op for node in trained_graph().nodes]
