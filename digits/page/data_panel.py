"""Data: a dataset is made, built, looked at and deleted; what augmentation does to its images is shown.

The panel reads the datasets' files and keeps nothing: after a reload, or in a second browser, it shows the same.
"""

from dataclasses import asdict
from typing import Any

import numpy as np

from digits.data import building
from digits.data.augment import Augmentation
from digits.data.dataset import PARTS, Dataset
from digits.files import DigitsError
from digits.page import data_view
from digits.page.elements import button, choice, column, escape, note, row, section
from digits.page.new_dataset import NewDataset
from digits.page.panel import Deletion, Panel
from digits.page.try_it import TryIt
from digits.training import runs
from digits.training.spec import Solver

EVERY = 1.0  # seconds between two looks at the datasets
EXAMPLE = Augmentation(shift=0.1, rotation=15, scale=0.1, noise=8, contrast=0.2)
_PREVIEWED = 4  # images in the preview of augmentation


class DataPanel(Panel):
    """Writes `page.selected.dataset`, when a dataset that is ready is chosen."""

    title = "Data"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._form_open = False
        self._made_here = ""  # id of the dataset that the form made last
        self._listed: list[tuple[str, str]] | None = None  # id and status of each dataset
        self._status: dict[str, str] = {}  # of each dataset, when it was looked at last
        self._shown: Dataset | None = None
        self._first = 0  # of the images shown
        self._dataset = choice("Dataset")
        self._state, self._facts, self._classes, self._images, self._augmented = (note("") for _ in range(5))
        self._stop = button("Stop building", page.guarded(self._stop_building))
        self._again = button("Build it again", page.guarded(self._build_again), kind="primary")
        self._train = button("Choose a network", page.guarded(lambda: page.open("Network")), kind="primary")
        self._another = button("New dataset …", page.guarded(lambda: self._open_form(True)))
        self._deletion = Deletion(page, self._what_is_deleted, self._delete_it)
        self._part = choice("Part", [(part.capitalize(), part) for part in PARTS])
        self._class = choice("Of class", [("all classes", -1)])
        self._before = button("Show the images before", page.guarded(lambda: self._turn(-1)))
        self._more = button("Show the next images", page.guarded(lambda: self._turn(1)))
        self._others = button("Show other images", page.guarded(self._draw_augmented))
        self._use = button("Use this augmentation", page.guarded(self._use_example))
        self._set = button("Change it in Solver", page.guarded(lambda: page.open("Solver")))
        self._draws = 0
        self._ready = column(
            section("Classes", self._classes),
            section("Images", row(self._part, self._class), self._images, row(self._before, self._more)),
            section("Augmentation preview", self._augmented, row(self._others, self._use, self._set)),
        )
        self._new = NewDataset(page, self._made)
        self._try = TryIt(page)
        self._there = section(
            "Dataset",
            self._dataset,
            self._state,
            row(self._train, self._stop, self._again, self._another, self._deletion.button),
            self._deletion.question,
            self._facts,
        )
        self.widget = column(column(self._try.widget, self._there, self._new.widget), self._ready)
        self.widget.add_class("digits-data")
        self._when(self._dataset, call=lambda: self._look(first=self._dataset.value))
        self._when(self._part, self._class, call=lambda: self._draw_images(0))
        self._follow("dataset", call=self._selected_elsewhere)
        self._follow("datasets_version", call=self._look)
        self._follow("solver", call=lambda: self._draw_augmented(again=False))
        self._look(first=page.selected.dataset)
        page.every(EVERY, self._look)

    # Which datasets there are, and which one is shown

    def _look(self, first: str = "") -> None:
        """Read the datasets and show what has changed. `first`: the ID of the one to show, if there is one."""
        datasets = Dataset.list(self.page.workspace)
        by_id = {dataset.id: dataset for dataset in datasets}
        seen = [(dataset.id, dataset.status) for dataset in datasets]
        before, self._listed = self._listed, seen
        wanted = first or (self._shown.id if self._shown else "")
        if wanted not in by_id:
            wanted = next((id for id, status in seen if status == "ready"), seen[0][0] if seen else "")
        if seen != before:
            self._offer(self._dataset, list(zip(data_view.titles(datasets), by_id, strict=True)), wanted)
        self._show(by_id.get(wanted))
        if before is not None and seen != before:
            self._say_what_ended(by_id)
            self.page.selected.datasets_version += 1
        self._status = dict(seen)

    def _say_what_ended(self, now: dict[str, Dataset]) -> None:
        for id, dataset in now.items():
            before = self._status.get(id, "")
            if dataset.status == "ready" and before not in ("", "ready"):
                self.page.say(f"The dataset {dataset.name} is ready: {sum(dataset.counts.values())} images.")
            elif dataset.status in ("failed", "killed") and before == "building":
                self.page.say(f"The dataset {dataset.name} was not built. {dataset.message}", error=True)
                if dataset.status == "failed" and id == self._made_here and dataset == self._shown:
                    self._new.correct(dataset)
                    self._open_form(True)

    def _selected_elsewhere(self) -> None:
        """Follow another panel's choice, but not away from a dataset that is being built."""
        id = self.page.selected.dataset
        building_now = self._shown is not None and self._shown.status == "building"
        if id and not building_now and (self._shown is None or self._shown.id != id):
            self._look(first=id)

    def _made(self, dataset: Dataset) -> None:
        self._made_here = dataset.id
        self._open_form(False)
        if dataset.status != "ready":
            self._status[dataset.id] = "building"  # it may have ended by now, which is then said
        self._look(first=dataset.id)

    def _open_form(self, asked: bool) -> None:
        """Show the form for a new dataset: when it is asked for, and as long as there is no dataset."""
        self._form_open = asked
        there = self._shown is not None
        self._new.widget.layout.display = None if asked or not there else "none"
        self._another.layout.display = None if there and not asked else "none"

    def _show(self, dataset: Dataset | None) -> None:
        """Show a dataset; what has not changed since it was shown last is left alone."""
        if dataset == self._shown and dataset is not None:
            return
        other = self._shown is None or dataset is None or dataset.id != self._shown.id
        self._shown = dataset
        self._open_form(self._form_open)
        self._there.layout.display = None if dataset else "none"
        for widget, kind in ((self.widget, "digits-empty"), (self._try.start, "digits-primary")):
            (widget.add_class if dataset is None else widget.remove_class)(kind)
        if dataset is None:
            self._facts.value = ""
        else:
            self._refill(self._dataset, list(self._dataset.options), dataset.id)
            self._state.value = data_view.state(dataset)
            self._facts.value = data_view.skipped(dataset)
        status = dataset.status if dataset else ""
        for control, of in (
            (self._train, ("ready",)),
            (self._stop, ("building",)),
            (self._again, ("failed", "killed")),
            (self._deletion.button, ("ready", "failed", "killed", "damaged")),
            (self._ready, ("ready",)),
        ):
            control.layout.display = None if status in of else "none"
        if other:
            self._deletion.withdraw()
        if dataset is not None and status == "ready":
            self._show_ready(dataset)
        elif dataset is None:
            self.page.selected.dataset = ""

    def _show_ready(self, dataset: Dataset) -> None:
        self._facts.value = data_view.facts(dataset) + data_view.skipped(dataset)
        self._classes.value = data_view.classes(dataset) + data_view.mean(dataset)
        with self._quietly():
            self._class.options = [("all classes", -1), *((name, index) for index, name in enumerate(dataset.classes))]
            self._class.layout.display = None if dataset.kind == "classification" else "none"
        self._draw_images(0)
        self._draw_augmented()
        self.page.selected.dataset = dataset.id

    # What is in it

    def _ready_dataset(self) -> Dataset:
        if self._shown is None or self._shown.status != "ready":
            raise DigitsError("No dataset is ready to be shown. Make one, or choose another.")
        return self._shown

    def _draw_images(self, first: int) -> None:
        if self._filling:
            return
        dataset, part = self._ready_dataset(), self._part.value
        which = data_view.chosen(dataset, part, None if self._class.value in (-1, None) else self._class.value)
        self._first = first if first < len(which) else 0
        shown = which[self._first : self._first + data_view.AT_ONCE].tolist()
        told = f"<p>{self._first + 1} to {self._first + len(shown)} of {len(which)} images.</p>" if len(shown) else ""
        self._images.value = told + data_view.images(dataset, part, shown)
        self._before.disabled = self._first == 0
        self._more.disabled = self._first + data_view.AT_ONCE >= len(which)
        for turning in (self._before, self._more):
            turning.layout.display = None if len(which) > data_view.AT_ONCE else "none"

    def _turn(self, pages: int) -> None:
        self._draw_images(max(self._first + pages * data_view.AT_ONCE, 0))

    def _augmentation(self) -> tuple[Augmentation, int]:
        """Return what the solver says, and its seed."""
        solver = self.page.selected.solver or {}
        return Augmentation.from_dict(solver.get("augment")), int(solver.get("seed", 1))

    def _draw_augmented(self, again: bool = True) -> None:
        """Show what the solver's augmentation does; an example if it says none. `again`: with other images."""
        if self._shown is None or self._shown.status != "ready":
            return
        self._draws += again
        augmentation, seed = self._augmentation()
        set_in_solver = not augmentation.is_none
        drawn = np.random.default_rng(self._draws).permutation(self._shown.counts["train"])[:_PREVIEWED]
        shown = augmentation if set_in_solver else EXAMPLE
        what = ", ".join(f"{name} {value:g}" for name, value in asdict(shown).items() if name != "flip" and value)
        what += "" if shown.flip == "none" else f", flip {shown.flip}"
        told = (
            f"What the solver says: {escape(what.strip(', '))}."
            if set_in_solver
            else f"The solver says none; images are trained on as they are. An example: {escape(what)}."
        )
        self._use.layout.display = "none" if set_in_solver else None
        self._augmented.value = f"<p>{told}</p>" + data_view.augmented(self._shown, sorted(drawn), shown, seed)

    def _use_example(self) -> None:
        solver = dict(self.page.selected.solver) or asdict(Solver())
        self.page.selected.solver = {**solver, "augment": asdict(EXAMPLE)}
        self.page.say("The next run trains with this augmentation. Solver has its numbers.")

    # What is done with it

    def _stop_building(self) -> None:
        if self._shown is not None:
            building.stop(self._shown)
            self.page.say(f"{self._shown.name} stops after the images that it is at.")

    def _build_again(self) -> None:
        if self._shown is not None:
            workspace, id = self.page.workspace, self._shown.id
            self.page.in_background(lambda: building.again(workspace, id), then=self._made)

    def _what_is_deleted(self) -> str:
        assert self._shown is not None  # there is no button otherwise
        used = sum(_dataset_of(run) == self._shown.id for run in runs.listing(self.page.workspace))
        they = "One run was trained on it; it" if used == 1 else f"{used} runs were trained on it; they"
        more = f" {they} cannot be resumed or tested on it then." if used else ""
        return f"Delete the dataset {self._shown.name} for good?{more}"

    def _delete_it(self) -> None:
        dataset = self._shown
        for run in runs.listing(self.page.workspace):
            if run.alive and _dataset_of(run) == dataset.id:
                raise DigitsError(f"The run {run.name} trains on {dataset.name}. Stop it, then delete the dataset.")
        dataset.delete()
        self.page.say(f"The dataset {dataset.name} has been deleted.")
        self._look()


def _dataset_of(run: runs.Run) -> str:
    try:
        return run.spec.dataset
    except DigitsError:  # a damaged run uses none
        return ""
