"""The process that builds one plan: `python -m digits.deploy.worker PLAN_FOLDER`.

What it writes to report.json, times in seconds:

    {"device": the GPU, or what the simulator estimates for; "measured": whether times are measured,
     "layers": of the Keras model; "passes": what each pass of the optimiser said,
     "batches": {"8": {"launches", "latency", "label", "plan_bytes", "tensor_bytes", "weights_bytes", "tuned": text}},
     "test": {"images", "by": what computed the plan's answers, "kernels", "keras_accuracy", "plan_accuracy",
              "same_answers", "largest_difference"}}

Without a GPU lab 09's interpreter answers the test images, since a batch of larger images takes the simulator many
seconds; `kernels` then says how far the plan's own kernels are from it on one batch of each plan.

`latency` is measured on a GPU from the call to the result. Without one it is lab 09's estimate for a named card, a
lower bound by data sheet, and `label` says so.
"""

import contextlib
import io
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.data.dataset import Dataset
from digits.deploy.plans import REPORT, TIMINGS, PlanJob, PlanSpec, plan_file
from digits.files import DigitsError, write_json
from digits.jobs import STATE, wanted, work
from digits.training import runs
from digits.training.task import prepare
from digits.training.trained import load_model
from digits.workspace import Workspace

ESTIMATED_FOR = "H100"  # the card whose launch overhead lab 01 measured
_AT_ONCE = 32  # images


def _say(line: str) -> None:
    # Standard output may be caught to hear the optimiser.
    print(time.strftime("%H:%M:%S"), line, flush=True, file=sys.__stdout__)


class Stopped(Exception):
    """The user asked to stop."""


class PlanProgress:
    """state.json, and the question whether to go on. Stages take shares of the whole that were guessed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._began = folder, time.monotonic()
        self._low, self._high, self._written = 0.0, 0.0, 0.0
        self._value = {"status": "running", "pid": os.getpid(), "progress": 0.0, "message": "", "seconds": 0.0}

    def stage(self, message: str, low: float, high: float) -> None:
        """Begin a stage, from `low` to `high` of the whole."""
        _say(message)
        self._low, self._high = low, high
        self._value["message"] = message
        self.share(0.0, at_once=True)

    def share(self, done: float, at_once: bool = False) -> None:
        """Note that so much of the stage is done, 0 to 1. Raises Stopped if the user asked to."""
        if wanted(self._folder) == "stop":
            raise Stopped
        now = time.monotonic()
        if at_once or now - self._written > 0.3:
            self._value["progress"] = self._low + (self._high - self._low) * min(1.0, done)
            self._value["seconds"] = now - self._began
            write_json(self._folder / STATE, self._value)
            self._written = now

    def end(self, status: str, message: str) -> None:
        """Write the last state."""
        _say(message)
        self._value |= {"status": status, "message": message, "seconds": time.monotonic() - self._began}
        if status == "done":
            self._value["progress"] = 1.0
        write_json(self._folder / STATE, self._value)


def main(arguments: list[str] | None = None) -> int:
    """Build the plan; return 0, 1 if that failed, 2 if another process builds it."""
    busy = "Another process builds the plan {name} already."
    return work("digits.deploy.worker", busy, _work, arguments)


def _work(folder: Path) -> int:
    progress = PlanProgress(folder)
    try:
        write_json(folder / REPORT, build(folder, progress))
        progress.end("done", "Done.")
        return 0
    except Stopped:
        progress.end("stopped", "Stopped.")
        return 0
    except BaseException as error:
        traceback.print_exc()
        with contextlib.suppress(DigitsError):
            progress.end("failed", _told(error, folder))
        return 1


def _told(error: BaseException, folder: Path) -> str:
    if isinstance(error, DigitsError):
        return str(error)
    first = (str(error).strip().splitlines() or ["no reason given"])[0][:500]
    if type(error).__module__.startswith("kernels.fusion"):  # these are sentences, too
        return f"Lab 09's engine cannot take this network: {first}"
    return f"Building ended with {type(error).__name__}: {first}. The whole message is in log.txt of {folder.name}."


def build(folder: Path, progress: PlanProgress) -> dict[str, Any]:
    """Write the plan files of `folder`, and return the report."""
    job = PlanJob(folder)
    about, spec = job.about, job.spec
    workspace = Workspace(folder.parent.parent)
    progress.stage("Loading the trained network.", 0.0, 0.1)
    if __name__ == "__main__":  # in a process of its own
        _leave_the_gpu_to_the_plan()
    run = runs.open(workspace, about["run"])
    dataset = Dataset.open(workspace, about["dataset"])
    model = load_model(run)
    images, labels = sample(dataset, "test", spec.test_images)
    progress.stage(f"Keras answers {len(images)} test images.", 0.1, 0.15)
    expected = keras_answers(model, images)

    progress.stage("Importing the network, and optimising its graph.", 0.15, 0.25)
    graph, passes = optimised(model, spec, dataset, progress)
    plans, batches = [], {}
    for at, batch in enumerate(spec.batches):
        low, high = (0.25 + 0.5 * (at + end) / len(spec.batches) for end in (0, 1))
        doing = "Timing all tactics" if _on_gpu() else "Estimating all tactics in the simulator"
        progress.stage(f"{doing if spec.tuned else 'Choosing tactics'}: batch {batch}.", low, high)
        plan, tuned = _plan(graph, batch, spec, workspace, progress)
        plans.append(plan)
        batches[str(batch)] = _described(folder, plan, tuned)
    return {
        "device": plans[0].device,
        "measured": _on_gpu(),
        "layers": len(model.layers),
        "passes": passes,
        "batches": batches,
        "test": compare(plans, images, labels, expected, progress),
    }


def _on_gpu() -> bool:
    from warplab.hardware import backend

    return backend.name() == "gpu"


def _leave_the_gpu_to_the_plan() -> None:
    """Hide the GPU from TensorFlow, which would take nearly all its memory; the plan's kernels run in this process."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


def sample(dataset: Dataset, part: str, most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return a part's images as a network takes them, and labels: all, or `most` that the dataset's seed draws."""
    count = dataset.counts[part]
    if not count:
        raise DigitsError(f"The dataset {dataset.name} has no {part} images. Build it again with a share for them.")
    chosen = np.sort(np.random.default_rng(dataset.seed).permutation(count)[:most])
    return prepare(dataset.images(part)[chosen]), np.asarray(dataset.labels(part)[chosen])


def keras_answers(model: Any, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the first output of the model, float32, (images, classes)."""
    found = [model(images[start : start + 64], training=False) for start in range(0, len(images), 64)]
    first = [one[0] if isinstance(one, list | tuple) else one for one in found]
    return np.concatenate([np.asarray(one, np.float32) for one in first])


def optimised(model: Any, spec: PlanSpec, dataset: Dataset, progress: PlanProgress) -> tuple[Any, list[str]]:
    """Return lab 09's graph of a model, after its optimiser; and what each pass said."""
    from kernels.fusion.exchange import keras_import
    from kernels.fusion.passes import optimise, quantise

    answer = model.outputs[0]._keras_history.operation.name
    graph = keras_import.import_keras(model, [answer])

    def calibrate(fused: Any) -> Any:
        images, _ = sample(dataset, "train", spec.calibration_images)
        progress.stage(f"Calibrating INT8 on {len(images)} training images.", 0.2, 0.25)
        return quantise.scales(fused, channels_first(images), method=spec.calibration)

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        graph = optimise.optimise(graph, spec.precision, calibrate if spec.precision == "int8" else None)
    print(said.getvalue(), flush=True)
    lines = said.getvalue().splitlines()
    return graph, [line for line in lines if line and not line.endswith("nothing to do")]


def channels_first(images: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _plan(graph: Any, batch: int, spec: PlanSpec, workspace: Workspace, progress: PlanProgress) -> tuple[Any, Any]:
    from kernels.fusion import plan
    from kernels.fusion.tactics.timing_cache import TimingCache, TimingCacheError

    if not spec.tuned:
        return plan.build(graph, batch), None

    class Watched(TimingCache):
        """Tells how far tuning has come: tactics are looked up one by one."""

        def get(self, layer: Any, tactic: str) -> float | None:
            progress.share(min(1.0, (self.hits + self.misses) / most))
            return super().get(layer, tactic)

    most = max(1, _tactics(graph, batch))
    path = workspace.plans / TIMINGS
    kept: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, TimingCacheError):  # a damaged one is written anew
        kept = TimingCache.load(path, plan.device()).timings
    cache = Watched(plan.device(), kept)
    tuned = plan.tune(graph, batch, cache)
    cache.save(path)
    return plan.build(graph, batch, tuned=tuned), tuned


def _tactics(graph: Any, batch: int) -> int:
    from kernels.fusion import tactics
    from kernels.fusion.plan import memory_plan, tuning

    device = tuning.capability()
    return sum(
        len(tactics.candidates(one, device))
        for one in tactics.layers(graph, batch)
        if one.node.op not in memory_plan.WITHOUT_LAUNCH
    )


def _described(folder: Path, plan: Any, tuned: Any) -> dict[str, Any]:
    """Return the file of a plan, and the row of the report about it."""
    from kernels.fusion.plan import Engine, save

    path = plan_file(folder, plan.batch)
    save(plan, path)
    made = Engine(plan)
    latency, label = _latency(made, plan)
    return {
        "launches": len(made.launches),
        "latency": latency,
        "label": label,
        "plan_bytes": path.stat().st_size,
        "tensor_bytes": plan.memory.nbytes,
        "weights_bytes": made.weights_bytes,
        "tuned": "each layer's default tactic" if tuned is None else str(tuned),
    }


def _latency(engine: Any, plan: Any) -> tuple[float, str]:
    """Return the seconds for a batch, and what they are."""
    from kernels.fusion.graph import cost
    from kernels.fusion.measured import clocks
    from warplab.hardware.cards import card

    if _on_gpu():
        found = clocks.times(engine.queue)["latency_seconds"]
        return found, f"measured on {plan.device}, {time.strftime('%Y-%m-%d')}"
    found = sum(cost.seconds(plan.graph, card(ESTIMATED_FOR), plan.batch).values())
    return found, f"estimated for an {ESTIMATED_FOR}, a lower bound by data sheet; nothing was measured"


def compare(
    plans: list[Any],
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    expected: NDArray[np.float32],
    progress: PlanProgress,
) -> dict[str, Any]:
    """Return accuracies of the plan and of Keras on the same images, (count, height, width, channels)."""
    first = channels_first(images)
    if _on_gpu():
        answers, by, kernels = _by_kernels(plans, first, progress), f"the plan's kernels on {plans[0].device}", None
    else:
        answers, by = _by_interpreter(plans[0].graph, first, progress), "lab 09's interpreter, in NumPy"
        kernels = _held_to(answers, plans, first, progress)
    return {
        "images": len(images),
        "by": by,
        "kernels": kernels,
        "keras_accuracy": float((expected.argmax(axis=1) == labels).mean()),
        "plan_accuracy": float((answers.argmax(axis=1) == labels).mean()),
        "same_answers": int((expected.argmax(axis=1) == answers.argmax(axis=1)).sum()),
        "largest_difference": float(np.abs(expected - answers).max()),
    }


def _by_kernels(plans: list[Any], images: NDArray[np.float32], progress: PlanProgress) -> NDArray[np.float32]:
    from kernels.fusion.served import Served

    progress.stage(f"The plan answers {len(images)} test images.", 0.75, 1.0)
    served, found = Served(plans), []
    for start in range(0, len(images), _AT_ONCE):
        progress.share(start / len(images))
        found.append(served.predict(images[start : start + _AT_ONCE]))
    return np.concatenate(found)


def _by_interpreter(graph: Any, images: NDArray[np.float32], progress: PlanProgress) -> NDArray[np.float32]:
    """Return what the optimised graph computes, in its precision; its kernels would take the simulator long."""
    from kernels.fusion.graph import interpret

    progress.stage(f"Lab 09's interpreter answers {len(images)} test images.", 0.75, 0.85)
    found = []
    for start in range(0, len(images), _AT_ONCE):
        progress.share(start / len(images))
        (answers,) = interpret.run(graph, images[start : start + _AT_ONCE], dtype=np.float32).values()
        found.append(answers)
    return np.concatenate(found)


def _held_to(
    answers: NDArray[np.float32], plans: list[Any], images: NDArray[np.float32], progress: PlanProgress
) -> dict[str, Any]:
    """Return how far the kernels of the plans are from `answers`: one batch of each in the simulator."""
    from kernels.fusion.plan.engine import Engine

    progress.stage("The plan's kernels answer one batch of each plan in the simulator.", 0.85, 1.0)
    count, largest = 0, 0.0
    for at, plan in enumerate(plans):
        progress.share(at / len(plans))
        some = images[: plan.batch]
        count += len(some)
        largest = max(largest, float(np.abs(Engine(plan).run(some) - answers[: len(some)]).max()))
    return {"images": count, "largest_difference": largest}


if __name__ == "__main__":
    sys.exit(main())
