"""Pictures of lab 12's lesson, of plain values: images, curves, a confusion matrix, heat maps, boxes.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter

from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, ORANGE, PALE, PINK, SKY, closed, finish

COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_images(images: np.ndarray, titles: Sequence[str] = (), title: str = "", rows: int = 1) -> Figure:
    """Images side by side, dark on light, each with a line of text above it.

    `images`: (n, h, w), (n, h, w, 1) or (n, h, w, 3), uint8 or float.
    """
    images = np.asarray(images)
    columns = -(-len(images) // rows)
    high = 1.05 if titles else 0.8
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(
            rows, columns, figsize=(0.78 * columns, high * rows + 0.3 * bool(title)), dpi=DPI, squeeze=False
        )
        for ax in axes.ravel():
            ax.set_axis_off()
        for ax, image, text in zip(axes.ravel(), images, list(titles) or [""] * len(images), strict=False):
            _show(ax, image)
            ax.set_title(text, size=8)
        if title:
            figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.4)
    return closed(figure)


def _show(ax: Any, image: np.ndarray) -> None:
    grey = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
    ax.imshow(grey, cmap=None if grey.ndim == 3 else "gray_r", interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]], figure_name: str = "accuracy") -> Figure:
    """Loss and a figure of the validation images against epochs; training dotted, validation with a marker each epoch.

    `runs`: by label, the points of a run's curves: dictionaries with epoch, part ("train" or "validation"), loss and
    `figure_name`. Several points of one epoch are drawn at equal distances up to its end.
    """
    with plt.rc_context(FONT):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.9), dpi=DPI)
        for (label, points), colour, marker in zip(runs.items(), COLOURS, MARKERS, strict=False):
            for ax, name in ((left, "loss"), (right, figure_name)):
                x, y = _series(points, "train", name)
                ax.plot(x, y, ":", color=colour, lw=1.1)
                x, y = _series(points, "validation", name)
                ax.plot(x, y, color=colour, marker=marker, ms=3.5, label=label)
        left.set(yscale="log", xlabel="epoch")
        right.set(xlabel="epoch", ylim=(-0.03, 1.03))
        right.yaxis.set_major_formatter(PercentFormatter(1))
        for ax in (left, right):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.legend(frameon=False, loc="lower right")
        finish(figure, left, "loss (dotted: training)")
        finish(figure, right, figure_name)
    return closed(figure)


def _series(points: Sequence[Mapping[str, Any]], part: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Epochs, as fractions, and values, of one part's points in order."""
    mine = [p for p in points if p["part"] == part and p.get(name) is not None]
    of_epoch: dict[int, int] = {}
    for point in mine:
        of_epoch[point["epoch"]] = of_epoch.get(point["epoch"], 0) + 1
    seen: dict[int, int] = {}
    x = []
    for point in mine:
        epoch = point["epoch"]
        seen[epoch] = seen.get(epoch, 0) + 1
        x.append(epoch - 1 + seen[epoch] / of_epoch[epoch])
    return np.array(x, float), np.array([p[name] for p in mine], float)


def draw_policies(policies: Mapping[str, Callable[[int], float]], steps: int, title: str) -> Figure:
    """The learning rate at each step, by policy."""
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 2.4), dpi=DPI)
        styles = ("-", "--", "-.", ":")
        for (name, policy), colour, style in zip(policies.items(), COLOURS, styles, strict=False):
            ax.plot(range(steps), [policy(step) for step in range(steps)], color=colour, ls=style, label=name)
        ax.set(xlabel="step", ylabel="rate", xlim=(0, steps), ylim=(0, None))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return closed(figure)


def draw_early_stop(losses: Sequence[float], best: int, patience: int, title: str) -> Figure:
    """Losses of the validation images by epoch, the chosen epoch marked, and the epochs without a new lowest shaded."""
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 2.3), dpi=DPI)
        ax.plot(range(len(losses)), losses, color=BLUE, marker="o", ms=3.5, label="validation loss")
        if 0 <= best < len(losses):
            ax.plot([best], [losses[best]], "s", color=ORANGE, ms=8, label=f"your epoch, {best}")
            ax.axvspan(best, min(best + patience, len(losses) - 1), color=PALE, alpha=0.5, lw=0, label="patience")
        ax.set(xlabel="epoch")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return closed(figure)


def draw_confusion(matrix: np.ndarray, classes: Sequence[str], title: str) -> Figure:
    """A confusion matrix: what it is down, what the network says across; numbers, and colour for the mistakes."""
    matrix = np.asarray(matrix)
    mistakes = matrix * (1 - np.eye(len(matrix), dtype=int))
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(4.4, 3.5), dpi=DPI)
        ax.imshow(mistakes, cmap="Oranges", vmin=0, vmax=max(1, int(mistakes.max()) * 1.4))
        for (row, column), count in np.ndenumerate(matrix):
            if count:
                ax.annotate(str(count), (column, row), ha="center", va="center", size=8)
        ax.set_xticks(range(len(classes)), classes)
        ax.set_yticks(range(len(classes)), classes)
        ax.set(xlabel="the network says", ylabel="it is")
        finish(figure, ax, title)
        ax.grid(False)
    return closed(figure)


def draw_heat(images: np.ndarray, heats: Sequence[np.ndarray], titles: Sequence[str], title: str) -> Figure:
    """Pairs of an image and a map over it: blue lowers the score where it is covered, orange raises it."""
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(2, len(images), figsize=(1.5 * len(images), 3.2), dpi=DPI, squeeze=False)
        for top, bottom, image, heat, text in zip(*axes, images, heats, titles, strict=True):
            _show(top, np.asarray(image))
            top.set_title(text, size=8)
            most = float(np.abs(heat).max()) or 1.0
            bottom.imshow(heat, cmap="PuOr_r", vmin=-most, vmax=most)
            bottom.set_xticks([])
            bottom.set_yticks([])
        figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.5)
    return closed(figure)


Box = Sequence[float]  # x, y, width, height


def draw_boxes(image: np.ndarray, groups: Mapping[str, Sequence[Box]], title: str) -> Figure:
    """An image with boxes of several kinds, by label, each kind with a colour and a line of its own."""
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(5.2, 3), dpi=DPI)
        _show(ax, np.asarray(image))
        for (name, boxes), colour, style in zip(groups.items(), COLOURS, ("-", "--", ":"), strict=False):
            for k, (x, y, width, height) in enumerate(boxes):
                label = name if k == 0 else None
                ax.add_patch(
                    Rectangle((x, y), width, height, fill=False, edgecolor=colour, ls=style, lw=1.6, label=label)
                )
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        finish(figure, ax, title)
        ax.grid(False)
    return closed(figure)


def draw_precision_recall(right: Sequence[bool], objects: int, title: str) -> Figure:
    """Precision against recall, detection by detection, and the envelope whose area is the average precision."""
    hits = np.cumsum(np.asarray(right, bool))
    recall, precision = hits / objects, hits / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(5.6, 2.6), dpi=DPI)
        # The area up to each new recall has the height that the envelope has there.
        x, y = np.concatenate([[0], recall]), np.concatenate([envelope[:1], envelope])
        ax.fill_between(x, y, step="pre", color=SKY, alpha=0.35, lw=0, label="area under the envelope")
        ax.step(x, y, where="pre", color=BLUE, lw=1)
        ax.plot(recall, precision, color=ORANGE, marker="o", ms=3.5, lw=1, label="precision")
        ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05))
        ax.legend(frameon=False, loc="lower left")
        finish(figure, ax, title)
    return closed(figure)


def draw_masks(image: np.ndarray, masks: Mapping[str, np.ndarray], classes: int, title: str) -> Figure:
    """An image, and beside it masks by label: (h, w), 0 for the background, class + 1 otherwise."""
    colours = plt.get_cmap("tab10" if classes <= 10 else "tab20")
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(1, 1 + len(masks), figsize=(2.6 * (1 + len(masks)), 2.6), dpi=DPI)
        _show(axes[0], np.asarray(image))
        axes[0].set_title("image", size=8)
        for ax, (name, mask) in zip(axes[1:], masks.items(), strict=True):
            shown = np.ones((*mask.shape, 3))
            for label in np.unique(mask[mask > 0]).tolist():
                shown[mask == label] = colours(label - 1)[:3]
                row, column = np.argwhere(mask == label).mean(axis=0)
                ax.annotate(str(label - 1), (column, row), ha="center", va="center", size=8, color="black")
            ax.imshow(shown, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(name, size=8)
        figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.5)
    return closed(figure)
