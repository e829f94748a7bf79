"""What the deploy panel shows, as HTML: how far a plan is, its report, and links to its files."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.deploy import plans
from digits.files import DigitsError
from digits.page.elements import escape, progress, table
from warplab.text.tables import duration

MOST_OFFERED = 16 << 20  # bytes of a file that the page sends to the browser
_STATUS = {
    "waiting": "Starting",
    "running": "Being built",
    "done": "Done",
    "failed": "Failed",
    "stopped": "Stopped",
    "killed": "Killed",
    "broken": "Damaged",
}


def title(job: plans.PlanJob) -> str:
    """Return what a plan is called in the list to choose from."""
    status = _STATUS[job.state()["status"]].lower()
    try:
        return f"{job.about['name']}, {plans.PRECISIONS[job.spec.precision]} – {status} ({job.id[:15]})"
    except DigitsError:
        return f"{job.id} – {status}"


def state(found: Mapping[str, Any]) -> str:
    """Return how far a plan is: its status in words, what it does now, a bar while it is being built."""
    kind = "digits-error" if found["status"] in ("failed", "killed", "broken") else ""
    more = "" if found["status"] == "done" else escape(found["message"])
    said = f'<p class="{kind}"><strong>{_STATUS[found["status"]]}.</strong> {more}</p>'
    if found["status"] not in ("waiting", "running"):
        return said
    return f"{said}{progress(found['progress'], 'Built')} {100 * found['progress']:.0f} %"


def report(found: Mapping[str, Any], precision: str) -> str:
    """Return the tables of a plan that is done: accuracy beside Keras, latency by batch, what the passes did."""
    return _accuracy(found["test"], precision) + _batches(found) + _passes(found)


def _accuracy(test: Mapping[str, Any], precision: str) -> str:
    same = f"{test['same_answers']:,} of {test['images']:,}"
    rows = [
        ["Keras, as trained", f"{100 * test['keras_accuracy']:.2f} %", ""],
        [f"The plan, {precision}", f"{100 * test['plan_accuracy']:.2f} %", same],
    ]
    kernels = test["kernels"]
    checked = (
        f" In the simulator the plan's own kernels answered {kernels['images']} of the images, and differ by "
        f"{kernels['largest_difference']:.2g} at most."
        if kernels
        else ""
    )
    said = (
        f"<p>Probabilities differ by {test['largest_difference']:.2g} at most. The plan's were computed by "
        f"{escape(test['by'])}.{checked}</p>"
    )
    return table(["By", "Accuracy", "Same class"], rows, f"On the same {test['images']:,} test images") + said


def exported(found: Mapping[str, Any]) -> str:
    """Return the table of an export to ONNX: what Keras, ONNX Runtime and the plan answer to the same images."""
    rows = [
        [one["by"], f"{100 * one['accuracy']:.2f} %", f"{one['same_answers']:,}", f"{one['largest_difference']:.2g}"]
        for one in found["answers"]
    ]
    head = ["By", "Accuracy", "Same class as Keras", "Probabilities differ by, at most"]
    told = "<p>It takes float32 images from 0 to 1, (batch, channels, height, width).</p>"
    return told + table(head, rows, f"On the same {found['images']:,} test images")


def _batches(found: Mapping[str, Any]) -> str:
    rows, labels = [], set()
    for batch, row in found["batches"].items():
        images = f"{int(batch) / max(row['latency'], 1e-12):,.0f}"
        sizes = f"{row['weights_bytes']:,}", f"{row['tensor_bytes']:,}"
        rows.append([batch, row["launches"], duration(row["latency"]), images, *sizes])
        labels.add(row["label"])
    kind = "Latency" if found["measured"] else "Latency, estimated"
    head = ["Batch", "Launches", kind, "Images/s from it", "Bytes of weights", "Bytes of tensors"]
    said = f"<p>Latency is {escape('; '.join(sorted(labels)))}.</p>"
    return table(head, rows, "Plans by batch") + said


def _passes(found: Mapping[str, Any]) -> str:
    passes = "".join(f"<li>{escape(line)}</li>" for line in found["passes"])
    tuned = "".join(
        f"<details><summary>Tactics of batch {escape(batch)}</summary>"
        f'<div class="digits-scroll" tabindex="0" role="region" aria-label="Tactics of batch {escape(batch)}">'
        f"<pre>{escape(row['tuned'])}</pre></div></details>"
        for batch, row in found["batches"].items()
    )
    title = f"What the optimiser did with {escape(found['layers'])} layers"
    return f"<details><summary>{title}</summary><ul>{passes}</ul></details>{tuned}"


def downloads(files: Iterable[tuple[str, Path | bytes]]) -> str:
    """Return links to files, as (name to save it under, path or content). The browser gets their bytes with the page.

    A file that is too large for that is named with its path, and one that is gone is said to be.
    """
    items = []
    for name, path in files:
        try:
            size = len(path) if isinstance(path, bytes) else path.stat().st_size
            data = path if isinstance(path, bytes) else path.read_bytes() if size <= MOST_OFFERED else None
        except OSError as error:
            items.append(f'<li class="digits-error">{escape(name)} cannot be read: {escape(error.strerror)}</li>')
            continue
        if data is None:
            items.append(f"<li>{escape(name)} ({size:,} bytes) is too large for this page; copy {escape(path)}</li>")
            continue
        address = f"data:application/octet-stream;base64,{base64.b64encode(data).decode()}"
        items.append(f'<li><a download="{escape(name)}" href="{address}">{escape(name)}</a> ({size:,} bytes)</li>')
    return f"<ul>{''.join(items)}</ul>"


def labels(classes: Iterable[str]) -> bytes:
    """Return the content of a labels.txt: a class a line, in the order of the probabilities."""
    return "".join(f"{one}\n" for one in classes).encode()


def request(url: str, image: NDArray[np.float32], classes: Sequence[str]) -> str:
    """Return how to call a service from elsewhere. `image`: a sample that is offered to try it with."""
    sizes = " × ".join(map(str, image.shape))
    sample = json.dumps({"instances": [np.round(image.astype(float), 4).tolist()]}).encode()
    return (
        f"<p>It answers at <code>{escape(url)}</code>, to this machine alone, until it is stopped or this page's "
        f"kernel ends. A sample is an image of {sizes} numbers from 0 to 1 (height, width, channels); the answer is a "
        f"list of probabilities for each, in the order of the classes: {escape(', '.join(classes))}. To try it, save "
        "sample.json, and run in its folder:</p>"
        f"{downloads([('sample.json', sample), ('labels.txt', labels(classes))])}"
        f'<div class="digits-scroll" tabindex="0" role="region" aria-label="How to call it">'
        f"<pre>curl -H 'Content-Type: application/json' -d @sample.json {escape(url)}/v1/predict\n"
        f"curl {escape(url)}/v1/model</pre></div>"
    )
