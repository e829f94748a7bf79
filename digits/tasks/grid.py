"""Boxes on a grid, as DetectNet has them: from true boxes to what the network should say, and back.

A cell whose centre lies in the middle part of a box is to have coverage 1 for the box's class, and to tell how far the
left, upper, right and lower edge of that box are from the cell's centre, in cells. All other cells have coverage 0. Of
boxes that share a cell the smallest has it.
"""

import numpy as np

from digits.tasks import boxes as box_lists
from digits.tasks.boxes import CLASS, WHERE

MIDDLE = 0.5  # the part of a box's width and height, around its centre, that is covered
LEAST_COVERAGE = 0.05  # below it a cell says nothing; low, as average precision asks for unsure detections, too
MOST_CELLS = 1000  # of one image that are decoded: the surest; an untrained network says something everywhere
WAYS = ("group", "suppress", "cells")  # of making one box from many cells


def targets(boxes: np.ndarray, grid: tuple[int, int], stride: int, classes: int) -> tuple[np.ndarray, ...]:
    """Return what the network should say of one image.

    `boxes` (most, 5): class, −1 for none, x, y, width, height in pixels. Returns float32 `coverage` (*grid, classes),
    `edges` (*grid, 4) and `covered` (*grid,), 1 where a cell belongs to a box.
    """
    coverage = np.zeros((*grid, classes), np.float32)
    edges, covered = np.zeros((*grid, 4), np.float32), np.zeros(grid, np.float32)
    centre_y, centre_x = ((np.arange(cells) + 0.5) * stride for cells in grid)
    boxes = boxes[boxes[:, CLASS] >= 0]
    for label, x, y, width, height in boxes[np.argsort(-boxes[:, 3] * boxes[:, 4], kind="stable")]:
        middle_x, middle_y = x + width / 2, y + height / 2
        inside = (np.abs(centre_y - middle_y) <= MIDDLE / 2 * height)[:, None]
        inside = inside & (np.abs(centre_x - middle_x) <= MIDDLE / 2 * width)
        row, column = (int(middle // stride) for middle in (middle_y, middle_x))
        inside[min(max(row, 0), grid[0] - 1), min(max(column, 0), grid[1] - 1)] = True  # a small box has a cell, too
        rows, columns = np.nonzero(inside)
        coverage[inside], covered[inside] = 0, 1
        coverage[inside, int(label)] = 1
        there_y, there_x = centre_y[rows], centre_x[columns]
        sides = [there_x - x, there_y - y, x + width - there_x, y + height - there_y]
        edges[rows, columns] = np.stack(sides, axis=1) / stride
    return coverage, edges, covered


def cells(coverage: np.ndarray, edges: np.ndarray, stride: int, least: float = LEAST_COVERAGE) -> np.ndarray:
    """Return the box that each cell and class of an image tells of, with its coverage as score, from `least` up.

    `coverage` (rows, columns, classes), `edges` (rows, columns, 4). Returns detections, float32 (n, 6): class, x, y,
    width, height in pixels, cut at the image's edges, score; best first. A box without an area is left out.
    """
    rows, columns, labels = np.nonzero(coverage >= least)
    score = coverage[rows, columns, labels]
    best = np.argsort(-score, kind="stable")[:MOST_CELLS]
    rows, columns, labels, score = rows[best], columns[best], labels[best], score[best]
    left, up, right, down = edges[rows, columns].astype(np.float64).T * stride
    centre_x, centre_y = (columns + 0.5) * stride, (rows + 0.5) * stride
    height, width = coverage.shape[0] * stride, coverage.shape[1] * stride
    x, x_end = np.clip(centre_x - left, 0, width), np.clip(centre_x + right, 0, width)
    y, y_end = np.clip(centre_y - up, 0, height), np.clip(centre_y + down, 0, height)
    found = np.stack([labels, x, y, x_end - x, y_end - y, score], axis=1).astype(np.float32)
    return found[(found[:, WHERE][:, 2:] > 0).all(axis=1)]


def detections(
    coverage: np.ndarray, edges: np.ndarray, stride: int, way: str = "group", least: float = LEAST_COVERAGE
) -> np.ndarray:
    """Return one box for each object of one image, float32 (n, 6) as from `cells`.

    `way`: "group" joins the boxes of neighbouring cells, as DetectNet does, "suppress" keeps the best (non-maximum
    suppression), "cells" leaves them all.
    """
    found = cells(coverage, edges, stride, least)
    if way == "group":
        return box_lists.group(found)
    if way == "suppress":
        return box_lists.non_maximum_suppression(found)
    if way == "cells":
        return found
    raise ValueError(f"way is {way!r}; give one of {', '.join(WAYS)}")
