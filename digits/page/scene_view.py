"""What a detector or segmenter found, as HTML: figures, a table by class, precision against recall, drawn scenes."""

import math
from collections.abc import Sequence

import numpy as np

from digits.look.pictures import overlay_png
from digits.look.scene_answers import Answers, Figures
from digits.networks.detectnet import STRIDE
from digits.page import charts
from digits.page.elements import escape, figure, grid, picture, said, table
from digits.tasks import average_precision, drawing
from digits.tasks.boxes import CLASS
from digits.tasks.detection import SURE

WIDTH = "16rem"  # of a drawn scene
NAMED = 4  # classes in the caption of a mask, those with most pixels


def detection(figures: Figures, scenes: int, least: float) -> str:
    whole = figures.whole
    said = (
        f"<p><strong>mAP {_percent(whole['mAP'])}</strong> as PASCAL VOC counts (IoU of 0.5), "
        f"{_percent(whole['mAP_coco'])} as COCO does (mean over IoU 0.50 to 0.95), of {scenes} scenes. Boxes with a "
        f"score of {least:.2f} or more, right at an IoU of 0.5: precision {_percent(whole['precision'])}, recall "
        f"{_percent(whole['recall'])}.</p>"
    )
    rows = [(name, boxes, _percent(by_voc), _percent(by_coco)) for name, boxes, by_voc, by_coco in figures.rows]
    return said + table(("Class", "True boxes", "AP (VOC)", "AP (COCO)"), rows, "Average precision by class")


def segmentation(figures: Figures, scenes: int) -> str:
    whole = figures.whole
    said = (
        f"<p><strong>Mean IoU {_percent(whole['mean_iou'])}</strong>, pixel accuracy "
        f"{_percent(whole['pixel_accuracy'])}, of {scenes} scenes. Whoever says ground everywhere has a pixel accuracy "
        f"of {_percent(whole['ground'])}, so mean IoU tells more. Mean accuracy of the classes "
        f"{_percent(whole['mean_accuracy'])}, IoU weighted by pixels {_percent(whole['weighted_iou'])}.</p>"
    )
    rows = [(name, pixels, _percent(iou)) for name, pixels, iou in figures.rows]
    return said + table(("Class", "True pixels", "IoU"), rows, "Intersection over union by class")


def precision_recall(answers: Answers, found: list[np.ndarray], which: int) -> str:
    """Return the chart of one class by VOC's rule: what was measured, and the falling curve whose area is the AP."""
    points = average_precision.curve(answers.truth, found, which, average_precision.VOC_THRESHOLD, "voc")
    name = answers.classes[which]
    if not len(points.recall):
        return said(f"Nothing was found of class {name}.")
    falling = np.maximum.accumulate(points.precision[::-1])[::-1]
    lines = [
        charts.Line("after each detection, from the surest down", points.recall, points.precision, 0),
        charts.Line("best precision at this recall or more; its area is the AP", points.recall, falling, 1, True),
    ]
    title = f"Precision and recall of class {name}, AP {_percent(average_precision.voc_area(points))}"
    return charts.chart(lines, title, "recall", "precision", percent=True, most=1.0, plain=True)


LEGENDS = {
    "detection": "A full line and a class: found, and right. “Not” and a class: wrong. A dashed line: missed.",
    "segmentation": "Colour and digit: what the network says. White outline: what is true.",
    "coverage": "The stronger the colour, the surer the network that a digit covers this cell.",
}


def drawn(answers: Answers, which: Sequence[int], found: list[np.ndarray] | None = None) -> str:
    """Return scenes by their numbers, with what was found (`found`: the boxes to show) and what was missed."""
    legend = LEGENDS[answers.kind] if answers.truth is not None else ""
    return said(legend) + grid(_scene(answers, index, found) for index in which)


def coverage(answers: Answers, which: Sequence[int]) -> str:
    """Return scenes by their numbers, with the coverage of each cell for the class that is surest there."""
    figures = []
    for index in which:
        covered = answers.said["coverage"][index].max(axis=-1)
        values = covered.repeat(STRIDE, axis=0).repeat(STRIDE, axis=1)
        cells = int((covered >= SURE).sum())
        caption = f"Scene {index}: {cells} of {covered.size} cells with a coverage of {SURE} or more"
        figures.append(_figure(overlay_png(answers.images[index], values), caption, pixelated=True))
    return said(LEGENDS["coverage"]) + grid(figures)


def _scene(answers: Answers, index: int, found: list[np.ndarray] | None) -> str:
    image, classes = answers.images[index], answers.classes
    labelled = answers.truth is not None
    if answers.kind == "segmentation":
        said = answers.said["mask"][index]
        values, pixels = np.unique(said[said > 0], return_counts=True)
        largest = sorted(zip(-pixels, values, strict=True))  # those of a few stray pixels would drown the others
        png = drawing.mask(image, said, classes, answers.truth[index] if labelled else None)
        told = "found " + (", ".join(f"{classes[v - 1]} ({-count} px)" for count, v in largest[:NAMED]) or "none")
        more = largest[NAMED:]
        others = "class" if len(more) == 1 else "classes"
        told += f" and {len(more)} more {others} ({-sum(count for count, _ in more)} px)" if more else ""
        if labelled:
            told += f"; {int((said != answers.truth[index]).sum())} px wrong"
    else:
        boxes = found[index]
        if labelled:
            truth = answers.truth[index]
            png = drawing.boxes(image, truth, boxes, classes)
            right = average_precision.taken(truth, boxes)
            told = f"{(right >= 0).sum()} of {len(truth)} found"
            told += f", {int((right < 0).sum())} wrong" if (right < 0).any() else ""
        else:
            # Nobody knows what is right: each box is drawn as found.
            png = drawing.found(image, boxes, classes)
            count = "1 box" if len(boxes) == 1 else f"{len(boxes)} boxes"
            named = ", ".join(classes[int(box[CLASS])] for box in boxes)
            told = f"{count} found: {named}" if len(boxes) else "found none"
    caption = f"Scene {index}: {told}" if labelled else told[:1].upper() + told[1:]  # names keep their capitals
    return _figure(png, caption)


def _figure(png: bytes, caption: str, pixelated: bool = False) -> str:
    return figure(picture(png, caption, WIDTH, pixelated), escape(caption), "scenes-figure")


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"
