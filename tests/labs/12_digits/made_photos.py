"""Photos, made: a bright figure of some colour, place, size and turn on a textured ground of another, by a seed."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

SIDE = 32
# Corners of figures in a circle of 1, as (angle in turns, radius).
_STAR = [(i / 10, 1.0 if i % 2 == 0 else 0.4) for i in range(10)]
_CROSS = [(q / 4 + a, r) for q in range(4) for a, r in ((-0.05, 1.0), (0.05, 1.0), (0.125, 0.42))]
FIGURES = {
    "triangle": [(i / 3, 1.0) for i in range(3)],
    "square": [(i / 4, 1.0) for i in range(4)],
    "hexagon": [(i / 6, 1.0) for i in range(6)],
    "star": _STAR,
    "cross": _CROSS,
    "disc": [(i / 24, 1.0) for i in range(24)],
    "bar": [(-0.03, 1.0), (0.03, 1.0), (0.47, 1.0), (0.53, 1.0)],
    "arrow": [(0.0, 1.0), (0.35, 1.0), (0.5, 0.3), (0.65, 1.0)],
    "half": [(i / 24, 1.0) for i in range(13)],
    "kite": [(0.0, 1.0), (0.25, 0.45), (0.5, 0.6), (0.75, 0.45)],
    "ell": [(0.125, 1.0), (0.375, 1.0), (0.625, 1.0), (0.7, 0.75), (0.36, 0.45), (0.16, 0.75)],
    "bolt": [(0.05, 1.0), (0.3, 0.35), (0.2, 0.15), (0.55, 1.0), (0.8, 0.35), (0.7, 0.15)],
}


def photo(figure: str, rng: np.random.Generator) -> np.ndarray:
    """Return one photo of a figure, uint8, (SIDE, SIDE, 3)."""
    ground, ink = rng.integers(0, 140, 3), rng.integers(60, 256, 3)
    while abs(int(ground.sum()) - int(ink.sum())) < 120:
        ground, ink = rng.integers(0, 140, 3), rng.integers(60, 256, 3)
    turn, size = rng.uniform(0, 1), rng.uniform(0.26, 0.44) * SIDE
    x, y = rng.uniform(0.4, 0.6, 2) * SIDE
    angles = [(2 * np.pi * (a + turn), r * size) for a, r in FIGURES[figure]]
    picture = Image.new("RGB", (SIDE, SIDE), tuple(int(one) for one in ground))
    corners = [(x + r * np.cos(a), y + r * np.sin(a)) for a, r in angles]
    ImageDraw.Draw(picture).polygon(corners, fill=tuple(int(one) for one in ink))
    noise = rng.normal(0, 14, (SIDE, SIDE, 3)) + 20 * np.sin(np.arange(SIDE) / rng.uniform(1, 4))[:, None, None]
    return np.clip(np.asarray(picture, float) + noise, 0, 255).astype(np.uint8)


def parts(figures: list[str], counts: dict[str, int], seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Return parts as `Dataset.create` takes them: so many photos of each figure."""
    rng = np.random.default_rng(seed)
    made = {}
    for part, count in counts.items():
        labels = np.repeat(np.arange(len(figures)), count)
        made[part] = {"images": np.stack([photo(figures[label], rng) for label in labels]), "labels": labels}
    return made
