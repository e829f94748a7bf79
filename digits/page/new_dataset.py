"""The form for a new dataset: the digits built in, a folder or archive on this machine, or an upload."""

import contextlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from digits.data import building
from digits.data.build_options import BuildOptions
from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.data.resize import MODES, MOST_SIDE
from digits.files import DigitsError
from digits.page import elements as ui
from digits.page.data_view import resize_example
from digits.page.panel import Panel

DIGITS = "scikit-learn's digits"
FOLDER = "Folder or .zip on this machine"
ARCHIVE = "Upload of a .zip"
FILES = "Upload of images, class by class"
_ABOUT = {
    DIGITS: "1797 handwritten digits of 8 × 8 grey pixels, ten classes. Nothing is downloaded.",
    FOLDER: "One folder per class with its images in it, such as cat/1.png and dog/1.png; or the folders train, "
    "validation and test, each with one folder per class.",
    ARCHIVE: "One folder per class with its images in it, packed into one file.",
    FILES: "Name a class, choose its images, then do the same for the next class.",
}


class NewDataset(Panel):
    """The form. `made(dataset)` is called with each dataset that it has made or begun to build."""

    def __init__(self, page: Any, made: Callable[[Dataset], None]) -> None:
        self.page = page
        self._made = made
        self._files: dict[str, list[tuple[str, bytes]]] = {}
        self._archive: tuple[str, bytes] | None = None
        self._source = ui.choice("Source", list(_ABOUT))
        self._about, self._collected, self._packed, self._meaning, self._example = (ui.note("") for _ in range(5))
        self._name = ui.text("Name", placeholder="what the dataset is called")
        self._path = ui.text("Folder or .zip file", placeholder="its path on this machine")
        self._failed = ""  # id of the dataset that this form made and that could not be built
        self._zip = ui.upload("Choose a .zip file", ".zip,application/zip")
        self._class = ui.text("Class")
        self._images = ui.upload("Choose images of this class", "image/*", multiple=True)
        self._camera = ui.camera("Take a photo of this class")
        self._forget = ui.button("Start over", page.guarded(self._start_over), "Forgets the images chosen so far")
        self._width = ui.integer("Width (pixels)", 32, 1, MOST_SIDE)
        self._height = ui.integer("Height (pixels)", 32, 1, MOST_SIDE)
        self._channels = ui.choice("Colour", [("Grey", 1), ("Colour (RGB)", 3)], 3)
        modes = [(meaning.split(":")[0], mode) for mode, meaning in MODES.items()]
        self._resize = ui.choice("Resize mode", modes, "squash")
        self._show = ui.button("Show an example", page.guarded(self._show_example))
        self._validation = ui.real("Validation (% of a class)", 15, 0, 99)
        self._test = ui.real("Test (% of a class)", 15, 0, 99)
        self._seed = ui.integer("Seed of the split", 0, 0, 2**31 - 1)
        self._least = ui.integer("Fewest images of a class", 2, 1, 10**6)
        self._most = ui.integer("Most images of a class (0: all)", 0, 0, 10**6)
        self._make = ui.button("Make the dataset", page.guarded(self._start), kind="primary")
        self._limits = ui.column(self._least, self._most)
        self._packing = ui.column(ui.row(self._zip), self._packed)
        self._uploads = ui.column(self._class, ui.row(self._images, self._camera, self._forget), self._collected)
        self._form = ui.column(self._height, self._channels, self._resize, self._meaning, ui.row(self._show))
        self.widget = ui.column(
            ui.section("New dataset", self._source, self._about, self._path, self._packing, self._uploads, self._name),
            ui.section("Images", self._width, self._form, self._example),
            ui.section("Split", self._validation, self._test, self._seed, self._limits),
            ui.row(self._make),
        )
        self._when(self._source, call=self._choose)
        self._when(self._zip, call=self._take_archive)
        for given in (self._images, self._camera):
            self._when(given, call=lambda given=given: self._take_images(given))
        self._when(self._resize, call=self._explain)
        self._explain()
        self._choose()

    def options(self) -> BuildOptions:
        """Return what the controls say. Raises DigitsError with a sentence where that is wrong."""
        size = self._height.value, self._width.value, self._channels.value, self._resize.value
        shares = self._validation.value / 100, self._test.value / 100
        return BuildOptions(*size, *shares, self._seed.value, self._least.value, self._most.value)

    def correct(self, failed: Dataset) -> None:
        """Take up again what `failed` was to become; it is deleted as soon as another of its name is made."""
        self._name.value, self._failed = failed.name, failed.id

    def _choose(self) -> None:
        """Show the controls that the chosen source needs."""
        source = self._source.value
        self._about.value = ui.said(_ABOUT[source])
        for control, sources in (
            (self._path, (FOLDER,)),
            (self._packing, (ARCHIVE,)),
            (self._uploads, (FILES,)),
            (self._limits, (FOLDER, ARCHIVE, FILES)),
            (self._form, (FOLDER, ARCHIVE, FILES)),
        ):
            control.layout.display = None if source in sources else "none"
        for number in (self._height, self._least, self._most):
            number.restore()  # nothing wrong stays where it is not seen
        self._width.description = "Size (pixels a side)" if source == DIGITS else "Width (pixels)"
        self._width.value = 8 if source == DIGITS else 32
        self._example.value = ""

    def _explain(self) -> None:
        meaning = MODES[self._resize.value].split(":", 1)[1].strip()
        self._meaning.value = ui.said(f"{meaning[:1].upper()}{meaning[1:]}.")

    def _show_example(self) -> None:
        self._example.value = resize_example(self._height.value, self._width.value, self._channels.value)

    def _take_archive(self) -> None:
        if not self._zip.value:
            return
        file = self._zip.value[0]
        name, data = file["name"], bytes(file["content"])
        self._archive, self._packed.value = None, ""
        building.check_archive(name, data)
        self._archive = (name, data)
        self._packed.value = f"<p>Chosen: {ui.escape(name)}, {len(data) / 1e6:.1f} MB</p>"
        if not self._name.value:
            self._name.value = PurePath(name).stem
        self.page.say(f"{name} has been uploaded. Make the dataset.")

    def _take_images(self, given: Any) -> None:
        if not given.value:
            return
        chosen = [(file["name"], bytes(file["content"])) for file in given.value]
        given.value = ()
        label = self._class.value.strip()
        building.check_class_name(label)
        of_class = self._files.setdefault(label, [])
        of_class += chosen
        self._show_collected()
        self.page.say(f"{len(of_class)} images of the class {label}. Name the next class, or make the dataset.")

    def _show_collected(self) -> None:
        lines = [(label, len(files)) for label, files in self._files.items()]
        self._collected.value = ui.table(("Class", "Images"), lines, "Uploaded so far") if lines else ""

    def _start_over(self) -> None:
        self._files, self._archive, self._zip.value = {}, None, ()
        self._class.value = self._packed.value = ""
        self._show_collected()
        self.page.say("")

    def _start(self) -> None:
        work = self._work()
        self._make.disabled = True
        self.page.in_background(work, self._started, lambda: setattr(self._make, "disabled", False))

    def _work(self) -> Callable[[], Dataset]:
        """Return what makes the dataset. Raises DigitsError if something is missing."""
        workspace, source, options = self.page.workspace, self._source.value, self.options()
        name = self._name.value.strip()
        if source == DIGITS:
            size, shares = self._width.value, {"validation": options.validation, "test": options.test}
            return lambda: sklearn_digits(workspace, name or "digits", size=size, seed=options.seed, **shares)
        if source == FOLDER:
            path = self._path.value.strip()
            if path and not Path(path).expanduser().is_absolute():  # the page's own folder is nobody's
                raise DigitsError(f"Give the whole path of {path}, from / or ~ on.")
            return lambda: building.from_path(workspace, name or PurePath(path).stem, path, options)
        if source == ARCHIVE:
            if self._archive is None:
                raise DigitsError("Choose a .zip file first.")
            file, data = self._archive
            return lambda: building.from_zip(workspace, name or PurePath(file).stem, data, options, file)
        files = {label: list(several) for label, several in self._files.items()}
        return lambda: building.from_files(workspace, name or "images", files, options)

    def _started(self, dataset: Dataset) -> None:
        self._start_over()
        self._name.value = ""
        if self._failed:
            # The corrected try takes the place of the one before.
            with contextlib.suppress(DigitsError):  # deleted by hand, or being built again
                failed = Dataset.open(self.page.workspace, self._failed)
                if failed.status == "failed" and failed.name == dataset.name:
                    failed.delete()
            self._failed = ""
        done = "has been made." if dataset.status == "ready" else "is being built. It goes on when this page is closed."
        self.page.say(f"The dataset {dataset.name} {done}")
        self._made(dataset)
