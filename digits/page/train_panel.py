"""Training: the next run is started, runs are watched, paused, stopped, resumed, compared and deleted.

The panel reads the runs' files and keeps nothing: after a reload, or in a second browser, it shows the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.networks import NETWORKS
from digits.page import chance, charts, run_figures
from digits.page.elements import button, check, choice, column, escape, facts, note, row, said, section, table, text
from digits.page.panel import Deletion, Panel
from digits.training import curves, load, runs
from digits.training.spec import RunSpec, Solver

EVERY = 1.0  # seconds between two looks at the selected run
LIST_EVERY = 3  # looks at the selected run for one at all runs
_LISTED = 50  # runs in the table; the list to choose from has all
_LOG_LINES = 40


class TrainPanel(Panel):
    """Writes `page.selected.run`; starts what `dataset`, `network`, `start` and `solver` of `page.selected` say."""

    title = "Train"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._drawing = self._listing = False
        self._looks, self._drawn, self._listed = 0, None, None
        self._names: dict[str, str] = {}  # of datasets
        self._last = ("", "")  # the run that was looked at last, and its status
        self._colours: dict[str, int] = {}  # of the runs in the chart: each keeps its look while it is shown
        self._name = text("Name of the run", placeholder="the network's name")
        self._dataset = choice("Dataset")
        self._recipe = note("")
        self._start = button("Start training", page.guarded(self._start_run), kind="primary")
        self._run = choice("Run")
        self._run.layout.max_width, self._run.style.description_width = "40rem", "6rem"
        self._with = widgets.SelectMultiple(description="Compare with", rows=4, style=self._run.style, tooltip="")
        self._with.layout.width, self._with.layout.max_width = self._run.layout.width, self._run.layout.max_width
        self._state, self._curves, self._load, self._log, self._table = (note("") for _ in range(5))
        self._state.add_class("digits-state")
        self._logarithmic = check("Logarithmic loss")
        self._show_log = check("Show the log")
        self._pause = button("Pause", page.guarded(lambda: self._ask("pause")))
        self._stop = button("Stop", page.guarded(lambda: self._ask("stop")), "Ends the training; the network is kept")
        self._resume = button("Resume", page.guarded(lambda: self._ask("resume")), kind="primary")
        self._again = button("Take over its settings", page.guarded(self._take_over))
        self._onward = button("Train on from its weights", page.guarded(self._train_on))
        self._deletion = Deletion(page, self._what_is_deleted, self._delete_run)
        self._delete = self._deletion.button
        self._acts = row(self._pause, self._stop, self._resume, self._again, self._onward, self._delete)
        beside = widgets.Box(
            [
                section(
                    "Run",
                    self._run,
                    self._state,
                    self._acts,
                    self._deletion.question,
                    self._curves,
                    row(self._logarithmic, self._show_log),
                    self._with,
                    self._load,
                    self._log,
                ),
                section("New run", self._dataset, self._name, self._recipe, row(self._start)),
            ]
        )
        beside.add_class("digits-beside")
        self.widget = column(beside, section("All runs", self._table))
        self._when(self._dataset, call=lambda: page.selected.set_trait("dataset", self._dataset.value))
        self._when(self._run, call=lambda: page.selected.set_trait("run", self._run.value))
        self._when(self._with, self._logarithmic, self._show_log, call=self._look)
        recipe = ("dataset", "network", "network_error", "start", "freeze", "solver", "solver_error")
        self._follow(*recipe, call=self._show_recipe)
        self._follow("datasets_version", "dataset", call=self._fill_datasets)
        self._follow("runs_version", call=self._list_runs)
        self._follow("run", call=self._select_run)
        self._fill_datasets()
        self._fill_runs(self._listing_now())
        page.every(EVERY, self._poll)

    # The next run

    def spec(self) -> RunSpec:
        """Return what would be started. Raises DigitsError with a sentence where something is missing or wrong."""
        selected = self.page.selected
        if not selected.dataset:
            raise DigitsError("No dataset is chosen. Make one in the panel Data, then choose it here.")
        if selected.network_error:
            raise DigitsError(f"The network is not usable yet: {selected.network_error}")
        if selected.solver_error:
            raise DigitsError(f"The solver is not usable yet: {selected.solver_error}")
        kind = Dataset.open(self.page.workspace, selected.dataset).kind
        network = selected.network or next({"name": one.name} for one in NETWORKS.values() if kind in one.kinds)
        solver = Solver(**selected.solver)
        start, frozen = selected.start or None, selected.freeze and bool(selected.start)
        return RunSpec(selected.dataset, network, solver, kind, self._name.value.strip(), start, frozen)

    def _show_recipe(self) -> None:
        try:
            spec = self.spec()
            dataset = Dataset.open(self.page.workspace, spec.dataset)
        except DigitsError as error:
            self._recipe.value, self._start.disabled = said(error), True
            return
        solver = spec.solver
        network = NETWORKS[spec.network["name"]].title
        frozen = ", which are frozen" if spec.freeze else ""
        lines = {
            "Images": f"{dataset.counts['train']} to train on, {dataset.counts['validation']} for validation, "
            f"{dataset.height} × {dataset.width} × {dataset.channels}, {len(dataset.classes)} classes",
            "Network": network + (f", from the weights of {spec.start}{frozen}" if spec.start else ""),
            "Solver": f"{solver.epochs} epochs, {solver.batch} images per step, {solver.optimizer}, "
            f"rate {solver.rate:g}, {solver.policy['name']}, {solver.precision}, {_augmentation(solver)}",
        }
        self._recipe.value, self._start.disabled = facts(lines), False

    def _start_run(self) -> None:
        spec, workspace = self.spec(), self.page.workspace
        self._start.disabled = True
        self.page.in_background(lambda: runs.start(workspace, spec), self._started, self._show_recipe)

    def _started(self, run: runs.Run) -> None:
        self.page.say(f"The run {run.name} has been started. It goes on when this page is closed.")
        self._name.value, self._with.value = "", ()  # others may be of another dataset
        self._fill_runs(self._listing_now())
        self.page.selected.run = run.id
        self.page.selected.runs_version += 1

    def _fill_datasets(self) -> None:
        ready = [one for one in Dataset.list(self.page.workspace) if one.status == "ready"]
        selected, self._names = self.page.selected, {one.id: one.name for one in ready}
        options = [(f"{one.name} ({one.kind}, {one.id[:15]})", one.id) for one in ready]
        selected.dataset = self._offer(self._dataset, options, selected.dataset)
        self._show_recipe()

    # The runs

    def _poll(self) -> None:
        if self.page.opened != self.title:
            return
        self._look()
        self._looks += 1
        if self._looks % LIST_EVERY == 0:
            self._list_runs()

    def _list_runs(self) -> None:
        if self._listing:
            return
        self._listing = True
        self.page.in_background(self._listing_now, self._fill_runs, lambda: setattr(self, "_listing", False))

    def _listing_now(self) -> list[tuple[runs.Run, dict[str, Any]]]:
        return [(run, run.state()) for run in runs.listing(self.page.workspace)]

    def _fill_runs(self, listed: Sequence[tuple[runs.Run, Mapping[str, Any]]]) -> None:
        seen = [(run.id, run.name, state["status"]) for run, state in listed]
        selected = self.page.selected
        chosen = selected.run if selected.run in {id for id, _, _ in seen} else seen[0][0] if seen else ""
        if seen != self._listed:
            news = self._listed is not None
            self._listed = seen
            options = [(f"{name} – {_in_words(status)} ({id[:15]})", id) for id, name, status in seen]
            self._offer(self._run, options, chosen)
            self._offer_others()
            if news:
                selected.runs_version += 1
        self._table.value = _runs_table(listed[:_LISTED], len(listed), self._names)
        if selected.run != chosen:
            selected.run = chosen
        else:
            self._look()

    def _offer_others(self) -> None:
        """Offer all runs but the shown one for comparison."""
        others = [(label, id) for label, id in self._run.options if id and id != self._run.value]
        self._refill(self._with, others, tuple(id for id in self._with.value if id in {id for _, id in others}))
        self._with.layout.display = None if others else "none"

    def _select_run(self) -> None:
        selected = self.page.selected.run
        if selected and selected not in [id for _, id in self._run.options]:
            self._fill_runs(self._listing_now())
        else:
            self._refill(self._run, list(self._run.options), selected or self._run.options[0][1])
        self._offer_others()
        self._deletion.withdraw()
        self._look()

    def _selected(self) -> runs.Run:
        if not self.page.selected.run:
            raise DigitsError("No run is selected. Start one first.")
        return runs.open(self.page.workspace, self.page.selected.run)

    # The selected run

    def _look(self) -> None:
        """Show the selected run as it is now."""
        if not self.page.selected.run:
            self._state.value = said("There is no run yet.")
            self._acts.layout.display = "none"
            self._curves.value = self._load.value = self._log.value = ""
            return
        self._acts.layout.display = None
        try:
            run = self._selected()
        except DigitsError as error:  # deleted in another page
            self._state.value = said(error, "error")
            self._list_runs()
            return
        state = run.state()
        status = state["status"]
        self._state.value = run_figures.told(run.name, state)
        for control, of in (
            (self._pause, runs.ALIVE),
            (self._stop, (*runs.ALIVE, "paused", "killed")),
            (self._resume, ("paused", "stopped", "killed", "failed")),
        ):
            control.disabled = status not in of
        self._delete.disabled = status in runs.ALIVE
        if (run.id, run.name, status) not in (self._listed or ()):
            self._list_runs()
        self._announce(run, status)
        self._again.disabled = self._onward.disabled = status == "broken"
        self._log.value = _log(run) if self._show_log.value else ""
        self._draw(run)

    def _announce(self, run: runs.Run, status: str) -> None:
        """Say that the shown run has ended, in place of what was said when it was started or asked to end."""
        before, self._last = self._last, (run.id, status)
        if before[0] == run.id and before[1] != status and status not in runs.ALIVE:
            self.page.say(f"The run {run.name} is {_in_words(status)}.", error=status in ("failed", "killed"))

    def _draw(self, run: runs.Run) -> None:
        """Draw the curves if there are new points, in a thread: drawing takes longer than a page may pause."""
        shown = [run, *(runs.Run(self.page.workspace.runs / id) for id in self._with.value if id != run.id)]
        shown = shown[: charts.LOOKS]
        looks = self._looks_of([one.id for one in shown])
        logarithmic = self._logarithmic.value
        wanted = [(one.id, *map(_version, (one.folder / curves.FILE, one.folder / load.FILE))) for one in shown]
        if self._drawing or self._drawn == (wanted, logarithmic):
            return
        self._drawing = True

        def drawn() -> tuple[str, str]:
            charted = run_figures.curves(shown, logarithmic, looks)
            return charted + chance.hint(self.page.workspace, run), run_figures.load(run)

        def show(pictures: tuple[str, str]) -> None:
            self._drawn = (wanted, logarithmic)
            self._curves.value, self._load.value = pictures

        self.page.in_background(drawn, show, lambda: setattr(self, "_drawing", False))

    def _looks_of(self, ids: Sequence[str]) -> list[int]:
        """Return the runs' looks: those they have, or the first that are free."""
        kept = {id: look for id, look in self._colours.items() if id in ids}
        free = [look for look in range(charts.LOOKS) if look not in kept.values()]
        self._colours = kept | dict(zip((id for id in ids if id not in kept), free, strict=False))
        return [self._colours[id] for id in ids]

    def _ask(self, wanted: str) -> None:
        run = self._selected()
        getattr(run, wanted)()
        said = {
            "pause": "will pause after the step it is in. Its state is kept.",
            "stop": "will stop after the step it is in. Its network is kept.",
            "resume": "goes on from its last checkpoint.",
        }
        self.page.say(f"The run {run.name} {said[wanted]}")
        self._look()

    def _take_over(self) -> None:
        spec, selected = self._selected().spec, self.page.selected
        selected.network, selected.start, selected.freeze = dict(spec.network), spec.start or "", spec.freeze
        selected.solver = spec.to_json()["solver"]
        if spec.dataset in self.page.workspace.ids("datasets"):
            selected.dataset = spec.dataset
        self.page.say(f"The next run has the settings of {spec.name}. Change what you like in Network and Solver.")

    def _train_on(self) -> None:
        run, selected = self._selected(), self.page.selected
        selected.network, selected.start, selected.freeze = dict(run.spec.network), run.id, False
        self.page.say(f"The next run starts from the weights of {run.name}.")

    def _what_is_deleted(self) -> str:
        return f"Delete the run {self._selected().name} with its weights and curves for good?"

    def _delete_run(self) -> None:
        run = self._selected()
        name = run.name  # as long as there is a file that says it
        run.delete()
        self.page.say(f"The run {name} has been deleted.")
        self.page.selected.run = ""
        self._fill_runs(self._listing_now())


def _in_words(status: str) -> str:
    return run_figures.STATUS.get(status, status).lower()


def _augmentation(solver: Solver) -> str:
    changes = [f"{name} {value}" for name, value in solver.augment.items() if value not in (0, "none")]
    return f"augmented by {', '.join(changes)}" if changes else "no augmentation"


def _version(path: Any) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_size, about.st_mtime_ns


def _log(run: runs.Run) -> str:
    lines = run.log().rstrip().split("\n")
    said = "\n".join(lines[-_LOG_LINES:]) or "Nothing yet."
    return f'<h4>Log, last {_LOG_LINES} lines</h4><pre class="digits-scroll" tabindex="0">{escape(said)}</pre>'


def _runs_table(listed: Sequence[tuple[runs.Run, Mapping[str, Any]]], count: int, names: Mapping[str, str]) -> str:
    if not listed:
        return said("There is no run yet.")
    lines = []
    for run, state in listed:
        try:
            spec = run.spec
            dataset, network = names.get(spec.dataset, spec.dataset), spec.network["name"]
            solver = f"{spec.solver.optimizer}, rate {spec.solver.rate:g}, batch {spec.solver.batch}"
        except DigitsError:
            dataset = network = solver = "?"
        figure = run_figures.main_figure(state["best"] or {})
        epoch = f"{state['epoch']:.1f} of {state['epochs']}" if state["epochs"] else ""
        taken = run_figures.duration(state["seconds"])
        lines.append([run.name, _in_words(state["status"]), network, dataset, solver, epoch, figure, taken])
    more = f", the newest {len(listed)} of {count}" if count > len(listed) else ""
    head = ["Run", "Status", "Network", "Dataset", "Solver", "Epoch", "Best validation", "Time"]
    return table(head, lines, f"Runs{more}", numbers=False)
