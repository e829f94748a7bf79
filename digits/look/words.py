"""What pictures show, in words: their text alternatives, and the lines below them."""

from collections.abc import Sequence

import numpy as np

from digits.look.answers import LayerOutput, LayerWeights, Saliency
from digits.look.statistics import Statistics

_COUNTED = "(counted from 0, row by row)"  # how to find one among tiles that bear no numbers


def number(value: float | None) -> str:
    """Return a number with three digits that count, "none" where there is none."""
    return "none" if value is None or not np.isfinite(value) else f"{value:.3g}".replace("-", "−")


def share(value: float) -> str:
    """Return a probability as a percentage; "not a number" for what a diverged network answers."""
    return "not a number" if not np.isfinite(value) else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def shape(sizes: Sequence[int]) -> str:
    """Return a shape as the page writes it."""
    return " × ".join(map(str, sizes)) or "one value"


def figures(about: Statistics) -> str:
    """Return mean, standard deviation, range and zeros, in one line."""
    if about.mean is None:
        return f"All {about.count} values are NaN or infinite: the training has diverged."
    lost = f", {about.not_finite} of {about.count} are NaN or infinite" if about.not_finite else ""
    return (
        f"mean {number(about.mean)}, standard deviation {number(about.deviation)}, from {number(about.least)} to "
        f"{number(about.most)}, {share(about.zeros or 0.0)} zeros{lost}"
    )


def activation(layer: LayerOutput) -> str:
    """Return what the picture of a layer's activations shows."""
    if layer.maps is None:
        return f"{layer.name} puts out {shape(layer.shape)} values, which are not drawn."
    about = f"from {number(layer.activation.least)} to {number(layer.activation.most)}"
    if layer.maps.ndim == 1:
        strongest = f", the largest is number {int(np.argmax(np.nan_to_num(layer.maps, nan=-np.inf)))} {_COUNTED}"
        return f"{_drawn(len(layer.maps), layer.channels, 'value')} of {layer.name}, {about}{strongest}."
    means = np.nan_to_num(layer.maps).mean(axis=(1, 2))
    every = f", one row and column in {layer.step} drawn" if layer.step > 1 else ""
    largest = f"The largest mean, {number(float(means.max()))}, has channel {int(means.argmax())}"
    return (
        f"{_drawn(len(layer.maps), layer.channels, 'channel')} of {layer.name}, {shape(layer.shape[:2])} values each"
        f"{every}, {about}. {largest} {_COUNTED}."
    )


def weights(layer: str, of: LayerWeights) -> str:
    """Return what the picture of weights shows."""
    count, inputs, height, width = of.tiles.shape
    about = f"values from {number(of.statistics.least)} to {number(of.statistics.most)}"
    if len(of.shape) == 2:
        cut = f", the first {height} × {width} of them" if of.shape != (height, width) else ""
        return f"The matrix of {layer}, {shape(of.shape)} (inputs × units){cut}, {about}."
    whole_inputs, whole = of.shape[-2], of.shape[-1]
    seen = f" of {_drawn(inputs, whole_inputs, 'input channel').lower()}" if whole_inputs > 1 else ""
    return f"{_drawn(count, whole, 'filter')} of {layer}, {height} × {width}{seen}, {about}."


def saliency(found: Saliency, classes: Sequence[str]) -> str:
    """Return what a saliency map shows: where it is strongest, for and against."""
    values = np.nan_to_num(found.values)
    lines = [f"How pixels speak for class {classes[found.label]}, answered with {share(found.probability)}."]
    for sign, word in ((1, "for it"), (-1, "against it")):
        row, column = np.unravel_index(int((sign * values).argmax()), values.shape)
        if sign * values[row, column] > 0:
            lines.append(f"Most {word}: row {row}, column {column}, {number(float(values[row, column]))}.")
    return " ".join(lines)


def _drawn(drawn: int, whole: int, what: str) -> str:
    return f"{whole} {what}{'s' if whole != 1 else ''}" if drawn == whole else f"The first {drawn} of {whole} {what}s"
