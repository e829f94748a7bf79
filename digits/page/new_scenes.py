"""The form for new scenes: what they look like, with some drawn at once, and the dataset made of them."""

from collections.abc import Callable
from typing import Any

from digits.data import scenes
from digits.data.dataset import Dataset
from digits.data.scene_drawing import CLASSES, Scene, SceneOptions
from digits.page.elements import button, choice, column, grid, integer, note, picture, progress, row, section, text
from digits.page.panel import Panel
from digits.tasks import drawing

KINDS = (("Detection: boxes", "detection"), ("Segmentation: masks", "segmentation"))
EXAMPLES = 4
SIDES = (32, 48, 64, 96)  # pixels; multiples of 8, as the networks ask


class NewScenes(Panel):
    """The form. `made(dataset)` is called with each dataset that it has made."""

    def __init__(self, page: Any, made: Callable[[Dataset], None]) -> None:
        self.page = page
        self._made = made
        self._share, self._cancelled, self._drawing = 0.0, False, False
        self._kind = choice("Task", KINDS)
        self._name = text("Name of the scenes", "scenes")
        self._train = integer("Number to train on", scenes.COUNTS["train"], 1, scenes.MOST_SCENES)
        self._others = integer("Number for each other part", scenes.COUNTS["validation"], 1, scenes.MOST_SCENES)
        self._side = choice("Side of a scene", [(f"{side} pixels", side) for side in SIDES], 64)
        self._numbers = {  # of SceneOptions
            "fewest": integer("Fewest digits", 1, 0, 20),
            "most": integer("Most digits", 5, 1, 20),
            "smallest": integer("Smallest digit (pixels)", 12, 8, max(SIDES)),
            "largest": integer("Largest digit (pixels)", 24, 8, max(SIDES)),
            "clutter": integer("Most other strokes", 3, 0, 50),
        }
        self._seed = integer("Seed of the scenes", 0, 0, 2**31 - 1)
        self._examples, self._progress = note(""), note("")
        self._make = button("Make the scenes", page.guarded(self._start), kind="primary")
        self._cancel = button("Cancel", page.guarded(lambda: setattr(self, "_cancelled", True)))
        self._cancel.layout.display = "none"
        forms = column(
            section("New scenes", self._kind, self._name, self._train, self._others, self._seed),
            section("What they look like", self._side, *self._numbers.values()),
        )
        forms.add_class("digits-sheet")
        self.widget = column(forms, self._examples, row(self._make, self._cancel), self._progress)
        self._when(self._kind, self._seed, self._side, *self._numbers.values(), call=self._show_examples)
        self._show_examples()
        page.every(0.5, self._poll)

    def options(self) -> SceneOptions:
        """Return what the controls say. Raises DigitsError with a sentence where that makes no sense."""
        numbers = {name: control.value for name, control in self._numbers.items()}
        return SceneOptions(height=self._side.value, width=self._side.value, **numbers)

    def _show_examples(self) -> None:
        self._examples.value = ""
        options, kind, seed = self.options(), self._kind.value, self._seed.value

        def draw() -> str:
            return grid(_example(kind, scene) for scene in scenes.draw_part("train", EXAMPLES, seed, options))

        def show(examples: str) -> None:
            if (options, kind, seed) == (self.options(), self._kind.value, self._seed.value):
                self._examples.value = examples

        self.page.in_background(draw, show)

    def _start(self) -> None:
        options, kind, name, seed = self.options(), self._kind.value, self._name.value.strip(), self._seed.value
        counts = {"train": self._train.value, "validation": self._others.value, "test": self._others.value}
        self._make.disabled, self._cancelled, self._drawing, self._share = True, False, True, 0.0
        self._cancel.layout.display = None
        self._poll()
        workspace = self.page.workspace

        def make() -> Dataset:
            return scenes.build(
                workspace, kind, name or "scenes", counts, seed, options, self._progressed, lambda: self._cancelled
            )

        self.page.in_background(make, self._done, self._free)

    def _progressed(self, share: float) -> None:
        """Keep `share`, in the thread that draws."""
        self._share = share

    def _done(self, dataset: Dataset) -> None:
        count = sum(dataset.counts.values())
        self.page.say(f"{dataset.name}: {count} scenes of {dataset.height} × {dataset.width} pixels are ready.")
        self._made(dataset)

    def _free(self) -> None:
        self._make.disabled = self._drawing = False
        self._cancel.layout.display = "none"
        self._progress.value = ""

    def _poll(self) -> None:
        if self._drawing:
            bar = progress(self._share, "Scenes drawn")
            self._progress.value = f"{bar}<p>{100 * self._share:.0f} % of the scenes are drawn.</p>"


def _example(kind: str, scene: Scene) -> str:
    there = ", ".join(CLASSES[int(label)] for label in scene.boxes[:, 0]) or "none"
    image = scene.image[..., None]
    if kind == "detection":
        drawn, says = drawing.boxes(image, scene.boxes, None, CLASSES), "A scene with boxes around digits"
    else:
        drawn, says = drawing.mask(image, scene.mask, CLASSES), "A scene with masks over digits"
    return picture(drawn, f"{says}: {there}", "16rem")
