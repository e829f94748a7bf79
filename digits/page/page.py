"""The page: its panels, what is selected in all of them, the clock that polls, and the line that says what happened.

It works as a page of its own (`python -m warplab digits`) and in JupyterLab:

    from digits.page.page import Page
    Page()

A page keeps nothing: datasets, runs and plans are folders (`digits.workspace`), jobs are processes of their own. A page
that was closed, opened twice, or whose kernel died shows the same runs again.
"""

import asyncio
import contextlib
import functools
import importlib
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import traitlets

from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json, write_json
from digits.networks import NETWORKS
from digits.page.elements import column, escape, note, said
from digits.training.spec import Solver
from digits.workspace import Workspace

# Where the panels are, in the order of the work.
PANELS = (
    ("Data", "digits.page.data_panel", "DataPanel"),
    ("Network", "digits.page.network_panel", "NetworkPanel"),
    ("Solver", "digits.page.solver_panel", "SolverPanel"),
    ("Train", "digits.page.train_panel", "TrainPanel"),
    ("Look inside", "digits.page.look_panel", "LookPanel"),
    ("Deploy", "digits.page.deploy_panel", "DeployPanel"),
    ("Scenes", "digits.page.scenes_panel", "ScenesPanel"),
)
STYLES = Path(__file__).parent  # its *.css hold for the page; a panel may bring one
_LOG_BYTES = 1 << 20
_JUST_SAID = 1.0  # seconds in which a sentence belongs to what opens a panel
KEPT_FILE = "page.json"  # of a workspace: what the next run is to be
_KEPT = ["dataset", "network", "start", "freeze", "solver"]


class Selected(traitlets.HasTraits):
    """What all panels share. Observe what you show: `page.selected.observe(page.guarded(f), "run")`."""

    dataset = traitlets.Unicode("", help='id of the selected dataset, "" for none')
    run = traitlets.Unicode("", help='id of the selected run, "" for none')
    datasets_version = traitlets.Int(0, help="one more whenever a dataset was added, changed status, or was deleted")
    runs_version = traitlets.Int(0, help="one more whenever a run was added, changed its status, or was deleted")
    plans_version = traitlets.Int(0, help="one more whenever a plan was added or deleted")
    # What the next run is made of: the network panel writes the first two, the solver panel the third, and the train
    # panel starts it. In the form of run.json.
    network = traitlets.Dict(help='{"name": ..., options}')
    start = traitlets.Unicode("", help='id of the run whose weights are the start, "" for none')
    freeze = traitlets.Bool(False, help="whether the layers that have the start's weights are not trained")
    solver = traitlets.Dict(help="epochs, batch, optimizer, rate, policy, precision, augment, seed; {} for the usual")
    solver_error = traitlets.Unicode("", help="what is wrong in the solver panel; no run starts while it is not empty")
    network_error = traitlets.Unicode("", help="what is wrong in the network panel, likewise")


class Page:
    """The page over one `workspace`, whose datasets, runs and plans it shows.

    `widget`: the whole page, an ipywidgets Box. As the value of a notebook's cell it shows itself.
    """

    _shown: "Page | None" = None

    def __init__(self, workspace: Workspace | None = None, panels: Any = PANELS, open_at: str = "") -> None:
        """Lay out the page of a workspace, the learner's own if None; a panel is made when it is opened first.

        `panels`: triples of title, module and class. `open_at`: the title of the one to open, if not the first.
        """
        self.workspace = workspace or Workspace()
        self.selected = Selected()
        self._said_at = 0.0
        self._take_up()
        self.selected.observe(self.guarded(lambda change: self._keep()), _KEPT)
        self._panels, self._made = {title: (module, name) for title, module, name in panels}, {}
        self._timers: list[_Timer] = []
        self._clock: Any = None
        self._status, self.said = note(""), ""
        self._status.add_class("digits-status")
        self._steps = {title: widgets.Button(description=title, layout={"width": "auto"}) for title in self._panels}
        for title, step in self._steps.items():
            step.on_click(lambda _, title=title: self.open(title))
        steps = widgets.HBox(list(self._steps.values()))
        steps.add_class("digits-steps")
        self._pulse = note("")
        self._pulse.add_class("digits-pulse")
        self._body = column()
        style = "\n".join(path.read_text() for path in sorted(STYLES.glob("*.css")))
        self.widget = column(note(f"<style>{style}</style>"), steps, self._status, self._body, self._pulse)
        self.widget.add_class("digits-page")
        self.opened = ""
        self.open(open_at or next(iter(self._panels)))
        # The browser sees by it that the kernel lives; see template/.../page.js.
        self.every(2, self._beat)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        # A cell that is run again shows a new page; the one before would go on polling unseen.
        if Page._shown not in (None, self):
            Page._shown.close()
        Page._shown = self
        display(self.widget)

    def open(self, title: str) -> None:
        """Show a panel by its title. Panels call it to lead on: `page.open("Train")`."""
        if title not in self._made:
            self._made[title] = self._make(title)
            self._made[title].widget.add_class("digits-panel")
            self._made[title].widget.add_class(f"digits-panel-{list(self._panels).index(title)}")
            self._body.children = [made.widget for made in self._made.values()]
        if self.opened != title and time.monotonic() - self._said_at > _JUST_SAID:
            self.say("")  # it was about another panel
        self.opened = title
        for name, made in self._made.items():
            made.widget.layout.display = None if name == title else "none"
        for name, step in self._steps.items():
            (step.add_class if name == title else step.remove_class)("digits-open")

    def panel(self, title: str) -> Any:
        """Return a panel that was opened, None for one that was not."""
        return self._made.get(title)

    def say(self, sentence: str, error: bool = False) -> None:
        """Show a sentence in the status line, which screen readers read out. It is escaped here."""
        self._said_at, self.said = time.monotonic(), sentence
        kind, mark = ("alert", "Error: ") if error else ("status", "")
        look = "digits-error" if error else "digits-said"
        self._status.value = f'<div role="{kind}" class="{look}">{mark}{escape(sentence)}</div>' if sentence else ""

    def guarded(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return f for use as a callback: what it raises is said in the page and written to page.log."""

        @functools.wraps(f)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return f(*arguments, **named)
            except Exception as error:
                self._failed(error)

        return call

    def every(self, seconds: float, f: Callable[[], Any]) -> None:
        """Call f again and again, in the kernel's main thread, guarded, until the page is closed.

        f must be quick, some 50 ms: while it runs, the page does not answer. Long work: `in_background`. Where no event
        loop runs (a plain Python process, a test), `tick` calls what is due.
        """
        self._timers.append(_Timer(seconds, self.guarded(f), time.monotonic() + seconds))
        with contextlib.suppress(RuntimeError):  # no event loop here
            if self._clock is None:
                self._clock = asyncio.get_running_loop().create_task(self._tick_for_ever())

    def tick(self, all: bool = True) -> None:
        """Call what `every` was given. `all`: whether also what is not due yet."""
        now = time.monotonic()
        for timer in list(self._timers):
            if all or timer.due <= now:
                timer.call()
                # From now on, not from when it was due: after a pause it is called once, not once for each beat missed.
                timer.due = time.monotonic() + timer.seconds

    def in_background(
        self, f: Callable[[], Any], then: Callable[[Any], Any] | None = None, finally_: Callable[[], Any] | None = None
    ) -> None:
        """Call f in a thread, so that the page goes on answering; f must not touch widgets.

        `then`: called in the main thread with what f returned, guarded, but not if f failed; that is said. `finally_`:
        called in the main thread in any case, last, guarded: to enable a button again.
        """

        def end(value: Any, error: Exception | None) -> None:
            if error is not None:
                self._failed(error)
            elif then is not None:
                self.guarded(then)(value)
            if finally_ is not None:
                self.guarded(finally_)()

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no event loop that could call back: a plain Python process, a test
            end(*_outcome(f))
            return
        threading.Thread(target=lambda: loop.call_soon_threadsafe(end, *_outcome(f)), daemon=True).start()

    def close(self) -> None:
        """End the polling and close the widgets, before a second page is shown in the same notebook."""
        self._timers.clear()
        if self._clock is not None:
            self._clock.cancel()
        self.widget.close()

    def _take_up(self) -> None:
        """Select what a learner comes back to: what was chosen last, else the newest dataset; and the newest run."""
        kept: dict[str, Any] = {}
        with contextlib.suppress(DigitsError):
            kept = read_json(Path(self.workspace.root) / KEPT_FILE)
        solver, network, start = (kept.get(name) for name in ("solver", "network", "start"))
        # The file may be a stranger's: what is no solver, or no network's name, is left out.
        if isinstance(solver, dict):
            with contextlib.suppress(DigitsError, TypeError):
                Solver(**solver)
                self.selected.solver = solver
        if isinstance(network, dict) and str(network.get("name")) in NETWORKS and isinstance(start, str):
            self.selected.network, self.selected.start = network, start
            self.selected.freeze = kept.get("freeze") is True
        with contextlib.suppress(DigitsError):
            ready = [dataset.id for dataset in Dataset.list(self.workspace) if dataset.status == "ready"]
            chosen = kept.get("dataset")
            self.selected.dataset = str(chosen) if chosen in ready else next(iter(ready), "")
            self.selected.run = next(iter(self.workspace.ids("runs")), "")

    def _keep(self) -> None:
        """Write down what the next run is to be, for a page that is opened later."""
        write_json(Path(self.workspace.root) / KEPT_FILE, {name: getattr(self.selected, name) for name in _KEPT})

    def _make(self, title: str) -> Any:
        module, name = self._panels[title]
        try:
            return getattr(importlib.import_module(module), name)(self)
        except Exception as error:  # one broken panel leaves the others as they are
            self._failed(error)
            return _Broken(f"The panel {title} could not be opened: {_sentence(error)}")

    def _failed(self, error: BaseException) -> None:
        self.say(_sentence(error), error=True)
        if isinstance(error, DigitsError):  # the user's to mend
            return
        with contextlib.suppress(OSError):
            log = Path(self.workspace.root) / "page.log"
            if log.exists() and log.stat().st_size > _LOG_BYTES:
                log.replace(log.with_suffix(".log.1"))
            with log.open("a") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{''.join(traceback.format_exception(error))}\n")

    def _beat(self) -> None:
        self._pulse.value = f"<span data-beat='{time.time():.0f}'></span>"

    async def _tick_for_ever(self) -> None:
        while self._timers:
            await asyncio.sleep(0.1)
            self.tick(all=False)


@dataclass
class _Timer:
    seconds: float
    call: Callable[[], Any]
    due: float


class _Broken:
    def __init__(self, sentence: str) -> None:
        self.widget = note(said(sentence, "error"))


def _outcome(f: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return f(), None
    except Exception as error:
        return None, error


def _sentence(error: BaseException) -> str:
    """Return what went wrong in words: the error's own where it was written for people."""
    said = str(error).strip()
    if isinstance(error, (ValueError, RuntimeError, LookupError, OSError)) and not isinstance(error, KeyError) and said:
        return said
    return f"{type(error).__name__}: {said or 'no more is known'}. The details are in page.log in the workspace."
