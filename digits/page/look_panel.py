"""Looking inside: which run and weights, and what the model's process is busy with.

Its parts are look_image.py, one image, and look_many.py; what they show is laid out by look_view.py.
"""

import time
from collections.abc import Callable
from typing import Any

from digits import look
from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.page import look_view
from digits.page.elements import button, choice, column, escape, facts, note, progress, row, said, section
from digits.page.look_image import ImagePart
from digits.page.look_many import ManyPart
from digits.page.panel import Panel
from digits.training import runs, trained

EVERY = 0.5  # seconds between two looks at the progress
LIST_EVERY = 6  # looks at the progress for one at the weights there are
BUSY = "The network is busy: "
REST = 600.0  # seconds without a question, after which the model's process gives its memory back


class LookPanel(Panel):
    """Asks the model of `page.selected.run`. Its parts show one image, and many."""

    title = "Look inside"

    def __init__(self, page: Any) -> None:
        self.page = page
        self.inside: look.Inside | None = None
        self.dataset: Dataset | None = None
        self.kind = ""  # of the run
        self._busy = False
        self._share, self._doing, self._looks, self._asked = 0.0, "", 0, time.monotonic()
        self._run = choice("Run")
        self._weights = choice("Weights", [("the last", "")])
        self._about, self._progress, self._table = note(""), note(""), note("")
        self._describe = button("List the network's layers", page.guarded(self._ask_model))
        self._cancel = button("Break off", page.guarded(self._break_off))
        self._cancel.layout.display = "none"
        self._image = ImagePart(self)
        self._many = ManyPart(self, self._image)
        self._parts = column(
            section("One image", self._image.widget),
            section("Many images", self._many.widget),
            section("The network", row(self._describe), self._table),
        )
        self.widget = column(
            section("Which network", row(self._run, self._weights), self._about),
            row(self._progress, self._cancel),
            self._parts,
        )
        self._when(self._run, call=lambda: page.selected.set_trait("run", self._run.value))
        self._when(self._weights, call=self._forget)
        self._follow("run", call=self._select)
        self._follow("runs_version", "datasets_version", call=self._fill_runs)
        self._fill_runs()
        self._select()
        page.every(EVERY, self._poll)

    # What the parts use

    def weights(self) -> str | None:
        """Return the chosen checkpoint, None for the last."""
        return self._weights.value or None

    def opened(self) -> look.Inside:
        """Return the look into the selected run. Raises DigitsError if there is none."""
        if self.inside is None:
            raise DigitsError("No run is selected. Train a network first, then choose its run here.")
        return self.inside

    def ask(
        self,
        doing: str,
        f: Callable[[look.Inside], Any],
        then: Callable[[Any], Any],
        about: Callable[[], Any] = lambda: None,
    ) -> None:
        """Ask the model in a thread: `then` gets what `f` returned, unless something else was chosen meanwhile.

        `doing`: what is shown until then. `about`: what else than run and weights the question is about.
        """

        def chosen() -> tuple[Any, ...]:
            return self.page.selected.run, self._weights.value, about()

        inside, asked = self.opened(), chosen()
        if self._busy:
            raise DigitsError(f"{BUSY}{self._doing}. Wait for it, or break it off.")
        self._busy, self._doing, self._share = True, doing, 0.0
        self._show_progress()
        self.page.in_background(lambda: f(inside), lambda found: chosen() == asked and then(found), self._free)

    def answer_one(self, part: str) -> None:
        """Show what the network makes of the first image of a part."""
        self._image.show(part, 0)
        self._image.ask_all()

    def progress(self, share: float) -> None:
        """Keep `share`, in the thread that asks."""
        self._share = share

    # Which network

    def _fill_runs(self) -> None:
        options = [(f"{run.name} ({run.id[:15]})", run.id) for run in runs.listing(self.page.workspace)]
        self.page.selected.run = self._offer(self._run, options, self.page.selected.run)

    def _select(self) -> None:
        """Take over the selected run: its weights, its dataset, and nothing of what was found for another one."""
        chosen = self.page.selected.run
        if self.inside is not None and self.inside.folder.name == chosen:
            return
        if chosen not in [id for _, id in self._run.options]:
            self._fill_runs()
        self._refill(self._run, list(self._run.options), self.page.selected.run)
        if self.inside is not None:
            self.inside.close()
        self.inside = self.dataset = None
        self._refill(self._weights, [("the last", "")], "")
        self._parts.layout.display = "none"
        self._table.value = ""
        if not chosen:
            self._about.value = said("There is no run yet. Train a network first.")
            return
        try:
            run = runs.open(self.page.workspace, chosen)
            self.inside = look.open(run)
            self.kind = run.spec.kind
            self.dataset = Dataset.open(self.page.workspace, run.spec.dataset)
            self._about.value = self._told(run)
        except DigitsError as error:  # the run, or its dataset, is damaged or deleted
            self._about.value = said(error, "error")
            return
        self._parts.layout.display = None
        self._fill_weights()
        self._image.start()
        self._many.start()

    def _told(self, run: runs.Run) -> str:
        height, width, channels = self.dataset.shape
        lines = {
            "Network": run.spec.network["name"],
            "Kind": run.spec.kind,
            "Dataset": f"{self.dataset.name}, images of {height} × {width} × {channels}, "
            f"{len(self.dataset.classes)} classes",
        }
        if run.spec.kind != "classification":
            lines["Here"] = "Its layers. What it finds in images is shown in the panel Scenes."
        return facts(lines)

    def _fill_weights(self) -> None:
        found = [("the last", "")]
        for weights in trained.listed(self.inside.folder):
            if weights.name != trained.FINAL:
                epoch = "" if weights.epoch is None else f", epoch {weights.epoch:.3g}"
                found.append((f"step {weights.step}{epoch}", weights.name))
        value = self._weights.value if self._weights.value in [name for _, name in found] else ""
        self._refill(self._weights, found, value)

    def _forget(self) -> None:
        self._table.value = ""
        self._image.clear()
        self._many.clear()

    # What it is busy with

    def _ask_model(self) -> None:
        weights = self.weights()

        def show(about: look.Model) -> None:
            self._table.value = look_view.model(about)

        self.ask("reading the network", lambda inside: inside.model(weights), show)

    def _break_off(self) -> None:
        self.opened().cancel()

    def _free(self) -> None:
        self._busy, self._asked = False, time.monotonic()
        self._show_progress()
        if self.page.said.startswith(BUSY):
            self.page.say("")

    def _poll(self) -> None:
        if self._busy:
            self._show_progress()
        elif self.inside is not None and self.inside.pid and time.monotonic() - self._asked > REST:
            self.inside.close()
        self._looks += 1
        if self.page.opened == self.title and self._looks % LIST_EVERY == 0 and self.dataset is not None:
            self._fill_weights()

    def _show_progress(self) -> None:
        shown = ""
        if self._busy:
            doing, share = self._doing.capitalize(), self._share
            percent, bar = (f"{100 * share:.0f} %", progress(share, doing)) if share else ("", "")
            shown = f"<p>{escape(doing)} … {percent}</p>{bar}"
        self._progress.value = shown
        self._cancel.layout.display = None if self._busy else "none"
