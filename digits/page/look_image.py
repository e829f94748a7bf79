"""One image: of the dataset or uploaded; what the network answers, what its layers make of it, what that hangs on."""

from typing import Any

import numpy as np

from digits.data import images
from digits.data.dataset import PARTS
from digits.files import DigitsError
from digits.page import look_view
from digits.page.elements import button, camera, check, choice, column, escape, integer, note, row, said, upload
from digits.page.panel import Panel

MOST_OWN = 100  # uploaded images that are kept
METHODS = (("Gradient × input", "gradient"), ("Occlusion, patch by patch", "occlusion"))
ANSWERED = ("the one it answers", -1)


class ImagePart(Panel):
    """A part of the look panel `panel`, which asks for it."""

    def __init__(self, panel: Any) -> None:
        self._panel = panel
        page = self.page = panel.page
        self.own: list[tuple[str, np.ndarray]] = []  # uploaded: names, and uint8 images of the dataset's size
        self._source = choice("Image from", [("nothing yet", "")])
        self._index = integer("Number", 0, 0, 0)
        self._next = button("Next image", page.guarded(self._go_on))
        self._upload = upload("Upload images", accept="image/*", multiple=True)
        self._camera = camera("Take a photo")
        self._invert = check("Invert uploads (dark on white)")
        self._shown, self._bad = note(""), note("")
        self._classify = button("Classify", page.guarded(self._ask_classes), kind="primary")
        self._layers = button("Show the layers", page.guarded(self._ask_layers))
        self._layer = choice("Layer in full", [("none yet", "")])
        self._one = button("Show all its channels", page.guarded(self._ask_layer))
        self._method = choice("Saliency by", METHODS)
        self._label = choice("Class asked about", [ANSWERED])
        self._salient = button("Show what the answer hangs on", page.guarded(self._ask_saliency))
        self._answer, self._saliency, self._found, self._full = (note("") for _ in range(4))
        self._in_full = column(row(self._layer, self._one), self._full)
        self._classes = column(row(self._classify), self._answer)
        self._of_classes = column(row(self._method, self._label, self._salient), self._saliency)
        self.widget = column(
            row(self._source, self._index, self._next),
            row(self._upload, self._camera, self._invert),
            self._bad,
            row(self._shown, self._classes),
            self._of_classes,
            row(self._layers),
            self._found,
            self._in_full,
        )
        self._when(self._source, call=self._source_chosen)
        self._when(self._index, self._invert, call=self._show)
        for given in (self._upload, self._camera):
            self._when(given, call=lambda given=given: self._uploaded(given))

    def start(self) -> None:
        """Begin anew with the panel's dataset."""
        dataset = self._panel.dataset
        if any(pixels.shape != dataset.shape for _, pixels in self.own):
            self.own.clear()
        for part in (self._classes, self._of_classes):
            part.layout.display = None if self._panel.kind == "classification" else "none"
        self._label.options = [ANSWERED, *((name, i) for i, name in enumerate(dataset.classes))]
        self._bad.value = ""
        self._fill_sources()

    def clear(self) -> None:
        """Forget what was found: it was of another image or other weights."""
        for shown in (self._answer, self._saliency, self._found, self._full):
            shown.value = ""
        self._in_full.layout.display = "none"

    def show(self, part: str, index: int) -> None:
        """Choose an image of the dataset."""
        with self._quietly():
            self._source.value = part
            self._index.max = max(self._panel.dataset.counts[part] - 1, 0)
            self._index.value = index
        self._show()

    def image(self) -> tuple[np.ndarray, str, int | None]:
        """Return the chosen image, uint8 (h, w, c), its name, and its class. Raises DigitsError without one."""
        source, index = self._source.value, self._index.value
        if isinstance(source, int):
            name, pixels = self.own[source]
            return self.as_asked(pixels), name, None
        dataset = self._panel.dataset
        if not source or dataset is None:
            raise DigitsError("There is no image. Upload one, or choose a run whose dataset has images.")
        pixels = np.array(dataset.images(source)[index])
        truth = int(dataset.labels(source)[index]) if dataset.kind == "classification" else None
        return pixels, f"{source} image {index}", truth

    def as_asked(self, pixels: np.ndarray) -> np.ndarray:
        """Return an uploaded image, inverted if that is ticked."""
        return 255 - pixels if self._invert.value else pixels

    # Choosing

    def _fill_sources(self, value: Any = None) -> None:
        counts = self._panel.dataset.counts
        parts = [(f"{part} ({counts[part]})", part) for part in reversed(PARTS) if counts[part]]
        parts.sort(key=lambda option: option[1] != "validation")
        options = [*parts, *((f"uploaded: {name}", i) for i, (name, _) in enumerate(self.own))]
        with self._quietly():
            self._source.options = options or [("nothing yet", "")]
            if value is not None:
                self._source.value = value
        self._source_chosen()

    def _source_chosen(self) -> None:
        source = self._source.value
        own = isinstance(source, int)
        with self._quietly():
            self._index.max = max(self._panel.dataset.counts.get(source, 1) - 1, 0) if not own else 0
            self._index.value = 0
        self._index.layout.display = "none" if own else None
        self._show()

    def _go_on(self) -> None:
        if isinstance(self._source.value, int):
            self._source.value = (self._source.value + 1) % len(self.own)
        else:
            self._index.value = (self._index.value + 1) % (self._index.max + 1)

    def _show(self) -> None:
        self.clear()
        try:
            pixels, name, truth = self.image()
        except DigitsError as error:
            self._shown.value = said(error, "error")
            return
        of = "" if truth is None else f", of class {self._panel.dataset.classes[truth]}"
        says = f"{name}{of}"
        self._shown.value = look_view.image(pixels, says) + f"<p>{escape(says)}</p>"

    def _uploaded(self, given: Any) -> None:
        files = [(str(file["name"]), bytes(file["content"])) for file in given.value]
        if not files:
            return
        given.value = ()  # so that the same file can be given again
        dataset = self._panel.dataset
        if dataset is None:
            raise DigitsError("Choose a run first: images are brought to the size of its dataset.")
        self._panel.page.in_background(lambda: _read(files[:MOST_OWN], dataset), self._take)

    def _take(self, read: tuple[list[tuple[str, np.ndarray]], list[tuple[str, str]]]) -> None:
        good, bad = read
        good = [one for one in good if one[1].shape == self._panel.dataset.shape]
        self.own = (self.own + good)[-MOST_OWN:]
        listed = "".join(f"<li>{escape(name)}: {escape(reason)}</li>" for name, reason in bad)
        self._bad.value = f'<div class="digits-error">Not read: <ul>{listed}</ul></div>' if bad else ""
        if good:
            self._fill_sources(len(self.own) - len(good))

    # Asking

    def ask_all(self) -> None:
        """Ask what the network answers, and what its layers make of the image."""
        pixels, _, truth = self.image()
        weights, classes = self._panel.weights(), self._panel.dataset.classes

        def show(found: tuple[np.ndarray, list]) -> str:
            self._answer.value = look_view.top_five(found[0][0], classes, truth)
            return self._told(found[1])

        def ask(inside: Any) -> Any:
            return inside.classify(pixels[None], weights), inside.layers(pixels, weights)

        self._ask("classifying the image", ask, self._found, show)

    def _ask_classes(self) -> None:
        pixels, _, truth = self.image()
        weights, classes = self._panel.weights(), self._panel.dataset.classes

        def show(probabilities: np.ndarray) -> str:
            return look_view.top_five(probabilities[0], classes, truth)

        self._ask("classifying the image", lambda inside: inside.classify(pixels[None], weights), self._answer, show)

    def _ask_layers(self) -> None:
        pixels, weights = self.image()[0], self._panel.weights()

        self._ask("looking at every layer", lambda inside: inside.layers(pixels, weights), self._found, self._told)

    def _told(self, found: list) -> str:
        self._layer.options = [layer.name for layer in found]
        self._in_full.layout.display = None
        return look_view.layers(found)

    def _ask_layer(self) -> None:
        pixels, name, weights = self.image()[0], self._layer.value, self._panel.weights()
        doing = f"looking at the layer {name}"
        self._ask(doing, lambda inside: inside.layer(pixels, name, weights), self._full, look_view.layer)

    def _ask_saliency(self) -> None:
        pixels, weights, panel = self.image()[0], self._panel.weights(), self._panel
        label, method = None if self._label.value < 0 else self._label.value, self._method.value

        def show(found: Any) -> str:
            return look_view.saliency(pixels, found, panel.dataset.classes)

        def ask(inside: Any) -> Any:
            return inside.saliency(pixels, label, method, weights, panel.progress)

        self._ask("asking what the answer hangs on", ask, self._saliency, show)

    def _ask(self, doing: str, f: Any, where: Any, show: Any) -> None:
        """Ask, and put the HTML of what is found into a note, unless another image was chosen meanwhile."""

        def about() -> tuple[Any, ...]:
            return self._source.value, self._index.value, self._invert.value

        self._panel.ask(doing, f, lambda found: setattr(where, "value", show(found)), about)


def _read(files: list[tuple[str, bytes]], dataset: Any) -> tuple[list[tuple[str, np.ndarray]], list[tuple[str, str]]]:
    """Return images of the dataset's size, and what could not be read, each with its name."""
    good, bad = [], []
    for name, data in files:
        try:
            good.append((name, images.one(data, dataset)))
        except DigitsError as error:
            bad.append((name, str(error)))
    return good, bad
