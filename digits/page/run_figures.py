"""A run's state in words, and its curves and load as charts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from digits.page import charts
from digits.page.elements import escape, progress, said
from digits.training.runs import Run

# What a line of curves.jsonl holds besides the figures of its kind.
_NOT_FIGURES = ("step", "epoch", "part", "rate")
_TITLES = {
    "loss": "Loss",
    "accuracy": "Accuracy",
    "mAP": "Mean average precision",
    "mAP_coco": "mAP (COCO)",
    "precision": "Precision",
    "recall": "Recall",
    "mean_iou": "Mean intersection over union",
    "pixel_accuracy": "Pixel accuracy",
    "coverage_loss": "Coverage loss",
    "box_loss": "Box loss",
}
STATUS = {
    "waiting": "Starting",
    "running": "Running",
    "paused": "Paused",
    "stopped": "Stopped",
    "done": "Done",
    "failed": "Failed",
    "killed": "Killed",
    "broken": "Damaged",
}
_GB = 1e9
_FEW = 3  # samples of the load below which there is nothing to draw
_SPIKE = 100  # times the median: a loss that hides all others


def told(name: str, state: Mapping[str, Any]) -> str:
    """Return the HTML of a run's state: status, progress, times, figures, message. `state`: of `Run.state()`."""
    status = state["status"]
    share = state["step"] / state["steps"] if state["steps"] else 0.0
    head = f"<p><strong>{escape(STATUS.get(status, status))}</strong>: {escape(name)}</p>"
    parts = []
    if state["epochs"]:
        parts.append(f"epoch {state['epoch']:.1f} of {state['epochs']}")
    if state["steps"]:
        parts.append(f"step {state['step']} of {state['steps']}")
    if state["seconds"]:
        parts.append(f"{duration(state['seconds'])} spent training")
    if state["remaining"] is not None:
        parts.append(f"about {duration(state['remaining'])} to go")
    so_far = ""
    if status != "broken":
        bar = progress(share, "Progress of the run")
        so_far = f"{bar} {100 * share:.0f} %<p>{escape(', '.join(parts)) or 'Nothing trained yet'}.</p>"
    last = (state["last"] or {}).get("validation") or {}
    figures = ""
    if last:
        best = state["best"] or last
        figures = (
            f"<p>Validation: {escape(_figures(last))} after epoch {last.get('epoch', 0):g}; best "
            f"{escape(main_figure(best))} after epoch {best.get('epoch', 0):g}.</p>"
        )
    wrong = status in ("failed", "killed", "broken")
    message = said(state["message"], "error" if wrong else "muted")
    new = state["message"].strip(" .").lower() not in ("", status)  # "Done." says nothing more than "Done"
    return head + so_far + figures + (message if new else "")


def main_figure(line: Mapping[str, Any]) -> str:
    """Return the figure by which runs of a kind are compared, such as "accuracy 97.0 %"; "" if there is none."""
    names = _names([line])
    return _figure(names[0], line[names[0]]) if names else ""


def curves(shown: Sequence[Run], logarithmic: bool = False, looks: Sequence[int] = ()) -> str:
    """Return the charts of runs: loss and the figures of their kinds.

    `logarithmic`: whether the axis of the loss is. `looks`: colour and marker of each run; 0, 1, 2 … if there are none.
    """
    lines = {run.id: run.curves() for run in shown}
    every = [line for of_run in lines.values() for line in of_run]
    if not every:
        return said("The curves begin with the first epoch.")
    most = max((_end(run, lines[run.id]) for run in shown), default=0) or None
    names = _titles(shown)
    made = []
    for figure in ["loss", *_names(every)]:
        drawn = []
        for look, run in zip(looks or range(len(shown)), shown, strict=True):
            for part, dashed in (("train", True), ("validation", False)):
                points = [line for line in lines[run.id] if line.get("part") == part and _is_number(line.get(figure))]
                label = "training" if part == "train" else "validation"
                x, y = [line["epoch"] for line in points], [line[figure] for line in points]
                drawn.append(charts.Line(f"{names[run.id]}{label}", x, y, look, dashed))
        share = not _is_loss(figure) and all(0 <= value <= 1 for line in drawn for value in line.y)
        title = _TITLES.get(figure, figure)
        raised = logarithmic and figure == "loss"
        axes = {"x": "epoch", "y": _in_text(title), "logarithmic": raised, "percent": share, "most": most}
        made.append(charts.chart(drawn, title, **axes))
    return f'<div class="digits-charts">{"".join(made)}</div>{_spike(every, logarithmic)}'


def load(run: Run) -> str:
    """Return what the training asks of the machine: the last sample in words, and its course as a chart."""
    samples = run.load()
    if not samples:
        return ""
    last, start = samples[-1], samples[0]["time"]
    gpus = last.get("gpus") or []
    told = [
        f"CPU {last['cpu']:.0f} % of all cores; this run {last['process_cpu']:.0f} % of one core and "
        f"{last['memory'] / _GB:.2f} GB; memory in use {last['memory_used'] / _GB:.1f} of "
        f"{last['memory_total'] / _GB:.1f} GB"
    ]
    for gpu in gpus:
        memory = f"{gpu['memory_used'] / _GB:.1f} of {gpu['memory_total'] / _GB:.1f} GB"
        told.append(f"{gpu['name']} {gpu['gpu']:.0f} % of the time busy, {memory}")
    if not gpus:
        told.append("No NVIDIA GPU takes part")
    seconds = [sample["time"] - start for sample in samples]
    lines = [charts.Line("CPU, all cores", seconds, [sample["cpu"] / 100 for sample in samples], 0)]
    for place, gpu in enumerate(gpus[: charts.LOOKS - 1]):
        busy = [sample["gpus"][place]["gpu"] / 100 for sample in samples if len(sample.get("gpus") or []) > place]
        lines.append(charts.Line(gpu["name"], seconds[-len(busy) :], busy, place + 1))
    words = said(f"{'. '.join(told)}.")
    if len(samples) < _FEW:
        return words
    title = "Load of the machine while training"
    drawn = charts.chart(lines, title, "seconds", "busy", percent=True, plain=True, most=max(seconds))
    return f'{words}<div class="digits-charts">{drawn}</div>'


def duration(seconds: float) -> str:
    """Return a time as people say it: "8 s", "2 min 05 s", "1 h 20 min"."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _titles(shown: Sequence[Run]) -> dict[str, str]:
    """Return what the legend says before training and validation; nothing where there is only one run."""
    if len(shown) == 1:
        return {shown[0].id: ""}
    names = [run.name for run in shown]
    return {run.id: f"{run.name}{'' if names.count(run.name) == 1 else ' ' + run.id[:15]}, " for run in shown}


def _spike(lines: Sequence[Mapping[str, Any]], logarithmic: bool) -> str:
    losses = sorted(line["loss"] for line in lines if _is_number(line.get("loss")) and math.isfinite(line["loss"]))
    if logarithmic or not losses or losses[-1] < _SPIKE * max(losses[len(losses) // 2], 1e-6):
        return ""
    return said(
        f"A loss of {losses[-1]:.3g} flattens all others: tick Logarithmic loss to see them. If the loss stays so "
        "high, the rate is too high."
    )


def _end(run: Run, points: Sequence[Mapping[str, Any]]) -> float:
    """Return the epoch where the axis ends: the last one planned, or reached where none is."""
    return run.state()["epochs"] or max((line["epoch"] for line in points), default=0.0)


def _names(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    found = {name: None for line in lines for name in line if _is_number(line[name])}
    titled = [name for name in _TITLES if name in found]  # the main figure of a kind comes first there
    return [name for name in dict.fromkeys([*titled, *found]) if name not in (*_NOT_FIGURES, "loss")]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _figures(line: Mapping[str, Any]) -> str:
    return ", ".join(_figure(name, line[name]) for name in ["loss", *_names([line])] if name in line)


def _figure(name: str, value: float) -> str:
    said = f"{100 * value:.1f} %" if not _is_loss(name) and 0 <= value <= 1 else f"{value:.4g}"
    return f"{_in_text(_TITLES.get(name, name))} {said}"


def _is_loss(name: str) -> bool:
    return name == "loss" or name.endswith("_loss")


def _in_text(title: str) -> str:
    return title[:1].lower() + title[1:]
