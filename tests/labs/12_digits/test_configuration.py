"""Keras models as plain data and back: nothing is lost, and what could not be kept is refused by name."""

import numpy as np
import pytest

from digits.networks import configuration

pytestmark = pytest.mark.tensorflow
IMAGE, CLASSES = (8, 8, 4), 10
# Layers that keep images as they are, or make images of other sizes: one network holds them all.
INNER = {
    "Conv2D": {"filters": 4, "kernel_size": 3, "padding": "same", "groups": 2, "kernel_regularizer": "l2"},
    "DepthwiseConv2D": {"kernel_size": (3, 1), "depth_multiplier": 2, "padding": "same"},
    "SeparableConv2D": {"filters": 4, "kernel_size": 3, "padding": "same", "pointwise_initializer": "he_normal"},
    "Conv2DTranspose": {"filters": 4, "kernel_size": 2, "strides": 2},
    "Activation": {"activation": "gelu"},
    "ReLU": {"max_value": 6.0},
    "LeakyReLU": {"negative_slope": 0.2},
    "PReLU": {"shared_axes": [1, 2]},
    "ELU": {"alpha": 0.5},
    "BatchNormalization": {"momentum": 0.9, "gamma_constraint": "non_neg"},
    "LayerNormalization": {},
    "GroupNormalization": {"groups": 2},
    "Dropout": {"rate": 0.25},
    "SpatialDropout2D": {"rate": 0.25},
    "AlphaDropout": {"rate": 0.25},
    "GaussianDropout": {"rate": 0.25},
    "GaussianNoise": {"stddev": 0.1},
    "Identity": {},
    "MaxPooling2D": {"pool_size": 2},
    "AveragePooling2D": {"pool_size": 3, "strides": 1, "padding": "same"},
    "UpSampling2D": {"size": 2, "interpolation": "bilinear"},
    "ZeroPadding2D": {"padding": ((1, 2), (0, 1))},
    "Cropping2D": {"cropping": 1},
    "Rescaling": {"scale": 0.5, "offset": 0.25},
    "Permute": {"dims": (2, 1, 3)},
}
MERGED = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")


@pytest.fixture(scope="module")
def keras():
    return pytest.importorskip("keras")


def ended(keras, inputs, x):
    """A model of these tensors with class probabilities at the end."""
    x = keras.layers.Flatten(name="flat")(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax", name="classes")(x))


def network_of_all(keras):
    x = inputs = keras.Input(IMAGE, name="image")
    for kind, settings in INNER.items():
        x = getattr(keras.layers, kind)(name=kind.lower(), **settings)(x)
    for kind in MERGED:
        x = getattr(keras.layers, kind)(name=kind.lower())([x, x])
    pooled = [
        getattr(keras.layers, f"Global{kind}Pooling2D")(name=f"global_{kind.lower()}")(x) for kind in ("Average", "Max")
    ]
    x = keras.layers.Concatenate(name="pooled")(pooled)
    x = keras.layers.Dense(12, activation=None, name="dense")(x)
    x = keras.layers.Reshape((3, 4), name="reshape")(x)
    x = keras.layers.Flatten(name="flat")(x)
    x = keras.layers.Dense(CLASSES, name="classes")(x)
    return keras.Model(inputs, keras.layers.Softmax(name="probabilities")(x))


def test_every_layer_that_is_possible_goes_through_and_back(keras):
    model = network_of_all(keras)
    found = configuration.check(configuration.describe(model), IMAGE, CLASSES)
    assert {layer["kind"] for layer in found["layers"]} == set(configuration.LAYERS)
    built = configuration.build(found)
    assert configuration.lost(model, built) == []
    built.set_weights(model.get_weights())
    images = np.random.default_rng(1).random((3, *IMAGE), np.float32)
    np.testing.assert_array_equal(np.asarray(built(images)), np.asarray(model(images)))


def test_a_sequential_model_is_possible(keras):
    layers = [keras.Input(IMAGE), keras.layers.Flatten(), keras.layers.Dense(CLASSES, activation="softmax")]
    found = configuration.check(configuration.describe(keras.Sequential(layers)), IMAGE, CLASSES)
    assert [layer["kind"] for layer in found["layers"]] == ["InputLayer", "Flatten", "Dense"]


def test_probabilities_are_float32_in_mixed_precision(keras):
    found = configuration.describe(ended(keras, *2 * [keras.Input(IMAGE)]))
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = configuration.build(found)
    finally:
        keras.config.set_dtype_policy(before)
    assert (model.layers[1].compute_dtype, model.layers[-1].compute_dtype) == ("bfloat16", "float32")


def forbidden(keras):
    """Models, each with something in it that is refused, and what is said."""
    layers = keras.layers

    class Mine(layers.Layer):
        def call(self, x):
            return x

    class Conv2D(layers.Layer):
        def call(self, x):
            return x

    inputs = keras.Input(IMAGE)
    shared = layers.Conv2D(4, 3, padding="same", name="shared")
    inner = keras.Model(inputs, layers.ReLU()(inputs), name="inner")
    flat = layers.Flatten()(inputs)
    two = keras.Model(inputs, [layers.Dense(10)(flat), layers.Dense(10)(flat)])
    return [
        (ended(keras, inputs, layers.Lambda(lambda x: x)(inputs)), "is a Lambda"),
        (ended(keras, inputs, Mine()(inputs)), "is a Mine"),
        (ended(keras, inputs, Conv2D(name="false")(inputs)), "'false' is a Conv2D"),
        (ended(keras, inputs, shared(shared(inputs))), "'shared' is used twice"),
        (ended(keras, inputs, inner(inputs)), "'inner' is a Functional"),
        (ended(keras, inputs, inputs + 1.0), r"is a Add.*keras\.layers\.Add\(\)"),
        (ended(keras, inputs, layers.RandomFlip()(inputs)), "is a RandomFlip"),
        (two, "1 inputs and 2 outputs"),
        (keras.Sequential([layers.Dense(3)]), "begins with keras.Input"),
        (lambda x: x, "returned a function"),
        (None, "returned a NoneType"),
    ]


def test_what_cannot_be_kept_is_named(keras):
    for model, said in forbidden(keras):
        with pytest.raises(configuration.ConfigurationError, match=said):
            configuration.describe(model)


def test_a_layer_that_reads_a_file_is_refused(keras, tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    words = keras.Input((1,), dtype="string")
    looked_up = keras.layers.StringLookup(vocabulary=str(tmp_path / "words"), output_mode="one_hot")(words)
    model = keras.Model(words, keras.layers.Dense(CLASSES, activation="softmax")(looked_up))
    with pytest.raises(configuration.ConfigurationError, match="is a StringLookup"):
        configuration.describe(model)


@pytest.mark.filterwarnings("ignore:The object being serialized includes a `lambda`")
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"activation": lambda x: x}, "activation"),
        ({"kernel_initializer": lambda shape, dtype=None: None}, "kernel_initializer"),
        ({"kernel_constraint": "min_max_norm"}, "kernel_constraint"),
    ],
)
def test_settings_of_code_are_refused(keras, setting, said):
    inputs = keras.Input(IMAGE)
    if said == "kernel_initializer":
        setting = {said: keras.initializers.VarianceScaling(2.0)}
    model = ended(keras, inputs, keras.layers.Conv2D(4, 3, name="conv", **setting)(inputs))
    with pytest.raises(configuration.ConfigurationError, match=f"'conv'.*{said}"):
        configuration.check(configuration.describe(model), IMAGE, CLASSES)


def test_a_setting_that_is_not_kept_is_found(keras):
    inputs = keras.Input(IMAGE)
    norm = keras.layers.BatchNormalization(name="norm", renorm=True)
    model = ended(keras, inputs, norm(inputs))
    found = configuration.check(configuration.describe(model), IMAGE, CLASSES)
    assert any("'norm': renorm" in one for one in configuration.lost(model, configuration.build(found)))


def test_a_norm_along_all_axes_counts_all_its_means(keras):
    inputs = keras.Input(IMAGE, name="image")
    norms = [keras.layers.LayerNormalization(axis=axis) for axis in (-1, [1, 2, 3], [-1, 3], [2, -3])]
    for norm in norms:
        model = ended(keras, inputs, norm(inputs))
        layer = next(one for one in configuration.describe(model)["layers"] if one["kind"] == "LayerNormalization")
        assert configuration._parameters(layer, IMAGE) == 2 * norm.count_params()


@pytest.mark.parametrize(
    ("grow", "said"),
    [
        ({"kind": "Dense", "settings": {"units": 65_536}}, "16,777,216|parameters"),
        ({"kind": "UpSampling2D", "settings": {"size": [64, 64], "interpolation": "nearest"}}, "values for an image"),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(keras, grow, said):
    found = configuration.describe(ended(keras, *2 * [keras.Input(IMAGE, name="image")]))
    for number in range(3):
        layer = {"name": f"grown{number}", "inputs": [found["layers"][-3]["name"]], **grow}
        if grow["kind"] == "Dense":
            layer["settings"] = {**found["layers"][-1]["settings"], **grow["settings"]}
        found["layers"].insert(-2, layer)
    found["layers"][-2]["inputs"] = ["grown2"]
    checked = configuration.check(found, IMAGE, CLASSES)
    with pytest.raises(configuration.ConfigurationError, match=said):
        configuration.build(checked)
