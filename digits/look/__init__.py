"""What a trained network does with images: probabilities, layer by layer, its mistakes, and what they hang on.

    with look.open(run) as inside:
        probabilities = inside.classify(images)
        for layer in inside.layers(images[0]):
            print(layer.name, layer.shape, layer.activation.mean)

The model lives in a process of its own (process.py), which this package starts, asks and starts again when it dies, so
that the page imports no TensorFlow. Questions and answers are JSON and NumPy arrays, never pickles.
"""

from digits.look.answers import LayerOutput, Model, Saliency, Tested
from digits.look.client import Inside, open
from digits.look.errors import LookError

__all__ = ["Inside", "LayerOutput", "LookError", "Model", "Saliency", "Tested", "open"]
