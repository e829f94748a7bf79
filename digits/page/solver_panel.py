"""The solver: how long the next run trains, with which optimizer, rate, precision and augmentation."""

import math
from dataclasses import asdict
from typing import Any

from digits.data.augment import FLIPS, LIMITS, Augmentation
from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.page import charts
from digits.page.elements import choice, column, integer, note, real, said, section, text
from digits.page.panel import Panel
from digits.training.schedule import POLICIES, WARM_UP, rate
from digits.training.spec import OPTIMIZERS, PRECISIONS, SEEDS, Solver

_WITH_MOMENTUM = ("sgd", "nesterov", "rmsprop")
_PRECISIONS = {
    "float32": "32-bit floats",
    "mixed_bfloat16": "Mixed: bfloat16, weights in 32 bits",
    "mixed_float16": "Mixed: float16, weights in 32 bits, loss scaled",
}
_LABELS = {
    "size": "Step every (% of the training)",
    "gamma": "Gamma",
    "values": "Steps at (% of the training)",
    "power": "Power",
    "middle": "Middle (% of the training)",
    WARM_UP: "Warm-up (% of the training)",
    "shift": "Shift (share of the side)",
    "rotation": "Rotation (degrees)",
    "scale": "Scale (share of the size)",
    "noise": "Noise (grey levels)",
    "contrast": "Contrast (share)",
}
_ADAMW_DECAY = 0.004  # Keras's; without any decay AdamW is Adam
_UNKNOWN_IMAGES = 1000  # for the drawing of the rate, as long as no dataset is selected
_POINTS = 200


class SolverPanel(Panel):
    """Writes `page.selected.solver`, or `solver_error` while something in it is wrong."""

    title = "Solver"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._policy_options: dict[str, Any] = {}
        self._drawing, self._again = False, False
        self._controls: dict[str, Any] = {
            "epochs": integer("Epochs", 10, 1, 100_000),
            "batch": integer("Batch (images)", 32, 1, 65_536),
            "optimizer": choice("Optimizer", [(title, name) for name, (title, _) in OPTIMIZERS.items()], "adam"),
            "rate": real("Base learning rate", 0.001, 0, 1000),
            "momentum": real("Momentum", 0.9, 0, 0.9999),
            "decay": real("Weight decay", 0.0, 0, 1),
            "precision": choice("Precision", [(_PRECISIONS[name], name) for name in PRECISIONS]),
            "seed": integer("Seed", 1, 0, SEEDS - 1),
            "validate_every": integer("Validate every (epochs)", 1, 1, 100_000),
            "keep_every": integer("Keep weights every (epochs; 0: the last two)", 0, 0, 100_000),
        }
        self._policy = choice("Policy", [(policy.title, name) for name, policy in POLICIES.items()])
        self._warm_up = real(_LABELS[WARM_UP], 0, 0, 100)
        self._formula, self._options = note(""), column()
        self._augment = {name: real(_LABELS[name], 0, 0, most) for name, (most, _) in LIMITS.items()}
        self._flip = choice("Flip", FLIPS)
        self._wrong, self._drawn = note(""), note("")
        self._wrong.add_class("digits-live")
        of = self._controls
        self.widget = column(
            section("How long", of["epochs"], of["batch"], of["validate_every"], of["keep_every"]),
            section("Optimizer", of["optimizer"], of["rate"], of["momentum"], of["decay"]),
            section("Learning rate", self._policy, self._formula, self._options, self._warm_up, self._drawn),
            section("Precision and seed", of["precision"], of["seed"]),
            section(
                "Augmentation",
                note(
                    "<p>Each image is changed a little, at random, whenever it is trained on. 0 leaves it as it is. "
                    "The data panel shows what becomes of images.</p>"
                ),
                *self._augment.values(),
                self._flip,
            ),
            self._wrong,
        )
        self.widget.add_class("digits-sheet")
        self._fill(page.selected.solver)
        self._when(*of.values(), self._warm_up, *self._augment.values(), self._flip, call=self._changed)
        self._when(of["optimizer"], call=self._optimizer_changed)
        self._when(self._policy, call=self._policy_changed)
        self._follow("solver", call=lambda: self._fill(page.selected.solver))
        self._follow("dataset", call=self._draw)
        self._changed()

    def solver(self) -> Solver:
        """Return what the controls say. Raises DigitsError with a sentence where that is wrong."""
        numbers = {name: control.value for name, control in self._controls.items()}
        augmentation = {name: control.value for name, control in self._augment.items()} | {"flip": self._flip.value}
        augment = {} if Augmentation.from_dict(augmentation).is_none else augmentation
        policy = {"name": self._policy.value, WARM_UP: self._warm_up.value}
        policy |= {name: _read(name, control.value) for name, control in self._policy_options.items()}
        return Solver(**numbers, policy=policy, augment=augment)

    def _changed(self) -> None:
        selected = self.page.selected
        try:
            solver = self.solver()
        except DigitsError as error:
            self._wrong.value = said(f"Not usable yet: {error}", "error")
            selected.solver_error = str(error)
            return
        self._wrong.value, selected.solver_error = "", ""
        self._controls["momentum"].layout.display = None if solver.optimizer in _WITH_MOMENTUM else "none"
        selected.solver = asdict(solver)
        self._draw()

    def _optimizer_changed(self) -> None:
        optimizer = self._controls["optimizer"].value
        self._controls["rate"].value = OPTIMIZERS[optimizer][1]
        self._controls["decay"].value = _ADAMW_DECAY if optimizer == "adamw" else 0.0

    def _policy_changed(self) -> None:
        self._show_policy(POLICIES[self._policy.value].options)
        self._changed()

    def _show_policy(self, options: Any) -> None:
        """Make the controls of the chosen policy, with the values of `options`."""
        policy = POLICIES[self._policy.value]
        self._formula.value = said(_formula(policy))
        self._policy_options = {
            name: text(_LABELS[name], ", ".join(f"{value:g}" for value in options[name]))
            if name == "values"
            else real(_LABELS[name], options[name], 0, 100)
            for name in policy.options
        }
        self._when(*self._policy_options.values(), call=self._changed)
        self._options.children = list(self._policy_options.values())

    def _fill(self, value: Any) -> None:
        """Show a solver that another panel has set, such as a run's."""
        solver = Solver(**value) if value else Solver()
        if value and self._shows(solver):
            return
        with self._quietly():
            for name, control in self._controls.items():
                control.value = getattr(solver, name)
            self._policy.value = solver.policy["name"]
            self._warm_up.value = solver.policy[WARM_UP]
            self._show_policy(solver.policy)
            augmentation = Augmentation.from_dict(solver.augment)
            for name, control in self._augment.items():
                control.value = getattr(augmentation, name)
            self._flip.value = augmentation.flip
        self._changed()

    def _shows(self, solver: Solver) -> bool:
        try:
            return self.solver() == solver
        except DigitsError:
            return False

    def _draw(self) -> None:
        if self._drawing:
            self._again = True
            return
        self._drawing, self._again = True, False
        workspace, dataset, solver = self.page.workspace, self.page.selected.dataset, self.solver()

        def show(chart: str) -> None:
            self._drawn.value = chart

        def end() -> None:
            self._drawing = False
            if self._again:
                self._draw()

        self.page.in_background(lambda: _rate_chart(solver, _images(workspace, dataset)), show, end)


def _read(name: str, value: Any) -> Any:
    if name != "values":
        return value
    try:
        return [float(one) for one in value.replace(";", ",").split(",") if one.strip()]
    except ValueError as error:
        raise DigitsError(
            f"Write the steps as per cents with commas between, such as 50, 85, not {value!r}."
        ) from error


def _formula(policy: Any) -> str:
    """Return a policy's formula as a sentence."""
    if policy.formula == "base":
        return "The rate stays at its base."
    return f"Rate = {policy.formula}, where done is how much of the training is done, in %."


def _images(workspace: Any, dataset: str) -> int:
    """Return how many images there are to train on; 0 if that is not known."""
    if dataset:
        try:
            return Dataset.open(workspace, dataset).counts["train"]
        except DigitsError:  # it was deleted; the data panel says so
            pass
    return 0


def _rate_chart(solver: Solver, images: int) -> str:
    guess = "" if images else said(f"No dataset is selected; drawn for {_UNKNOWN_IMAGES} images.")
    images = images or _UNKNOWN_IMAGES
    epoch = math.ceil(images / solver.batch)
    steps = epoch * solver.epochs
    places = sorted({round(at * (steps - 1) / (_POINTS - 1)) for at in range(_POINTS)})
    rates = [rate(solver.rate, solver.policy, step, steps) for step in places]
    line = charts.Line("rate", [(step + 1) / epoch for step in places], rates)
    title = f"Learning rate over {steps:,} steps, {epoch:,} per epoch"
    return guess + charts.chart([line], title, "epoch", "rate", plain=True)
