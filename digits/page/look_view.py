"""What a look finds as HTML: top-5, layers, saliency, confusion matrix and mistakes. All names are escaped here."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from digits.look import pictures, words
from digits.look.answers import LayerOutput, Model, Saliency, Tested
from digits.look.confusion import (
    accuracy,
    answers,
    confusion_matrix,
    f1,
    interval,
    mean_loss,
    precision,
    recall,
    top,
    worst,
)
from digits.look.statistics import Statistics
from digits.page.elements import Markup, escape, figure, grid, picture, said, table

MOST_CLASSES = 20  # of a confusion matrix with numbers; a larger one is drawn, and its most frequent confusions listed
MOST_CONFUSIONS = 15
CARD_HEIGHT, MOST_HEIGHT = 14.0, 32.0  # rem, of a picture in a card, and of one by itself
FIVE = 5  # of a test's top answers
CARD_FILTERS = 8  # filters and inputs of a convolution that a card shows


def image(pixels: np.ndarray, says: str, width: str = "10rem") -> str:
    """Return a uint8 image (h, w, c), enlarged with its pixels seen."""
    return picture(pictures.image_png(pixels), says, width, pixelated=max(pixels.shape[:2]) < 128)


def model(about: Model) -> str:
    """Return the table of a model's layers."""
    rows = [(row.name, row.kind, words.shape(row.shape), f"{row.parameters:,}") for row in about.layers]
    caption = f"Layers of the network: {about.parameters:,} parameters, input {words.shape(about.input)}"
    return table(("Layer", "Kind", "Output", "Parameters"), rows, caption)


def top_five(probabilities: np.ndarray, classes: Sequence[str], truth: int | None = None) -> str:
    """Return the five most probable classes of one image, each with its probability as number and bar."""
    (best,) = top(probabilities[None])
    rows = [(classes[c] + (" (true)" if c == truth else ""), words.share(p), _bar(p)) for c, p in best]
    verdict = ""
    if truth is not None:
        right = best[0][0] == truth
        mark, kind = ("Right", "digits-good") if right else ("Wrong", "digits-error")
        verdict = f'<p class="{kind}">{mark}: the image is of class {escape(classes[truth])}.</p>'
    lost = "" if np.isfinite(probabilities).all() else _diverged()
    return verdict + lost + table(("Class", "Probability", "Bar"), rows, "The most probable classes", numbers=False)


def many(named: Iterable[tuple[str, np.ndarray]], probabilities: np.ndarray, classes: Sequence[str]) -> str:
    """Return a row for each of several images: the image, its name, its five most probable classes."""
    rows = []
    for (name, pixels), best in zip(named, top(probabilities), strict=True):
        listed = ", ".join(f"{classes[c]} {words.share(p)}" for c, p in best)
        rows.append((name, Markup(image(pixels, f"The image {name}", "4rem")), listed))
    return table(("Image", "As the network sees it", "Top 5"), rows, "Answers for each image", numbers=False)


def layers(found: Sequence[LayerOutput]) -> str:
    """Return a card for each layer, in the order in which they run: activations, weights, figures and histograms."""
    return f'<div class="look-layers">{"".join(_layer(layer) for layer in found)}</div>'


def layer(found: LayerOutput) -> str:
    """Return one layer with more of its channels, as wide as there is room."""
    return _layer(found, whole=True)


def saliency(pixels: np.ndarray, found: Saliency, classes: Sequence[str]) -> str:
    """Return a saliency map over the image and alone, and what it means."""
    least, most = pictures.limits_of(found.values)
    says = words.saliency(found, classes)
    meaning = (
        "Gradient × input: to first order, how much of the class's score (before softmax) would go if that pixel alone "
        "became black. A black pixel gets 0, whatever it means to the network."
        if found.method == "gradient"
        else f"Occlusion: how much the class's probability falls when a patch of {found.patch} × {found.patch} pixels "
        "over the pixel takes the image's mean colour. It asks the network itself, and sees no finer than the patch."
    )
    shown = (
        (image(pixels, "The image"), "The image"),
        (
            picture(pictures.overlay_png(pixels, found.values), says, "10rem", pixelated=True),
            "Orange speaks for the class, blue against it",
        ),
        (
            picture(pictures.heat_png(found.values), says, "10rem", pixelated=True),
            f"The same values without the image: dark blue is {words.number(least)}"
            f"{' (against)' if least < 0 else ''}, yellow {words.number(most)} (for)",
        ),
    )
    return f"{grid(_figure(*one) for one in shown)}<p>{escape(says)}</p>{said(meaning)}"


def tested(found: Tested) -> str:
    """Return accuracy, confusion matrix, and precision and recall by class."""
    answered = answers(found.probabilities)
    matrix = confusion_matrix(found.labels, answered, len(found.classes))
    count, right = len(found.labels), int(np.trace(matrix))
    lost = "" if np.isfinite(found.probabilities).all() else _diverged()
    low, high = (words.share(end) for end in interval(right, count))
    among_five = ""
    if len(found.classes) > FIVE:  # all are among the five otherwise
        ranked = zip(found.labels, top(found.probabilities, FIVE), strict=True)
        five = sum(label in [c for c, _ in best] for label, best in ranked)
        among_five = f"; {five} of {count} among the top {FIVE}"
    line = (
        f"<p><strong>{right} of {count} right ({words.share(accuracy(matrix))})</strong>, 95 % confidence interval "
        f"{low} to {high}{among_five}; mean loss (cross-entropy) "
        f"{words.number(mean_loss(found.probabilities, found.labels))} nats.</p>"
    )
    both = confusion(matrix, found.classes), by_class(matrix, found.classes)
    return f'{lost}{line}<div class="digits-grid look-tested">{"".join(f"<div>{one}</div>" for one in both)}</div>'


def confusion(matrix: np.ndarray, classes: Sequence[str]) -> str:
    """Return the confusion matrix as a table; of many classes as a picture, with its most frequent confusions."""
    if len(classes) > MOST_CLASSES:
        says = f"The confusion matrix of {len(classes)} classes: rows are the truth, columns the answers."
        drawn = picture(pictures.heat_png(np.log1p(matrix)), says, "24rem", pixelated=True)
        caption = "Confusion matrix, brighter for more images; rows are the truth, columns the answers"
        return _figure(drawn, caption) + _confusions(matrix, classes)
    most = max(int(matrix.max()), 1)
    rows = []
    for true, line in enumerate(matrix):
        cells = [_cell(int(n), most, true == answer) for answer, n in enumerate(line)]
        rows.append((classes[true], *cells))
    caption = "Confusion matrix: rows are the truth, columns the answers; framed: right"
    return f'<div class="look-matrix">{table(("True class", *classes), rows, caption)}</div>'


def by_class(matrix: np.ndarray, classes: Sequence[str]) -> str:
    """Return precision, recall and F1 of each class."""
    figures = zip(classes, matrix.sum(axis=1), precision(matrix), recall(matrix), f1(matrix), strict=True)
    rows = [
        (name, int(n), *("none" if np.isnan(v) else words.share(v) for v in values)) for name, n, *values in figures
    ]
    head = ("Class", "Images", "Precision", "Recall", "F1")
    meaning = "Precision: of the answers “this class”, the share that is right. Recall: of its images, the share found."
    return table(head, rows, "Precision and recall by class") + said(meaning)


def mistakes(found: Tested, images: np.ndarray, most: int = 12) -> str:
    """Return the wrong answers that gave the truth the least probability. `images`: the whole part's."""
    wrong = worst(found.probabilities, found.labels, most)
    if not len(wrong):
        return "<p>No mistakes.</p>"
    shown = []
    for i in wrong:
        true, index = int(found.labels[i]), int(found.indices[i])
        (((answer, p), *_),) = top(found.probabilities[i][None])
        says = f"{found.part} image {index}: true {found.classes[true]}, answered {found.classes[answer]}"
        gave = words.share(float(found.probabilities[i, true]))
        seen = image(np.asarray(images[index]), says, "6rem")
        shown.append(_figure(seen, f"{says} ({words.share(p)}; truth {gave})"))
    return f'<div class="digits-grid look-mistakes">{"".join(shown)}</div>'


def histogram(about: Statistics, of: str) -> str:
    """Return a histogram as a small SVG in the page's own ink."""
    if not about.counts:
        return ""
    most, width = max(about.counts), 100 / len(about.counts)
    heights = [30 * n / most for n in about.counts]
    bars = "".join(
        f'<rect x="{i * width:.2f}" y="{30 - high:.2f}" width="{width * 0.9:.2f}" height="{high:.2f}"/>'
        for i, high in enumerate(heights)
    )
    peak = int(np.argmax(about.counts))
    low, high = words.number(about.edges[peak]), words.number(about.edges[peak + 1])
    says = f"Histogram of {of}: {about.counts[peak]} of {about.count} values lie between {low} and {high}."
    ends = f"<span>{words.number(about.least)}</span><span>{words.number(about.most)}</span>"
    return (
        '<div class="look-histogram"><svg class="look-bars" viewBox="0 0 100 30" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(says)}" fill="currentColor">{bars}</svg><div>{ends}</div></div>'
    )


def _layer(found: LayerOutput, whole: bool = False) -> str:
    """Return a card: what can be drawn, and the figures to be unfolded. `whole`: larger, with all that there is."""
    count = f", {found.parameters:,} parameters" if found.parameters else ""
    most = MOST_HEIGHT if whole else CARD_HEIGHT
    drawn = [_drawn(found, most)]
    folded = [_figures("Activations", found.activation, f"the activations of {found.name}")]
    for weights in found.weights:
        if weights.tiles is not None:
            tiles = weights.tiles
            if not whole and tiles.shape[1] > 3:
                tiles = tiles[:CARD_FILTERS, :CARD_FILTERS]
            says = words.weights(found.name, replace(weights, tiles=tiles))
            drawn.append(_pixels(pictures.filters_png(tiles), says, most))
        heading = f"{weights.name}, {words.shape(weights.shape)}"
        folded.append(_figures(heading, weights.statistics, f"{weights.name} of {found.name}"))
    return (
        f'<div class="look-layer"><h5>{escape(found.name)}</h5>'
        f"<p>{escape(found.kind)}, {words.shape(found.shape)}{count}</p>{''.join(drawn)}"
        f"<details{' open' if whole else ''}><summary>Statistics of {escape(found.name)}</summary>"
        f"{''.join(folded)}</details></div>"
    )


def _figures(heading: str, about: Statistics, of: str) -> str:
    return f"<h6>{escape(heading)}</h6><p>{escape(words.figures(about))}</p>{histogram(about, of)}"


def _drawn(found: LayerOutput, most: float) -> str:
    if found.maps is None:
        return ""
    says = words.activation(found)
    draw = pictures.vector_png if found.maps.ndim == 1 else pictures.tiles_png
    dark, bright = (words.number(limit) for limit in pictures.limits_of(found.maps))
    return _pixels(draw(found.maps), says, most, f"{says} Darkest {dark}, brightest {bright}.")


def _pixels(png: bytes, says: str, most: float, caption: str = "") -> str:
    """Return a picture as wide as its place, unless it would be higher than `most` rem."""
    width, height = struct.unpack(">II", png[16:24])  # of the PNG's header
    return _figure(picture(png, says, f"min(100%, {most * width / height:.2f}rem)", pixelated=True), caption or says)


def _confusions(matrix: np.ndarray, classes: Sequence[str]) -> str:
    wrong = matrix - np.diag(np.diag(matrix))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
    pairs = [divmod(int(place), len(classes)) for place in order]
    rows = [(classes[t], classes[a], int(wrong[t, a])) for t, a in pairs if wrong[t, a]]
    return table(("True class", "Answered", "Images"), rows, "The most frequent confusions")


def _cell(count: int, most: int, right: bool) -> Markup:
    if not count:
        return Markup('<span class="digits-muted">0</span>')
    kind = "look-cell look-right" if right else "look-cell"
    return Markup(f'<span class="{kind}" style="--look-share:{100 * count / most:.0f}%">{count}</span>')


def _bar(share: float) -> Markup:
    width = 100 * share if np.isfinite(share) else 0
    return Markup(f'<span class="look-bar" aria-hidden="true"><span style="width:{width:.1f}%"></span></span>')


def _figure(drawn: str, caption: str) -> str:
    return figure(drawn, escape(caption), "look-figure")


def _diverged() -> str:
    return said(
        "The network answers NaN (no number): its training has diverged. Choose an earlier checkpoint, or train with a "
        "lower rate.",
        "error",
    )
