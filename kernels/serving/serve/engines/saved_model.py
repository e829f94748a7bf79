"""TensorFlow's exported models behind the lab's interface, and the lab's own network exported by Keras.

    python -m kernels.serving.serve.engines.saved_model digits_model
    python -m kernels.serving.serve --engine kernels.serving.serve.engines.saved_model:engine --option path=digits_model

`model.export(folder)` of Keras writes a SavedModel: a graph of operations with its weights, which runs without the code
that made it, also under TensorFlow Serving. It is a program: load none that you do not trust.
Source: TensorFlow, Using the SavedModel format, tensorflow.org/guide/saved_model.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from kernels.serving.serve.engines import EngineError, digits_network
from warpcourse.bench.tensorflow_start import start

SIGNATURE = "serving_default"  # what Keras exports, and TensorFlow Serving answers by default


class SavedModelEngine:
    """The signature `serving_default` of a SavedModel: one input of float32 with a free batch, one output."""

    def __init__(self, path: Path) -> None:
        self._tf = start()
        try:
            self._model = self._tf.saved_model.load(str(path))  # kept, since its weights live in it
        except Exception as error:  # TensorFlow raises errors of many kinds for a damaged one
            raise EngineError(
                f"{path} holds no SavedModel that can be loaded ({_line(error)}); export the model again"
            ) from error
        if SIGNATURE not in self._model.signatures:
            there = ", ".join(self._model.signatures) or "none"
            raise EngineError(f"{path} has no signature {SIGNATURE!r}, but {there}; export it by Keras' model.export")
        self._function = self._model.signatures[SIGNATURE]
        inputs = self._function.structured_input_signature[1]
        outputs = self._function.structured_outputs
        if len(inputs) != 1 or len(outputs) != 1:
            raise EngineError(f"{path} has {len(inputs)} inputs and {len(outputs)} outputs; this engine takes one each")
        ((self._input, spec),), (self._output,) = inputs.items(), outputs
        shape = spec.shape.as_list() if spec.shape.rank else []
        if spec.dtype != self._tf.float32 or shape[:1] != [None] or None in shape[1:]:
            raise EngineError(
                f"the input {self._input!r} of {path} is {spec.dtype.name} of shape {spec.shape}; it must be float32 "
                "with a free batch and all other extents known: export the model with such an input"
            )
        self.name, self.shape = f"TensorFlow's {path.name}", tuple(shape[1:])

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Return the model's output for float32, (samples, *shape)."""
        return self._function(**{self._input: self._tf.constant(batch)})[self._output].numpy()


def engine(path: str) -> SavedModelEngine:
    """Return the SavedModel in the folder `path`. EngineError if there is none, or one of another kind."""
    folder = Path(path)
    if not (folder / "saved_model.pb").is_file():
        raise EngineError(f"{path} is no folder with a SavedModel: Keras writes one by model.export({path!r})")
    return SavedModelEngine(folder)


def keras_digits() -> Any:
    """Return the lab's trained network as a Keras model: images (batch, 1, 8, 8) to ten probabilities."""
    start()
    import keras
    from keras import layers

    weights = digits_network.load()
    image = keras.Input(digits_network.IMAGE, name="image")
    hidden = layers.Dense(digits_network.HIDDEN, activation="relu", name="hidden")(layers.Flatten()(image))
    classes = layers.Dense(digits_network.CLASSES, activation="softmax", name="classes")(hidden)
    model = keras.Model(image, classes, name="digits")
    for name in ("hidden", "classes"):
        model.get_layer(name).set_weights([weights[name], weights[f"{name}_bias"]])
    return model


def _line(error: Exception) -> str:
    """Return the first line of an error of TensorFlow's, which may have many."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def main() -> int:
    """Export the lab's network to the folder that the command names."""
    if len(sys.argv) != 2:
        print("usage: python -m kernels.serving.serve.engines.saved_model FOLDER", file=sys.stderr)
        return 2
    keras_digits().export(sys.argv[1], verbose=False)
    print(f"exported to {sys.argv[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
