"""Learning-rate policies: those of Caffe as NVIDIA DIGITS offered them, cosine decay, and a warm-up before any of them.

    rate(base=0.01, policy={"name": "step", "size": 33, "gamma": 0.1}, step=500, steps=1000)

A policy sees only how much of the training is done, in per cent, so that its curve keeps its form when the number of
epochs changes. DIGITS drew and trained them so, with these defaults (digits/model/forms.py of its repository).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from digits.files import DigitsError


@dataclass(frozen=True)
class Policy:
    """`title` for the page; `options` with their defaults; `factor(per cent done, options)` times the base rate."""

    title: str
    formula: str
    options: Mapping[str, Any]
    factor: Callable[[float, Mapping[str, Any]], float]


def _multistep(done: float, o: Mapping[str, Any]) -> float:
    return o["gamma"] ** sum(done >= value for value in o["values"])


POLICIES: dict[str, Policy] = {
    "fixed": Policy("Fixed", "base", {}, lambda done, o: 1.0),
    "step": Policy(
        "Step down",
        "base × gamma^floor(done / size)",
        {"size": 33.0, "gamma": 0.1},
        lambda done, o: o["gamma"] ** math.floor(done / o["size"]),
    ),
    "multistep": Policy(
        "Step down at given points", "base × gamma^(points passed)", {"values": [50.0, 85.0], "gamma": 0.5}, _multistep
    ),
    "exponential": Policy(
        "Exponential decay", "base × gamma^done", {"gamma": 0.95}, lambda done, o: o["gamma"] ** done
    ),
    "inverse": Policy(
        "Inverse decay",
        "base × (1 + gamma × done)^−power",
        {"gamma": 0.1, "power": 0.5},
        lambda done, o: (1 + o["gamma"] * done) ** -o["power"],
    ),
    "polynomial": Policy(
        "Polynomial decay",
        "base × (1 − done / 100)^power",
        {"power": 3.0},
        lambda done, o: max(0.0, 1 - done / 100) ** o["power"],
    ),
    "sigmoid": Policy(
        "Sigmoid decay",
        "base / (1 + exp(gamma × (done − middle)))",
        {"middle": 50.0, "gamma": 0.1},
        lambda done, o: 1 / (1 + math.exp(min(700.0, o["gamma"] * (done - o["middle"])))),
    ),
    "cosine": Policy(
        "Cosine decay",
        "base × (1 + cos(π × done / 100)) / 2",
        {},
        lambda done, o: (1 + math.cos(math.pi * min(done, 100.0) / 100)) / 2,
    ),
}
WARM_UP = "warm_up"  # an option of every policy: per cent of the training in which the rate rises from nearly 0


def rate(base: float, policy: Mapping[str, Any], step: int, steps: int) -> float:
    """Return the learning rate of training step `step`, counted from 0, of `steps`.

    `policy`: {"name": one of POLICIES, its options, "warm_up": per cent}, as `checked` returns it; what is left out has
    its default. During a warm-up the rate rises linearly; the policy runs over what is left of the training.
    """
    options = {**POLICIES[policy["name"]].options, WARM_UP: 0.0, **policy}
    first = options[WARM_UP] / 100 * steps
    if step < first:
        return base * (step + 1) / (math.floor(first) + 1)
    done = 100 * (step - first) / max(1.0, steps - first)
    return base * POLICIES[options["name"]].factor(done, options)


def checked(policy: object) -> dict[str, Any]:
    """Return `policy` with every option of its own. Raises DigitsError if a name or a number is wrong."""
    name = policy.get("name") if isinstance(policy, Mapping) else policy
    if not isinstance(policy, Mapping) or not isinstance(name, str) or name not in POLICIES:
        raise DigitsError(f"There is no learning-rate policy {name!r}. Choose one of {', '.join(POLICIES)}.")
    known = {**POLICIES[name].options, WARM_UP: 0.0}
    if unknown := [option for option in policy if option not in known and option != "name"]:
        raise DigitsError(f"The policy {name} has no option {unknown[0]!r}. It has {', '.join(known)}.")
    options = {option: _number(name, option, policy.get(option, default)) for option, default in known.items()}
    return {"name": name, **options}


def _number(policy: str, option: str, value: Any) -> Any:
    where = f"{option} of the policy {policy}"
    if option == "values":
        if not isinstance(value, list | tuple) or not value:
            raise DigitsError(f"{where} must be a list of per cents, such as [50, 85], not {value!r}.")
        return sorted(_in_range(where, one, 0, 100) for one in value)
    if option in ("middle", WARM_UP):
        return _in_range(where, value, 0, 100)
    if option == "size":
        return _in_range(where, value, 0.1, 100)
    if option == "gamma" and policy in ("step", "multistep", "exponential"):
        return _in_range(where, value, 0, 1)
    return _in_range(where, value, 0, 100)


def _in_range(where: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise DigitsError(f"{where} must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)
