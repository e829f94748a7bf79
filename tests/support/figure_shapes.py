"""Shapes and texts read back from a figure, to compare with what it should show."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.colors import to_rgba


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
