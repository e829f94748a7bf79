"""Boxes: overlap, non-maximum suppression, grouping.

A box is x, y, width, height in pixels, x and y of its upper left corner; it covers width × height, as in COCO (PASCAL
VOC's own tools count the last pixel in and so add 1 to each side). A labelled box has its class before them, a
detection its score behind them: class, x, y, width, height, score.
"""

import numpy as np
from scipy.sparse.csgraph import connected_components

CLASS, SCORE = 0, 5
WHERE = slice(1, 5)


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the IoU of all pairs, (n, 4) and (m, 4) to float64 (n, m), 0 to 1; empty boxes have 0."""
    boxes = _checked(boxes, 4, "boxes").astype(np.float64)
    others = _checked(others, 4, "others").astype(np.float64)
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, :2] + boxes[:, None, 2:], others[None, :, :2] + others[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    areas, other_areas = np.prod(boxes[:, 2:], axis=1), np.prod(others[:, 2:], axis=1)
    union = areas[:, None] + other_areas[None, :] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def non_maximum_suppression(detections: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """Keep of each heap of detections the one with the best score.

    `detections` (n, 6). From the best score down, each is kept unless a kept one of its class overlaps it with an IoU
    above `threshold`. Returns the kept rows, best first.
    """
    _check_fraction("threshold", threshold)
    detections = by_score(detections)
    overlaps = iou(detections[:, WHERE], detections[:, WHERE]) > threshold
    overlaps &= detections[:, None, CLASS] == detections[None, :, CLASS]
    kept: list[int] = []
    for row in range(len(detections)):
        if not overlaps[row, kept].any():
            kept.append(row)
    return detections[kept]


def group(detections: np.ndarray, spread: float = 0.4, fewest: int = 1) -> np.ndarray:
    """Make one detection of each group of similar ones, as DetectNet does with OpenCV's `groupRectangles`.

    Two of one class are similar if each side of one lies within `spread` × the mean of the lesser width and the lesser
    height from the same side of the other; what is similar through others is one group. Groups of fewer than `fewest`
    are dropped. A group becomes the mean of its boxes, weighted by their scores (OpenCV weighs all alike), with its
    best score. (n, 6) to (groups, 6), best first.
    """
    if spread < 0:
        raise ValueError(f"spread is {spread}; give 0 or more")
    detections = by_score(detections)
    where = detections[:, WHERE].astype(np.float64)
    sides = np.concatenate([where[:, :2], where[:, :2] + where[:, 2:]], axis=1)
    lesser = np.minimum(where[:, None, 2:], where[None, :, 2:]).sum(axis=2) / 2
    similar = (np.abs(sides[:, None] - sides[None, :]) <= spread * lesser[:, :, None]).all(axis=2)
    similar &= detections[:, None, CLASS] == detections[None, :, CLASS]
    count, part = connected_components(similar, directed=False)
    groups = [detections[part == i] for i in range(count)]
    found = [_mean_of(members) for members in groups if len(members) >= fewest]
    return by_score(np.array(found, np.float32).reshape(-1, 6))


def by_score(detections: np.ndarray) -> np.ndarray:
    """Return detections (n, 6), the best score first; equal scores stay in their order."""
    detections = _checked(detections, 6, "detections")
    return detections[np.argsort(-detections[:, SCORE], kind="stable")]


def _mean_of(members: np.ndarray) -> np.ndarray:
    weights = members[:, SCORE] if members[:, SCORE].sum() > 0 else None
    mean = np.average(members, axis=0, weights=weights)
    mean[CLASS], mean[SCORE] = members[0, CLASS], members[:, SCORE].max()
    return mean


def _checked(rows: np.ndarray, columns: int, name: str) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.size == 0:
        return np.zeros((0, columns), np.float64)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{name} has shape {rows.shape}; give (n, {columns})")
    return rows


def _check_fraction(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; give a number from 0 to 1")
