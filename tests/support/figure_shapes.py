"""Shapes and texts read back from a figure, to compare with what it should show."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.text import Text


def boxes(ax, colour) -> list[tuple[float, float, float, float]]:
    """Return (left, top, width, height) of the axes' rectangles of one face colour, from the left."""
    found = []
    for collection in ax.collections:
        face = collection.get_facecolor()
        if len(face) and np.allclose(face[0], to_rgba(colour), atol=1e-6):
            for path in collection.get_paths():
                (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.append((x0, y0, x1 - x0, y1 - y0))
    return sorted(found)


def area(found) -> float:
    return sum(width * height for _, _, width, height in found)


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def png(figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream)
    return stream.getvalue()


def texts(figure) -> str:
    """Return the texts of the first axes, one per line."""
    return "\n".join(text.get_text() for text in figure.axes[0].texts)


def overlapping(figure) -> list[tuple[str, str]]:
    """List the pairs of texts, of all axes and of the figure, that lie on each other or leave the picture."""
    png(figure)  # settles ticks and labels; the canvas of a closed figure draws nothing
    hidden = {text for ax in figure.axes for text in _hidden_tick_labels(ax)}
    seen = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    extents = [(t.get_text(), t.get_window_extent().padded(-0.5)) for t in seen]
    whole = figure.bbox.padded(1)
    pairs = [
        (text, "the edge") for text, box in extents if not whole.contains(*box.min) or not whole.contains(*box.max)
    ]
    for k, (text, box) in enumerate(extents):
        pairs += [(text, other) for other, there in extents[k + 1 :] if box.overlaps(there)]
    return pairs


def _hidden_tick_labels(ax) -> list[Text]:
    """List the labels of ticks outside the limits of their axis, which exist but are not drawn."""
    hidden: list[Text] = []
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not ax.axison or not low <= tick.get_loc() <= high:
                hidden += [tick.label1, tick.label2]
    return hidden
