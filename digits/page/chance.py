"""A run that does no better than guessing: what says so, and what to try."""

import math

import numpy as np

from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.page.elements import escape
from digits.training.runs import Run
from digits.workspace import Workspace

_EPOCHS = 2  # fewer say nothing yet
_IMAGES = 50  # of validation; with fewer nearly every share may be luck
_DEVIATIONS = 2  # of the share of right guesses: no better than this is luck


def hint(workspace: Workspace, run: Run) -> str:
    """Return HTML for a classification run whose best validation accuracy is that of guessing; "" for all others."""
    try:
        spec = run.spec
        dataset = Dataset.open(workspace, spec.dataset)
        labels = dataset.labels("validation") if spec.kind == "classification" else np.zeros(0, np.int64)
    except DigitsError:  # deleted, or damaged: there is nothing to compare with
        return ""
    found = [line for line in run.curves() if line["part"] == "validation" and "accuracy" in line]
    if len(labels) < _IMAGES or not found or found[-1]["epoch"] < _EPOCHS:
        return ""
    best = max((line["accuracy"] for line in found if math.isfinite(line["accuracy"])), default=0.0)
    commonest = np.bincount(labels).max() / len(labels)
    if best > commonest + _DEVIATIONS * math.sqrt(commonest * (1 - commonest) / len(labels)):
        return ""
    said = (
        f"After {found[-1]['epoch']:g} epochs the validation accuracy is {100 * best:.1f} % at best. Always naming the "
        f"commonest of the {len(dataset.classes)} classes would be right in {100 * commonest:.1f} % of the images: "
        "this run has learnt nothing yet. Suspect the rate first. Too high, and the loss jumps or stays where it is; "
        "too low, and it hardly falls. Press Take over its settings, then divide the rate by 10 in Solver, or multiply "
        "it. If the training loss falls all the same, look at the labels in Data."
    )
    return f'<p class="digits-hint">{escape(said)}</p>'
