"""What the data panel shows of a dataset, as HTML: facts, classes, images, what was skipped, what augmentation does."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from digits.data.augment import Augmentation
from digits.data.dataset import PARTS, Dataset
from digits.data.resize import MODES, fit
from digits.page import elements
from digits.page.elements import Markup, escape, figure, grid, picture, progress, table
from digits.tasks import drawing

LARGEST = 160  # pixels that a picture has on its longer side; larger images are shown reduced
MOST_CLASSES = 200  # classes in the table of classes
AT_ONCE = 24  # images shown at a time
EPOCHS = 5  # versions of an image in the preview of augmentation
_STATUS = {
    "ready": "Ready",
    "building": "Being built",
    "failed": "Not built",
    "killed": "Its process was killed",
    "damaged": "Damaged",
}


def titles(datasets: Sequence[Dataset]) -> list[str]:
    """Return what datasets are called in the list to choose from; with the time, too, where several have one name."""
    names = Counter(dataset.name for dataset in datasets)
    made = [_title(one) + (f", {_when(one)}" if names[one.name] > 1 else "") for one in datasets]
    alike = Counter(made)
    # The counter of their IDs tells those of one second apart.
    return [title if alike[title] == 1 else f"{title}, {one.id}" for title, one in zip(made, datasets, strict=True)]


def _when(dataset: Dataset) -> str:
    """Return when a dataset was made, such as 2026-11-23 04:00:53, as its ID begins."""
    try:
        return str(datetime.fromisoformat(dataset.id[:15].replace("-", "T")))
    except ValueError:  # a folder that was given another name
        return dataset.id


def _title(dataset: Dataset) -> str:
    if dataset.status != "ready":
        return f"{dataset.name} ({_STATUS[dataset.status].lower()})"
    kind = "" if dataset.kind == "classification" else f"{dataset.kind}, "
    return f"{dataset.name} ({kind}{size(dataset)}, {len(dataset.classes)} classes)"


def size(dataset: Dataset) -> str:
    return f"{dataset.width} × {dataset.height} {'grey' if dataset.channels == 1 else 'colour'}"


def state(dataset: Dataset) -> str:
    """Return how far a dataset is: its progress while it is built, or why there is nothing to show."""
    if dataset.status == "ready":
        return ""
    said = f"<strong>{escape(dataset.name)}: {_STATUS[dataset.status]}.</strong> {escape(dataset.message)}"
    if dataset.status != "building":
        return f'<p class="digits-error">{said}</p>'
    return f"<p>{said}</p>{progress(dataset.progress, 'Built')} {100 * dataset.progress:.0f} %"


def facts(dataset: Dataset) -> str:
    """Return what a ready dataset is and how it was made."""
    counts = ", ".join(f"{dataset.counts[part]} {_FOR[part]}" for part in PARTS)
    made = {
        "For": dataset.kind,
        "Images": f"{sum(dataset.counts.values())} of {size(dataset)}: {counts}",
        "Resized by": dataset.resize,
        "Made from": dataset.source,
        "Split by": f"seed {dataset.seed}",
        "Made": dataset.created.replace("T", " "),
        "ID": dataset.id,
    }
    return elements.facts(made)


_FOR = {"train": "to train on", "validation": "for validation", "test": "for test"}


def skipped(dataset: Dataset) -> str:
    """Return the files that were not taken, with the reasons."""
    if not dataset.skipped_count:
        return ""
    shown = [(one["file"], one["reason"]) for one in dataset.skipped]
    more = dataset.skipped_count - len(shown)
    what = "files and folders" if any(file.endswith("/") for file, _ in shown) else "files"
    files = f"1 {what.split()[-1][:-1]} was" if dataset.skipped_count == 1 else f"{dataset.skipped_count} {what} were"
    rest = f"<p>{more} more are not listed.</p>" if more else ""
    return (
        f"<details><summary>{files} skipped: which, and why</summary>"
        f"{table(('File', 'Reason'), shown, 'What was skipped', numbers=False)}{rest}</details>"
    )


def classes(dataset: Dataset) -> str:
    """Return how many images of each class each part has, as a table with a bar of the whole."""
    if dataset.kind != "classification":
        return f"<p>Classes: {escape(', '.join(dataset.classes))}</p>"
    counts = np.stack([np.bincount(dataset.labels(part), minlength=len(dataset.classes)) for part in PARTS])
    most = max(int(counts.sum(axis=0).max()), 1)
    lines = []
    for name, of_class in zip(dataset.classes[:MOST_CLASSES], counts.T, strict=False):
        width = 100 * int(of_class.sum()) / most
        bar = Markup(f'<div class="digits-bar" aria-hidden="true" style="width:{width:.1f}%"></div>')
        lines.append((name, *map(int, of_class), int(of_class.sum()), bar))
    more = len(dataset.classes) - MOST_CLASSES
    rest = f"<p>{more} more classes are not listed.</p>" if more > 0 else ""
    head = ("Class", *(part.capitalize() for part in PARTS), "All", "")
    return f'<div class="digits-classes">{table(head, lines, "Images of each class")}</div>{rest}'


def chosen(dataset: Dataset, part: str, label: int | None) -> NDArray[np.int64]:
    """Return which images of a part are of the class `label`, or all."""
    if label is None or dataset.kind != "classification":
        return np.arange(len(dataset.images(part)))  # counts are what dataset.json says; the array is held to them here
    return np.flatnonzero(dataset.labels(part) == label)


def images(dataset: Dataset, part: str, indices: Sequence[int]) -> str:
    """Return pictures of these images with their names and what is on them: classes, boxes or masks."""
    if not len(indices):
        return elements.said(f"There are no such images in {part}.")
    if dataset.kind != "classification":
        return grid(_scene(dataset, part, index) for index in indices)
    stored = dataset.images(part)
    labels = dataset.labels(part)
    tiles = []
    for index in indices:
        what, name = dataset.classes[labels[index]], dataset.name_of(part, index)
        tiles.append(_tile(stored[index], f"{name}, {what}", f"<strong>{escape(what)}</strong> {escape(name)}"))
    return grid(tiles)


def _scene(dataset: Dataset, part: str, index: int) -> str:
    """Return an image of a dataset for detection or segmentation with what is to be found in it."""
    image, name = np.array(dataset.images(part)[index]), dataset.name_of(part, index)
    if dataset.kind == "detection":
        boxes = np.array(dataset.boxes(part)[index])
        boxes = boxes[boxes[:, 0] >= 0]
        values = boxes[:, 0].astype(int).tolist()
        drawn = drawing.boxes(image, boxes, None, dataset.classes)
    else:
        mask = np.array(dataset.masks(part)[index])
        values = [int(value) - 1 for value in np.unique(mask[mask > 0])]
        drawn = drawing.mask(image, mask, dataset.classes)
    what = ", ".join(dataset.classes[value] for value in values) or "nothing"
    says = f"{name}: {what}"
    return figure(picture(drawn, says, width="11rem"), escape(says), "digits-tile digits-scene")


def mean(dataset: Dataset) -> str:
    """Return the mean image."""
    image = np.rint(dataset.mean()).clip(0, 255).astype(np.uint8)
    return _tile(image, "The mean of all images to train on", "Mean image")


def augmented(dataset: Dataset, indices: Sequence[int], augmentation: Augmentation, seed: int) -> str:
    """Return some images to train on, each as it is and as it comes in the first epochs."""
    which = np.asarray(indices)
    originals = np.array(dataset.images("train")[which])
    versions = [augmentation.apply(originals, which, epoch, seed) for epoch in range(EPOCHS)]
    names = {index: dataset.name_of("train", index) for index in indices}
    head = ("Image", "As it is", *(f"Epoch {epoch + 1}" for epoch in range(EPOCHS)))
    lines = []
    for place, index in enumerate(which):
        shown = [originals[place], *(version[place] for version in versions)]
        says = [f"{names[index]} {when}" for when in ("as it is", *(f"in epoch {e + 1}" for e in range(EPOCHS)))]
        lines.append((names[index], *(Markup(_picture(one, text)) for one, text in zip(shown, says, strict=True))))
    return table(head, lines, "What augmentation makes of images", numbers=False)


def resize_example(height: int, width: int, channels: int) -> str:
    """Return what each resize mode makes of one wide picture. Raises DigitsError for a size that there is not."""
    example = _example()
    seen = _shown(example, "A wide picture with a circle and an arrow")
    tiles = [figure(seen, "The image", "digits-tile")]
    for mode, meaning in MODES.items():
        made = fit(example, height, width, channels, mode, np.random.default_rng(0))
        tiles.append(_tile(made, f"The picture in the mode {mode}", escape(meaning)))
    return grid(tiles)


def _example() -> Image.Image:
    image = Image.new("RGB", (160, 90), (235, 232, 220))
    pen = ImageDraw.Draw(image)
    pen.ellipse((48, 13, 112, 77), outline=(11, 92, 173), width=6)
    pen.line((6, 45, 154, 45), fill=(179, 66, 10), width=5)
    pen.polygon([(158, 45), (138, 32), (138, 58)], fill=(179, 66, 10))
    pen.rectangle((2, 2, 157, 87), outline=(28, 28, 28), width=2)
    return image


def _tile(image: NDArray[np.uint8], says: str, caption: str) -> str:
    return figure(_picture(image, says), caption, "digits-tile")


def _picture(image: NDArray[np.uint8], says: str) -> str:
    return _shown(Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else np.ascontiguousarray(image)), says)


def _shown(image: Image.Image, says: str) -> str:
    """Return the picture; small ones are enlarged, their pixels' edges kept, and large ones reduced."""
    width, height = image.size
    if max(width, height) > LARGEST:
        image.thumbnail((LARGEST, LARGEST))
    wide = f"{6 * width / max(width, height):.2f}rem"
    return picture(drawing.png(image), says, width=wide, pixelated=max(width, height) < 64)
