"""Try it: one press makes the digits, trains a small network on them, and opens it in Look inside with an answer."""

from typing import Any

from digits.data.builtin import SOURCE, sklearn_digits
from digits.data.dataset import Dataset
from digits.page.elements import button, note, row, section
from digits.page.panel import Panel
from digits.training import runs
from digits.training.spec import RunSpec, Solver
from digits.workspace import Workspace

EVERY = 0.5  # seconds between two looks at the run
NETWORK = {"name": "lenet", "filters": 16, "units": 64, "dropout": 0.25}
SOLVER = Solver(epochs=6, rate=0.003)
NAME = "try it"


class TryIt(Panel):
    """The button, and what follows from it. It leads on only for as long as the learner watches the run."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._run: runs.Run | None = None
        self.start = button("Try it", page.guarded(self._press))
        told = (
            "<p>One press makes a dataset of handwritten digits, trains a small network on it for some 20 seconds, and "
            "opens it: what it answers to a digit, and what each layer makes of it.</p>"
        )
        self.widget = section("A first network", note(told), row(self.start))
        page.every(EVERY, self._poll)

    def _press(self) -> None:
        self.start.disabled = True
        workspace = self.page.workspace
        self.page.say("The digits are made, and a network begins to train.")
        self.page.in_background(lambda: begin(workspace), self._begun, self._free)

    def _free(self) -> None:
        self.start.disabled = self._run is not None

    def _begun(self, run: runs.Run) -> None:
        self._run, selected = run, self.page.selected
        selected.datasets_version += 1
        selected.dataset, selected.run = run.spec.dataset, run.id
        selected.runs_version += 1
        self.page.open("Train")
        self.page.say("A small network is being trained on handwritten digits. Look inside opens when it is done.")

    def _poll(self) -> None:
        if self._run is None or (status := self._run.state()["status"]) in runs.ALIVE:
            return
        run, self._run = self._run, None
        self._free()
        watched = self.page.opened == "Train" and self.page.selected.run == run.id
        if status != "done" or not watched:  # the panel Train says how it ended
            return
        self.page.open("Look inside")
        self.page.panel("Look inside").answer_one("test")
        self.page.say("The network is trained. Here is a digit that it has never seen, and what it makes of it.")


def begin(workspace: Workspace) -> runs.Run:
    """Start the small run on the digits of 8 × 8 pixels, which are made if there are none; return at once."""
    there = (one for one in Dataset.list(workspace) if (one.source, one.height) == (SOURCE, 8))
    dataset = next((one for one in there if one.status == "ready"), None) or sklearn_digits(workspace)
    return runs.start(workspace, RunSpec(dataset.id, NETWORK, SOLVER, name=NAME))
