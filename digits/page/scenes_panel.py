"""Scenes: detection and segmentation of digits, from new scenes to a trained network and what it finds."""

import time
from typing import Any

import numpy as np

from digits import look
from digits.data import images
from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.look import scene_answers
from digits.look.scene_answers import Answers
from digits.page import elements as ui
from digits.page import run_figures, scene_view
from digits.page.new_scenes import NewScenes
from digits.page.panel import Panel
from digits.tasks.detection import SURE
from digits.training import runs, trained
from digits.training.spec import RunSpec, Solver

NETWORK = {"detection": "detectnet", "segmentation": "fcn"}
BATCH, RATE, POLICY = 16, 0.002, {"name": "cosine"}
SHOWN = 8  # scenes at a time
REST = 300.0  # seconds without a question, after which the model's process gives its memory back
WAYS = (
    ("Join neighbouring cells' boxes (as DetectNet)", "group"),
    ("Keep the best of overlapping boxes (NMS)", "suppress"),
    ("Keep every cell's box", "cells"),
)
WORST, IN_ORDER = "Worst first", "In their order"


class ScenesPanel(Panel):
    """New scenes; a run on scenes; what a run's network finds in them."""

    title = "Scenes"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._asking = False
        self._inside: look.Inside | None = None
        self._asked, self._share = time.monotonic(), 0.0
        self._answers: Answers | None = None
        self._found: dict[str, list[np.ndarray]] = {}  # by the way of making boxes
        self._first = 0  # of the scenes that are shown
        self._new = NewScenes(page, self._made)

        self._dataset = ui.choice("Dataset of scenes")
        self._epochs = ui.integer("Epochs on scenes", 12, 1, 10_000)
        self._start = ui.button("Train on these scenes", page.guarded(self._start_run), kind="primary")
        self._state = ui.note("")
        self._pause = ui.button("Pause training", page.guarded(lambda: self._run_asked("pause")))
        self._stop = ui.button("Stop training", page.guarded(lambda: self._run_asked("stop")))
        self._resume = ui.button("Resume training", page.guarded(lambda: self._run_asked("resume")))
        self._watch = ui.button("Watch its curves", page.guarded(lambda: page.open("Train")))

        self._run = ui.choice("Run on scenes")
        self._part = ui.choice("Part", [("Validation", "validation"), ("Test", "test"), ("Training", "train")])
        self._way = ui.choice("From cells to boxes", WAYS)
        for long in (self._dataset, self._run, self._way):
            long.layout.max_width = "40rem"
        self._least = ui.real("Least score shown", SURE, 0.05, 0.99)
        self._class = ui.choice("Precision and recall of", [("–", 0)])
        self._order = ui.choice("Scenes", [WORST, IN_ORDER])
        self._find = ui.button("Find the digits", page.guarded(self._ask), kind="primary")
        self._upload = ui.upload("Try a picture of your own", "image/*")
        self._invert = ui.check("Invert my picture (dark on light)")
        self._progress, self._figures, self._chart, self._gallery, self._own = (ui.note("") for _ in range(5))
        self._back = ui.button("Back", page.guarded(lambda: self._turn(-SHOWN)))
        self._on = ui.button("More", page.guarded(lambda: self._turn(SHOWN)))
        self._pages = ui.row(self._order, self._back, self._on)
        self._coverage = ui.check("Show coverage instead of boxes")
        self._boxes_only = ui.column(self._way, self._least, self._coverage)
        measured = ui.column(self._figures, ui.column(self._class, self._chart))
        measured.add_class("digits-sheet")
        self.widget = ui.column(
            ui.note(
                "<p>Several digits in one picture. <strong>Detection</strong> puts a box around each digit and names "
                "it; <strong>segmentation</strong> names the digit of each pixel.</p>"
            ),
            self._new.widget,
            ui.section(
                "Train on scenes",
                self._dataset,
                self._epochs,
                ui.note(
                    ui.said(
                        f"Adam, {BATCH} scenes per step, rate {RATE:g} that falls as a cosine. Other networks and "
                        "solvers: choose them in their panels and start from Train."
                    )
                ),
                ui.row(self._start),
                self._state,
                ui.row(self._pause, self._stop, self._resume, self._watch),
            ),
            ui.section(
                "What the network finds",
                self._run,
                self._part,
                self._boxes_only,
                ui.row(self._find),
                ui.row(self._upload, self._invert),
                self._progress,
                self._own,
                measured,
                self._pages,
                self._gallery,
            ),
        )
        for control, f in (
            (self._dataset, lambda: page.selected.set_trait("dataset", self._dataset.value)),
            (self._run, self._run_chosen),
            (self._part, self._forget),
            (self._way, self._show),
            (self._least, self._show),
            (self._class, self._show_chart),
            (self._order, self._reorder),
            (self._coverage, self._show_scenes),
            (self._upload, self._try_own),
        ):
            self._when(control, call=f)
        self._follow("dataset", "datasets_version", call=self._fill_datasets)
        self._follow("run", "runs_version", call=self._fill_runs)
        self._fill_datasets()
        self._fill_runs()
        page.every(1.0, self._poll)

    # Scenes and runs

    def _made(self, dataset: Dataset) -> None:
        self.page.selected.datasets_version += 1
        self.page.selected.dataset = dataset.id

    def _fill_datasets(self) -> None:
        ready = [one for one in Dataset.list(self.page.workspace) if one.kind in NETWORK and one.status == "ready"]
        options = [(f"{one.name} ({one.kind}, {one.id[:15]})", one.id) for one in ready]
        self._offer(self._dataset, options, self.page.selected.dataset, self._dataset.value)
        self._start.disabled = not ready

    def _fill_runs(self) -> None:
        options = []
        for run in runs.listing(self.page.workspace):
            try:
                if run.spec.kind in NETWORK:
                    options.append((f"{run.name} ({run.spec.kind}, {run.id[:15]})", run.id))
            except DigitsError:  # damaged; the panel Train lists it
                continue
        before = self._run.value
        kept = self._offer(self._run, options, self.page.selected.run, before)
        self._find.disabled = self._upload.disabled = self._asking or not kept
        if kept != before or self._inside is None:
            self._take_run()
        self._show_state()

    def _run_chosen(self) -> None:
        self._take_run()
        self.page.selected.run = self._run.value or ""

    def _take_run(self) -> None:
        """Forget what another network found, and end its process."""
        if self._inside is not None:
            self._inside.close()
        self._inside = look.open(self._opened()) if self._run.value else None
        self._forget()

    def _opened(self) -> runs.Run:
        if not self._run.value:
            raise DigitsError("There is no run on scenes yet. Make scenes and train on them first.")
        return runs.open(self.page.workspace, self._run.value)

    def _start_run(self) -> None:
        if not self._dataset.value:
            raise DigitsError("There are no scenes yet. Make some first.")
        workspace = self.page.workspace
        dataset = Dataset.open(workspace, self._dataset.value)
        solver = Solver(epochs=self._epochs.value, batch=BATCH, rate=RATE, policy=POLICY)
        network = NETWORK[dataset.kind]
        spec = RunSpec(dataset.id, {"name": network}, solver, dataset.kind, f"{network} on {dataset.name}"[:200])
        self._start.disabled = True
        self.page.in_background(lambda: runs.start(workspace, spec), self._started, self._fill_datasets)

    def _started(self, run: runs.Run) -> None:
        self.page.say(f"The run {run.name} has been started. It goes on when this page is closed.")
        self.page.selected.run = run.id
        self.page.selected.runs_version += 1

    def _run_asked(self, what: str) -> None:
        run = self._opened()
        getattr(run, what)()
        self.page.say(f"Asked the run {run.name} to {what}.")
        self._show_state()

    def _poll(self) -> None:
        if self._asking:
            self._show_progress()
        elif self._inside is not None and self._inside.pid and time.monotonic() - self._asked > REST:
            self._inside.close()
        if self.page.opened == self.title:
            self._show_state()

    def _show_state(self) -> None:
        state = runs.Run(self.page.workspace.runs / self._run.value).state() if self._run.value else None
        status = state["status"] if state else ""
        self._state.value = run_figures.told(self._run.label or "", state) if state else ""
        self._pause.disabled = status not in runs.ALIVE
        self._stop.disabled = status not in (*runs.ALIVE, "paused", "killed")
        self._resume.disabled = status not in ("paused", "stopped", "killed", "failed")
        self._watch.disabled = not status

    # What the network finds

    def _forget(self) -> None:
        self._answers, self._found, self._first = None, {}, 0
        for shown in (self._figures, self._chart, self._gallery, self._own):
            shown.value = ""
        for control in (self._class, self._pages):
            control.layout.display = "none"
        kind = self._opened().spec.kind if self._run.value else "detection"
        self._boxes_only.layout.display = None if kind == "detection" else "none"

    def _model(self) -> tuple[look.Inside, Dataset]:
        run = self._opened()
        if self._asking:
            raise DigitsError("The network is busy with the last question. Wait for its answer.")
        if not trained.listed(run.folder):
            raise DigitsError(f"The run {run.name} has no weights yet. Wait for its first checkpoint.")
        return self._inside, Dataset.open(self.page.workspace, run.spec.dataset)

    def _ask(self) -> None:
        inside, dataset = self._model()
        part, way = self._part.value, self._way.value
        chosen = (self._run.value, part)

        def ask() -> tuple[Answers, dict[str, list[np.ndarray]]]:
            answers = scene_answers.ask(inside, dataset, part, progress=self._progressed)
            return answers, {way: answers.boxes(way)} if answers.kind == "detection" else {}

        def show(found: tuple[Answers, dict[str, list[np.ndarray]]]) -> None:
            if chosen == (self._run.value, self._part.value):
                self._forget()
                self._answers, self._found = found
                self._refill(self._class, [(name, at) for at, name in enumerate(dataset.classes)], self._class.value)
                self._show()

        self._begin(ask, show)

    def _try_own(self) -> None:
        if not self._upload.value:
            return
        inside, dataset = self._model()
        content, name = bytes(self._upload.value[0]["content"]), self._upload.value[0]["name"]
        way, least, invert = self._way.value, self._least.value, self._invert.value
        self._refill(self._upload, None, ())

        def ask() -> str:
            pixels = images.one(content, dataset)
            answers = scene_answers.of_images(inside, dataset, (255 - pixels if invert else pixels)[None])
            found = scene_answers.sure(answers.boxes(way), least) if answers.kind == "detection" else None
            return f"<h4>{ui.escape(name)}</h4>{scene_view.drawn(answers, [0], found)}"

        self._begin(ask, lambda drawn: setattr(self._own, "value", drawn))

    def _begin(self, ask: Any, show: Any) -> None:
        self._asking, self._share = True, 0.0
        self._find.disabled = self._upload.disabled = True
        self._show_progress()
        self.page.in_background(ask, show, self._free)

    def _progressed(self, share: float) -> None:
        """Keep `share`, in the thread that asks."""
        self._share = share

    def _free(self) -> None:
        self._asking, self._asked = False, time.monotonic()
        self._find.disabled = self._upload.disabled = not self._run.value
        self._progress.value = ""

    def _show_progress(self) -> None:
        bar = ui.progress(self._share, "Scenes looked at") if self._share else ""
        self._progress.value = f"<p>The network looks at the scenes …</p>{bar}"

    def _show(self) -> None:
        """Show the figures and the scenes as the controls say, drawn in a thread."""
        answers = self._answers
        if answers is None:
            return
        way, least = self._way.value, self._least.value
        found = dict(self._found)

        def work() -> tuple[dict[str, list[np.ndarray]], str, np.ndarray]:
            if answers.kind == "segmentation":
                figures = scene_view.segmentation(scene_answers.segmentation_figures(answers), len(answers))
                return found, figures, scene_answers.mistakes(answers)
            if way not in found:
                found[way] = answers.boxes(way)
            figures = scene_view.detection(
                scene_answers.detection_figures(answers, found[way], least), len(answers), least
            )
            return found, figures, scene_answers.mistakes(answers, scene_answers.sure(found[way], least))

        def show(made: tuple[dict[str, list[np.ndarray]], str, np.ndarray]) -> None:
            if answers is not self._answers or (way, least) != (self._way.value, self._least.value):
                return
            self._found, self._figures.value, wrong = made
            self._worst = np.argsort(-wrong, kind="stable")
            self._first = 0
            self._pages.layout.display = None
            self._class.layout.display = None if answers.kind == "detection" else "none"
            self._show_chart()
            self._show_scenes()

        self.page.in_background(work, show)

    def _show_chart(self) -> None:
        answers, way, which = self._answers, self._way.value, self._class.value
        if answers is None or answers.kind != "detection" or way not in self._found:
            return
        found = self._found[way]

        def show(chart: str) -> None:
            if answers is self._answers and which == self._class.value:
                self._chart.value = chart

        self.page.in_background(lambda: scene_view.precision_recall(answers, found, which), show)

    def _reorder(self) -> None:
        self._first = 0
        self._show_scenes()

    def _turn(self, by: int) -> None:
        self._first += by
        self._show_scenes()

    def _show_scenes(self) -> None:
        answers = self._answers
        if answers is None:
            return
        order = self._worst if self._order.value == WORST else np.arange(len(answers))
        which = order[self._first : self._first + SHOWN].tolist()
        self._back.disabled, self._on.disabled = self._first == 0, self._first + SHOWN >= len(answers)
        shown = None
        if answers.kind == "detection":
            shown = scene_answers.sure(self._found[self._way.value], self._least.value)
        covered = answers.kind == "detection" and self._coverage.value

        def draw() -> str:
            return scene_view.coverage(answers, which) if covered else scene_view.drawn(answers, which, shown)

        def show(drawn: str) -> None:
            if answers is self._answers:
                self._gallery.value = drawn

        self.page.in_background(draw, show)
