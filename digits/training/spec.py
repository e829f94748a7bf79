"""What a run is to do: dataset, network, solver. Written once as run.json and never changed.

RunSpec(dataset="20261123-101500-digits", network={"name": "lenet"}, solver=Solver(epochs=10))
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from digits.data.augment import Augmentation
from digits.files import DigitsError
from digits.networks import NETWORKS, known
from digits.training import schedule

KINDS = ("classification", "detection", "segmentation")
OPTIMIZERS = {  # name: (title, a base rate to begin with)
    "sgd": ("Stochastic gradient descent with momentum", 0.01),
    "nesterov": ("Nesterov's accelerated gradient", 0.01),
    "adam": ("Adam", 0.001),
    "adamw": ("AdamW, Adam with weight decay", 0.001),
    "rmsprop": ("RMSprop", 0.001),
    "adagrad": ("AdaGrad", 0.01),
    "adadelta": ("AdaDelta", 1.0),
}
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
SEEDS = 2**31  # seeds are below it


@dataclass(frozen=True)
class Solver:
    """How to train. A wrong value raises DigitsError with a sentence.

    With what is here by default, the network lenet reaches 97.4 to 98.1 % on the validation set of scikit-learn's
    digits (seeds 1 to 4), in 9 to 12 s on 2 busy cores of an x86-64 CPU, 23 November 2026.

    `epochs`, `batch` (images), `optimizer` (of OPTIMIZERS), `rate` (the base learning rate), `policy` (see schedule),
    `precision` (of PRECISIONS), `augment` (options of digits.data.augment.Augmentation; {} for none), `seed`;
    `momentum` for sgd, nesterov and rmsprop; `decay`, decoupled weight decay (with 0, adamw is adam);
    `validate_every`, epochs between validations; `keep_every`, epochs between checkpoints that are kept for good, 0 for
    none (the last two always are).
    """

    epochs: int = 20
    batch: int = 32
    optimizer: str = "adam"
    rate: float = 0.002
    policy: Mapping[str, Any] = field(default_factory=lambda: {"name": "cosine"})
    precision: str = "float32"
    augment: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    momentum: float = 0.9
    decay: float = 0.0
    validate_every: int = 1
    keep_every: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("epochs", 1, 100_000),
            ("batch", 1, 65_536),
            ("seed", 0, SEEDS - 1),
            ("validate_every", 1, 100_000),
            ("keep_every", 0, 100_000),
        ):
            object.__setattr__(self, name, _whole(name, getattr(self, name), low, high))
        for name, most in (("rate", 1000.0), ("momentum", 0.9999), ("decay", 1.0)):
            object.__setattr__(self, name, _real(name, getattr(self, name), 0.0, most))
        if self.rate == 0:
            raise DigitsError("The learning rate is 0: nothing would be learnt. Give one above 0, such as 0.001.")
        _one_of("optimizer", self.optimizer, tuple(OPTIMIZERS))
        _one_of("precision", self.precision, PRECISIONS)
        object.__setattr__(self, "policy", schedule.checked(self.policy))
        Augmentation.from_dict(self.augment)

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of step `step`, from 0, of `steps`."""
        return schedule.rate(self.rate, self.policy, step, steps)


@dataclass(frozen=True)
class RunSpec:
    """What a run trains, on what, how. A wrong value raises DigitsError with a sentence.

    `dataset`: an ID. `network`: {"name": one of digits.networks.NETWORKS, its options}. `kind`: of KINDS. `name`: for
    people; the network's if empty. `start`: whose trained weights are the start: the ID of a run, LAB_09 of
    digits.networks.starts, what digits.networks.keras_file kept, or None. `freeze`: whether layers that have them are
    not trained, but for the last one.
    """

    dataset: str
    network: Mapping[str, Any] = field(default_factory=lambda: {"name": "lenet"})
    solver: Solver = field(default_factory=Solver)
    kind: str = "classification"
    name: str = ""
    start: str | None = None
    freeze: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise DigitsError("No dataset is chosen. Choose one, or build one first.")
        _one_of("kind", self.kind, KINDS)
        if not isinstance(self.network, Mapping) or not isinstance(self.network.get("name"), str):
            raise DigitsError('network must be a table with a name, such as {"name": "lenet"}.')
        fit = tuple(network.name for network in NETWORKS.values() if self.kind in network.kinds)
        _one_of(f"network of a run of kind {self.kind}", self.network["name"], fit)
        known(self.network["name"], self.network.keys() - {"name"})
        if not isinstance(self.solver, Solver):
            raise DigitsError("solver must be a Solver.")
        if not isinstance(self.name, str) or len(self.name) > 200:
            raise DigitsError("The name of a run must be a text of at most 200 characters.")
        if self.start is not None and (not isinstance(self.start, str) or not self.start):
            raise DigitsError("start must be the ID of a run, or None to start from random weights.")
        if not isinstance(self.freeze, bool) or (self.freeze and self.start is None):
            raise DigitsError("Only the layers of a start can be frozen. Choose one, or freeze nothing.")
        if not self.name.strip():
            object.__setattr__(self, "name", self.network["name"])

    def to_json(self) -> dict[str, Any]:
        """Return what run.json holds, without the ID."""
        return asdict(self) | {"network": dict(self.network)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RunSpec":
        """Read what `to_json` gave. Raises DigitsError for what is missing, unknown or wrong."""
        solver = value.get("solver", {})
        if not isinstance(solver, Mapping):
            raise DigitsError("solver must be a table of options.")
        _check_names("run", cls, value)
        if "dataset" not in value:
            raise DigitsError("The run names no dataset.")
        _check_names("solver", Solver, solver)
        return cls(**{**value, "solver": Solver(**solver)})


def _check_names(what: str, cls: type, value: Mapping[str, Any]) -> None:
    names = [one.name for one in fields(cls)]
    if unknown := [name for name in value if name not in names]:
        raise DigitsError(f"A {what} has no setting {unknown[0]!r}. It has {', '.join(names)}.")


def _one_of(what: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DigitsError(f"The {what} must be one of {', '.join(allowed)}, not {value!r}.")


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        raise DigitsError(f"{name} must be a whole number, not {value!r}.")
    if not low <= value <= high:
        raise DigitsError(f"{name} must be from {low} to {high}, not {value}.")
    return int(value)


def _real(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DigitsError(f"{name} must be a number, not {value!r}.")
    if not low <= value <= high:
        raise DigitsError(f"{name} must be from {low:g} to {high:g}, not {value:g}.")
    return float(value)
