"""Pictures of lab 12's lesson, of plain values: images, curves, a confusion matrix, heat maps, boxes.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from warpcourse.bench.charts import chart
from warplab.draw.style import AMBER, BLUE, GREEN, ORANGE, PALE, PINK, SKY, closed, finish

COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_images(images: np.ndarray, titles: Sequence[str] = (), title: str = "", rows: int = 1) -> Figure:
    """Return images side by side, each with a text above it, of one scale: 0 is black, 255 white, as on the page.

    `images`: (n, h, w), (n, h, w, 1) or (n, h, w, 3), uint8, or float of 0 to 255.
    """
    images = np.asarray(images)
    columns = -(-len(images) // rows)
    wide = max(0.78, 0.075 * max(map(len, titles), default=0))
    high = 1.05 if titles else 0.8
    with chart(rows, columns, figsize=(wide * columns, high * rows + 0.3 * bool(title)), squeeze=False) as (
        figure,
        axes,
    ):
        for ax in axes.ravel():
            ax.set_axis_off()
        for ax, image, text in zip(axes.ravel(), images, list(titles) or [""] * len(images), strict=False):
            _show(ax, image)
            # A frame, since a white edge of an image would be lost on the page.
            ax.add_patch(Rectangle((0, 0), 1, 1, transform=ax.transAxes, fill=False, edgecolor=PALE, clip_on=False))
            ax.set_title(text, size=8)
        if title:
            figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.4)
    return figure


def _show(ax: Any, image: np.ndarray) -> None:
    grey = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
    shown = np.clip(grey, 0, 255).astype(np.uint8)
    ax.imshow(shown, cmap="gray", vmin=0, vmax=255, interpolation="nearest")  # not each by its own largest value
    ax.set_xticks([])
    ax.set_yticks([])


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]], figure_name: str = "accuracy") -> Figure:
    """Return loss and a figure by epoch: of validation with a marker, of training, as means of epochs, dotted.

    `runs`: by label, the points of a run's curves: dictionaries with epoch, part ("train" or "validation"), loss and
    `figure_name`. A loss above 10 is cut off.
    """
    with chart(1, 2, figsize=(8.5, 2.9)) as (figure, (left, right)):
        for (label, points), colour, marker in zip(runs.items(), COLOURS, MARKERS, strict=False):
            for ax, name in ((left, "loss"), (right, figure_name)):
                x, y = _series(points, "train", name)
                ax.plot(x, y, ":", color=colour, lw=1.1)
                x, y = _series(points, "validation", name)
                ax.plot(x, y, color=colour, marker=marker, ms=3.5, label=label)
        left.set(yscale="log", xlabel="epoch")
        left.set_ylim(top=min(10.0, left.get_ylim()[1]))
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        left.yaxis.set_minor_formatter(NullFormatter())
        right.set(xlabel="epoch", ylim=(-0.03, 1.03))
        right.yaxis.set_major_formatter(PercentFormatter(1))
        for ax in (left, right):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.legend(frameon=False, loc="lower right")
        finish(figure, left, "loss (dotted: training)")
        finish(figure, right, figure_name)
    return figure


def _series(points: Sequence[Mapping[str, Any]], part: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the epochs and values of one part's points, several within an epoch as their mean."""
    values: dict[int, list[float]] = {}
    for point in points:
        if point["part"] == part and point.get(name) is not None:
            values.setdefault(math.ceil(point["epoch"]), []).append(point[name])
    return np.array(list(values), float), np.array([np.mean(some) for some in values.values()])


def draw_resumed(
    unbroken: Sequence[Mapping[str, Any]], resumed: Sequence[Mapping[str, Any]], killed: int, checkpoint: int
) -> Figure:
    """Return the training loss by step of two runs, one of which was killed and went on from a checkpoint."""
    with chart(figsize=(8.5, 2.7)) as (figure, ax):
        for points, colour, width, label in (
            (unbroken, SKY, 5.0, "unbroken"),
            (resumed, ORANGE, 1.2, "killed and resumed"),
        ):
            mine = [p for p in points if p["part"] == "train"]
            ax.plot([p["step"] for p in mine], [p["loss"] for p in mine], color=colour, lw=width, label=label)
        for step, text, side in ((checkpoint, "went on from", "right"), (killed, "killed", "left")):
            ax.axvline(step, color="black", ls="--", lw=0.9)
            ax.annotate(f" {text} {step} ", (step, 0.9), xycoords=("data", "axes fraction"), ha=side, size=8.5)
        ax.set(yscale="log", xlabel="step")
        ax.legend(frameon=False)
        finish(figure, ax, "training loss")
    return figure


def draw_policies(policies: Mapping[str, Callable[[int], float]], steps: int, title: str) -> Figure:
    """Return the learning rate at each step, by policy."""
    with chart(figsize=(7.6, 2.4)) as (figure, ax):
        styles = ("-", "--", "-.", ":")
        for (name, policy), colour, style in zip(policies.items(), COLOURS, styles, strict=False):
            ax.plot(range(steps), [policy(step) for step in range(steps)], color=colour, ls=style, label=name)
        ax.set(xlabel="step", ylabel="rate", xlim=(0, steps), ylim=(0, None))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


def draw_early_stop(losses: Sequence[float], best: int, patience: int, title: str) -> Figure:
    """Return validation losses by epoch, the chosen epoch marked, the epochs without a new lowest shaded."""
    with chart(figsize=(7.6, 2.3)) as (figure, ax):
        ax.plot(range(len(losses)), losses, color=BLUE, marker="o", ms=3.5, label="validation loss")
        if 0 <= best < len(losses):
            ax.plot([best], [losses[best]], "s", color=ORANGE, ms=8, label=f"your epoch, {best}")
            ax.axvspan(best, min(best + patience, len(losses) - 1), color=PALE, alpha=0.5, lw=0, label="patience")
        ax.set(xlabel="epoch")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


def draw_confusion(matrix: np.ndarray, classes: Sequence[str], title: str) -> Figure:
    """Return a confusion matrix, truth down, answers across: numbers, and colour for the mistakes."""
    matrix = np.asarray(matrix)
    mistakes = matrix * (1 - np.eye(len(matrix), dtype=int))
    with chart(figsize=(4.4, 3.5)) as (figure, ax):
        ax.imshow(mistakes, cmap="Oranges", vmin=0, vmax=max(1, int(mistakes.max()) * 1.4))
        for (row, column), count in np.ndenumerate(matrix):
            if count:
                ax.annotate(str(count), (column, row), ha="center", va="center", size=8)
        ax.set_xticks(range(len(classes)), classes)
        ax.set_yticks(range(len(classes)), classes)
        ax.set(xlabel="the network says", ylabel="it is")
        finish(figure, ax, title)
        ax.grid(False)
    return figure


def draw_maps(layers: Sequence[Any], image: np.ndarray) -> Figure:
    """Return an image, and below it the first channels of some layers' outputs, a row for each.

    `layers`: with name, kind, shape and maps, (channels, h, w), as `digits.look` answers. All maps of a layer have one
    range of colours, white for 0.
    """
    columns = 12
    with chart(len(layers), columns + 1, figsize=(8.5, 0.95 * len(layers)), squeeze=False) as (figure, axes):
        for ax in axes.ravel():
            ax.set_axis_off()
        _show(axes[0, 0], np.asarray(image))
        axes[0, 0].set_title("image", size=8)
        shown = []
        for row, layer in zip(axes, layers, strict=True):
            most = float(np.abs(layer.maps).max()) or 1.0
            for ax, channel in zip(row[1:], layer.maps, strict=False):
                ax.imshow(channel, cmap="PuOr_r", vmin=-most, vmax=most, interpolation="nearest")
            height, width, channels = layer.shape
            what = f"{layer.name}, {height} × {width}: {min(columns, channels)} of {channels} channels"
            shown.append(what)
            row[1].annotate(what, (0, 1.08), xycoords="axes fraction", size=8)
        figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.86, wspace=0.08, hspace=0.35)
    return closed(figure, "; ".join(shown))


def draw_heat(images: np.ndarray, heats: Sequence[np.ndarray], titles: Sequence[str], title: str) -> Figure:
    """Return images, each above a map: orange speaks for the class (covered, its score falls), violet against.

    A map with fewer places than its image has pixels lies in the middle: each place is that of a square's centre.
    """
    with chart(2, len(images), figsize=(1.5 * len(images), 3.2), squeeze=False) as (figure, axes):
        for top, bottom, image, heat, text in zip(*axes, images, heats, titles, strict=True):
            _show(top, np.asarray(image))
            top.set_title(text, size=8)
            most = float(np.abs(heat).max()) or 1.0
            (h, w), (rows, columns) = np.shape(image)[:2], np.shape(heat)
            x, y = (w - columns - 1) / 2, (h - rows - 1) / 2
            extent = (x, x + columns, y + rows, y)
            bottom.imshow(heat, cmap="PuOr_r", vmin=-most, vmax=most, extent=extent)
            bottom.set(xlim=(-0.5, w - 0.5), ylim=(h - 0.5, -0.5))
            bottom.set_xticks([])
            bottom.set_yticks([])
        figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.5)
    return figure


Box = Sequence[float]  # x, y, width, height


def draw_boxes(image: np.ndarray, groups: Mapping[str, Sequence[Box]], title: str) -> Figure:
    """Return an image with boxes of several kinds, by label, each kind with a colour and a line of its own."""
    with chart(figsize=(5.2, 3)) as (figure, ax):
        _show(ax, np.asarray(image))
        for (name, boxes), colour, style in zip(groups.items(), (SKY, ORANGE, GREEN), ("-", "--", ":"), strict=False):
            for k, (x, y, width, height) in enumerate(boxes):
                label = name if k == 0 else None
                ax.add_patch(Rectangle((x, y), width, height, fill=False, ec=colour, ls=style, lw=1.6, label=label))
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        finish(figure, ax, title)
        ax.grid(False)
    return figure


def draw_precision_recall(right: Sequence[bool], objects: int, title: str) -> Figure:
    """Return precision against recall, detection by detection, and the envelope whose area is the average precision."""
    hits = np.cumsum(np.asarray(right, bool))
    recall, precision = hits / objects, hits / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    with chart(figsize=(5.6, 2.6)) as (figure, ax):
        # The area up to each new recall has the height that the envelope has there.
        x, y = np.concatenate([[0], recall]), np.concatenate([envelope[:1], envelope])
        ax.fill_between(x, y, step="pre", color=SKY, alpha=0.35, lw=0, label="area under the envelope")
        ax.step(x, y, where="pre", color=BLUE, lw=1)
        ax.plot(recall, precision, color=ORANGE, marker="o", ms=3.5, lw=1, label="precision")
        ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05))
        ax.legend(frameon=False, loc="lower left")
        finish(figure, ax, title)
    return figure


def draw_masks(image: np.ndarray, masks: Mapping[str, np.ndarray], classes: int, title: str) -> Figure:
    """Return an image, and beside it masks by label: (h, w), 0 for the background, class + 1 otherwise."""
    colours = plt.get_cmap("tab10" if classes <= 10 else "tab20")
    with chart(1, 1 + len(masks), figsize=(2.6 * (1 + len(masks)), 2.6)) as (figure, axes):
        _show(axes[0], np.asarray(image))
        axes[0].set_title("image", size=8)
        for ax, (name, mask) in zip(axes[1:], masks.items(), strict=True):
            shown = np.ones((*mask.shape, 3))
            for label in np.unique(mask[mask > 0]).tolist():
                shown[mask == label] = colours(label - 1)[:3]
                for row, column in _places(mask == label):
                    tag = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.8}
                    ax.annotate(str(label - 1), (column, row), ha="center", va="center", size=8, bbox=tag)
            ax.imshow(shown, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(name, size=8)
        figure.suptitle(title, size=9, weight="bold", x=0.01, ha="left")
        figure.tight_layout(pad=0.5)
    return figure


def _places(mask: np.ndarray, least: int = 12) -> list[tuple[int, int]]:
    """List the pixels nearest to the middle of their piece, one for each connected piece of `least` or more."""
    from scipy.ndimage import label  # takes a moment

    pieces, count = label(mask)
    found = []
    for piece in range(1, count + 1):
        pixels = np.argwhere(pieces == piece)
        if len(pixels) >= least:
            row, column = pixels[((pixels - pixels.mean(axis=0)) ** 2).sum(axis=1).argmin()]
            found.append((int(row), int(column)))
    return found


def draw_jobs() -> Figure:
    """Return who reads and writes what: browser, page's kernel, the folder of a run, its worker process."""
    files = (
        ("run.json", "what to do; never changed", "right"),
        ("wanted", "run, pause or stop", "right"),
        ("lock", "held while the worker lives", "left"),
        ("state.json", "step, status, time left", "left"),
        ("curves.jsonl", "a point per line", "left"),
        ("checkpoints/", "weights, optimizer, step", "both"),
    )
    with chart(figsize=(8.5, 2.9)) as (figure, ax):
        for x, width, text, colour in (
            (0.75, 1.3, "browser", SKY),
            (2.7, 1.4, "page's kernel", BLUE),
            (9.2, 1.4, "worker:\nTensorFlow", ORANGE),
        ):
            ax.add_patch(Rectangle((x - width / 2, 1.7), width, 1.5, facecolor=colour, alpha=0.85))
            ax.annotate(text, (x, 2.45), ha="center", va="center", color="black" if colour == SKY else "white")
        ax.annotate("", (2.0, 2.45), (1.4, 2.45), arrowprops={"arrowstyle": "<->"})
        ax.add_patch(Rectangle((4.4, 0), 3.1, 4.95, fill=False, edgecolor=PALE, lw=1.5))
        ax.annotate("runs/ID/", (4.5, 4.7), va="center", weight="bold")
        for k, (name, text, way) in enumerate(files):
            y = 4.1 - 0.72 * k
            ax.annotate(name, (4.55, y), va="center", family="monospace", size=8.5)
            ax.annotate(text, (4.55, y - 0.27), va="center", size=7)
            style = {"right": "->", "left": "<-", "both": "<->"}[way]
            if way != "both":
                ax.annotate("", (4.4, y - 0.1), (3.4, 2.45), arrowprops={"arrowstyle": style, "color": BLUE, "lw": 0.8})
            ax.annotate("", (8.5, 2.45), (7.5, y - 0.1), arrowprops={"arrowstyle": style, "color": ORANGE, "lw": 0.8})
        ax.set(xlim=(0, 10), ylim=(-0.1, 5.1))
        ax.set_axis_off()
        figure.tight_layout()
    said = ", ".join(f"{name} ({text})" for name, text, _ in files)
    return closed(figure, f"browser, page's kernel; between that and the worker, TensorFlow, folder runs/ID/: {said}")
