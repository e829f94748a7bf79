"""A trained run as ONNX, for other engines: written beside the run's model, and answered by ONNX Runtime before that.

    report = export(workspace, run_id)        # runs/ID/model.onnx and runs/ID/onnx.json

The network takes float32 images from 0 to 1, (batch, channels, height, width), and answers probabilities; names of the
classes are in the file's metadata. The report compares Keras, ONNX Runtime and the newest plan on the same test images:

    {"images", "bytes", "answers": [{"by", "accuracy", "same_answers", "largest_difference"}, ...]}

where the last two are against Keras, which comes first. What the graph has no operator for is refused by name.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from digits.data.dataset import Dataset
from digits.deploy import plans
from digits.files import DigitsError, read_json, write_file, write_json
from digits.training import runs, trained
from digits.workspace import Workspace
from warpcourse.paths import COURSE
from warpcourse.processes.child import module

MODEL, REPORT = "model.onnx", "onnx.json"
IMAGES = 256  # of the test images, at most
PATIENCE = 300.0  # seconds


def export(workspace: Workspace, run: str, images: int = IMAGES) -> dict[str, Any]:
    """Export the newest weights of a run in a process of its own; return the report after some seconds.

    Raises DigitsError where lab 09 is missing, for a run without weights, and for one that cannot be exported.
    """
    if why := plans.missing():
        raise DigitsError(why)
    found = runs.open(workspace, run)
    if found.spec.kind != "classification":
        raise DigitsError(f"The run {found.name} is for {found.spec.kind}. Only networks that classify are exported.")
    if not trained.listed(found):
        raise DigitsError(f"The run {found.name} has no weights yet. Wait for its first checkpoint.")
    command = module("digits.deploy.onnx_export", str(found.folder), str(images))
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    try:
        ended = subprocess.run(command, cwd=COURSE, env=quiet, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise DigitsError(f"The export took over {PATIENCE:g} s and was ended. End other work, ask again.") from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise DigitsError(f"The run {found.name} was not exported: {last[:500]}")
    return read_json(found.folder / REPORT)


def write(folder: Path, images: int = IMAGES) -> None:
    """Export the run in `folder` in this process, and write its report."""
    from digits.deploy.worker import channels_first, keras_answers, sample
    from kernels.fusion.exchange import keras_import, onnx_export
    from kernels.fusion.peers import on_onnxruntime

    run, workspace = runs.Run(folder), Workspace(folder.parent.parent)
    dataset = Dataset.open(workspace, run.spec.dataset)
    model = trained.load_model(run)
    try:
        graph = keras_import.import_keras(model, [model.outputs[0]._keras_history.operation.name])
        made = onnx_export.export_onnx(graph)
    except ValueError as error:  # it names the layer
        raise DigitsError(f"{error}.") from error
    about = {"classes": json.dumps(dataset.classes), "pixels": "float32 from 0 to 1", "run": run.id}
    for key, value in about.items():
        made.metadata_props.add(key=key, value=value)
    given, labels = sample(dataset, "test", images)
    expected = keras_answers(model, given)
    found = {"Keras": expected, "ONNX Runtime": on_onnxruntime.run(made, channels_first(given)).outputs}
    found |= _by_plan(workspace, run.id, channels_first(given))
    data = made.SerializeToString()
    write_file(folder / MODEL, lambda stream: stream.write(data))
    answers = [
        {
            "by": by,
            "accuracy": float((one.argmax(1) == labels).mean()),
            "same_answers": int((one.argmax(1) == expected.argmax(1)).sum()),
            "largest_difference": float(np.abs(one - expected).max()),
        }
        for by, one in found.items()
    ]
    write_json(folder / REPORT, {"images": len(given), "bytes": len(data), "answers": answers})


def _by_plan(workspace: Workspace, run: str, images: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the newest plan of the run that is done computes, by lab 09's interpreter; nothing without one."""
    from kernels.fusion.graph import interpret
    from kernels.fusion.plan import plan_file

    for job in plans.listing(workspace):
        if job.state()["status"] == "done" and job.about["run"] == run:
            graph = plan_file.load(job.files()[0]).graph
            (answers,) = interpret.run(graph, images, dtype=np.float32).values()
            return {f"The plan, {plans.PRECISIONS[job.spec.precision]}": answers}
    return {}


if __name__ == "__main__":
    try:
        write(Path(sys.argv[1]), int(sys.argv[2]))
    except DigitsError as error:
        sys.exit(str(error))
