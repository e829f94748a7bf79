"""Many images: a whole part of the dataset against the truth, or all that were uploaded."""

from typing import Any

import numpy as np

from digits.data.dataset import PARTS
from digits.files import DigitsError
from digits.look import Tested
from digits.look.confusion import answers, worst
from digits.page import look_view
from digits.page.elements import button, choice, column, integer, note, row
from digits.page.look_image import ImagePart

MOST = 1_000_000  # images in one test
USUAL = 5000
MISTAKES = 12


class ManyPart:
    """A part of the look panel `panel`. `image`: the part for one image, to which a mistake leads."""

    def __init__(self, panel: Any, image: ImagePart) -> None:
        self._panel, self._image = panel, image
        page = panel.page
        self._part = choice("Part of the dataset", [("none yet", "")])
        self._most = integer("Images, at most", USUAL, 1, MOST)
        self._test = button("Test", page.guarded(self._ask_test), kind="primary")
        self._own = button("Classify all uploaded images", page.guarded(self._ask_own))
        self._tested = ""  # the part that was tested last
        self._found, self._mistakes, self._answers = (note("") for _ in range(3))
        self._mistake = choice("Mistake", [("none", -1)])
        self._look = button("Look at this mistake", page.guarded(self._look_at))
        self._wrong = column(note("<h4>Worst mistakes</h4>"), self._mistakes, row(self._mistake, self._look))
        self._of_classes = column(
            row(self._part, self._most), row(self._test, self._own), self._found, self._wrong, self._answers
        )
        self._instead = note('<p class="digits-muted">Whole parts of this dataset are tested in the panel Scenes.</p>')
        self.widget = column(self._of_classes, self._instead)

    def start(self) -> None:
        """Begin anew with the panel's dataset."""
        counts = self._panel.dataset.counts
        parts = [part for part in ("validation", *PARTS) if counts[part]]
        self._part.options = [(f"{part} ({counts[part]})", part) for part in dict.fromkeys(parts)]
        classes = self._panel.kind == "classification"
        self._of_classes.layout.display = None if classes else "none"
        self._instead.layout.display = "none" if classes else None
        self.clear()

    def clear(self) -> None:
        """Forget what was found."""
        self._found.value = self._mistakes.value = self._answers.value = ""
        self._wrong.layout.display = "none"

    def _ask_test(self) -> None:
        part, most, panel = self._part.value, self._most.value, self._panel
        weights = panel.weights()
        panel.ask(f"testing the {part} images", lambda look: look.test(part, most, weights, panel.progress), self._show)

    def _show(self, found: Tested) -> None:
        self._found.value = look_view.tested(found)
        images = self._panel.dataset.images(found.part)
        self._mistakes.value = look_view.mistakes(found, images, MISTAKES)
        answered = answers(found.probabilities)
        options = [
            (
                f"{found.part} image {found.indices[i]}: {found.classes[found.labels[i]]} taken for "
                f"{found.classes[answered[i]]}",
                int(found.indices[i]),
            )
            for i in worst(found.probabilities, found.labels, MISTAKES)
        ]
        self._mistake.options = options or [("none", -1)]
        self._tested = found.part
        self._look.disabled = not options
        self._wrong.layout.display = None

    def _look_at(self) -> None:
        if self._mistake.value >= 0:
            self._image.show(self._tested, self._mistake.value)
            self._panel.page.say(f"Shown above, under One image: {self._tested} image {self._mistake.value}.")

    def _ask_own(self) -> None:
        own = list(self._image.own)
        if not own:
            raise DigitsError("No image was uploaded. Upload some above, under One image.")
        panel, weights = self._panel, self._panel.weights()
        named = [(name, self._image.as_asked(pixels)) for name, pixels in own]
        stacked = np.stack([pixels for _, pixels in named])

        def show(probabilities: np.ndarray) -> None:
            self._answers.value = look_view.many(named, probabilities, panel.dataset.classes)

        panel.ask("classifying the uploaded images", lambda look: look.classify(stacked, weights, panel.progress), show)
