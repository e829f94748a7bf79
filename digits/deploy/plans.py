"""Plans: a trained run made ready to serve by lab 09's optimiser. Each is a folder of plain files, built by a process.

    plan = start(workspace, run_id, PlanSpec(precision="int8"))
    plan.wait(120)["status"]; plan.report()

plans/ID/plan.json       what was asked, never changed
plans/ID/state.json      how far building has come
plans/ID/lock            held while the process that builds it lives
plans/ID/batch-8.plan    lab 09's plan file for batches of 8; one for each batch
plans/ID/report.json     accuracy beside Keras, latency or its estimate, what the optimiser did
plans/ID/log.txt         what the process printed

Nothing here imports TensorFlow or a lab.
"""

import contextlib
import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from digits.files import DigitsError, Lock, delete_folder, read_json, write_json
from digits.jobs import ALIVE, LOCK, STATE, Job, launch
from digits.training import runs, trained
from digits.workspace import Workspace

PLAN, REPORT = "plan.json", "report.json"
TIMINGS = "timings.json"  # beside the plans: lab 09's timing cache, which all of them share
PRECISIONS = {"float32": "FP32", "float16": "FP16", "int8": "INT8, calibrated"}
CALIBRATIONS = ("entropy", "percentile", "min-max")
ENDED = ("done", "failed", "stopped", "killed", "broken")
_MOST_BATCH = 1024


def missing() -> str:
    """Return which lab is missing for plans, and what that means; "" if none is."""
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec("kernels.fusion.plan") is not None:
            return ""
    return "Lab 09 (kernels/fusion) is not in this copy of the course, so no plan can be built. Download the model."


@dataclass(frozen=True)
class PlanSpec:
    """What to build. A wrong value raises DigitsError with a sentence.

    `precision`: of PRECISIONS. `batches`: a plan is built for each. `tuned`: whether to time all tactics of all layers
    (in the simulator: to estimate them). `calibration`: of CALIBRATIONS, for INT8, from at most `calibration_images` of
    the training images. `test_images`: on how many of the test images the plan is compared with Keras, at most.
    """

    precision: str = "float32"
    batches: tuple[int, ...] = (1, 8)
    tuned: bool = True
    calibration: str = "entropy"
    calibration_images: int = 256
    test_images: int = 256

    def __post_init__(self) -> None:
        for what, known in (("precision", tuple(PRECISIONS)), ("calibration", CALIBRATIONS)):
            if getattr(self, what) not in known:
                raise DigitsError(
                    f"The {what} {getattr(self, what)!r} does not exist. Choose one of {', '.join(known)}."
                )
        batches = tuple(self.batches) if isinstance(self.batches, list | tuple) else ()
        if not batches or not all(_is_whole(batch, 1, _MOST_BATCH) for batch in batches):
            raise DigitsError(f"batches must be whole numbers from 1 to {_MOST_BATCH}, such as 1 and 8.")
        object.__setattr__(self, "batches", tuple(sorted(set(batches))))
        for what in ("calibration_images", "test_images"):
            if not _is_whole(getattr(self, what), 1, 1_000_000):
                raise DigitsError(f"{what} must be a whole number from 1 on, not {getattr(self, what)!r}.")
        if not isinstance(self.tuned, bool):
            raise DigitsError(f"tuned must be true or false, not {self.tuned!r}.")

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "PlanSpec":
        """Return the spec in a plan.json; unknown keys are left aside."""
        return cls(**{key: given[key] for key in cls.__dataclass_fields__ if key in given})


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


class PlanJob(Job):
    """The plan in `folder`. Every question reads the files, so the answer is the same in every process."""

    ENDED = ENDED
    BUSY = "The plan {name} is being built. Stop it first."

    @property
    def about(self) -> dict[str, Any]:
        """Return plan.json: {"id", "created", "run", "name", "dataset", PlanSpec's fields}. DigitsError if damaged."""
        about = read_json(self.folder / PLAN)
        if not all(isinstance(about.get(key), str) for key in ("run", "name", "dataset")):
            raise DigitsError(f"{PLAN} of {self.id} is damaged: it names no run. Delete the plan, and build it again.")
        return about

    @property
    def spec(self) -> PlanSpec:
        return PlanSpec.from_json(self.about)

    def state(self) -> dict[str, Any]:
        """Return {"status", "message", "progress", "seconds", "pid"}. Never raises.

        `status`: "waiting" (the process starts), "running", "done", "failed" (the message says why), "stopped",
        "killed" (the process is gone without a word) or "broken" (files are missing or damaged). `progress`: 0 to 1.
        """
        try:
            assert self.spec
            gone = "The process is gone: it was killed, or the machine restarted. Build the plan again."
            return self.settled(lambda: _checked_state(self.folder), lambda: gone)
        except DigitsError as error:
            return _EMPTY | {"status": "broken", "message": str(error)}

    def report(self) -> dict[str, Any]:
        """Return report.json, as `digits.deploy.worker` describes it. DigitsError where the plan is not done."""
        status = self.state()["status"]
        if status != "done":
            raise DigitsError(f"The plan {self.id} is {status}; there is a report once it is done.")
        report = read_json(self.folder / REPORT)
        if not _fits(report, _REPORT):
            raise DigitsError(f"{REPORT} of {self.id} is damaged. Delete the plan, and build it again.")
        return report

    def files(self) -> list[Path]:
        """Return the plan files, the smallest batch first."""
        with contextlib.suppress(DigitsError):
            return [path for batch in self.spec.batches if (path := plan_file(self.folder, batch)).is_file()]
        return []

    def stop(self) -> None:
        """Ask the process to end, which it does between two layers. DigitsError if none lives."""
        if self.state()["status"] not in ALIVE:
            raise DigitsError(f"The plan {self.id} is not being built: there is nothing to stop.")
        self.ask("stop")


def _checked_state(folder: Path) -> dict[str, Any]:
    """Return state.json, believed only as far as its types go: a plan may come from a stranger."""
    state = _EMPTY | read_json(folder / STATE)
    right = (
        state["status"] in (*ALIVE, *ENDED)
        and isinstance(state["message"], str)
        and _is_number(state["progress"])
        and _is_number(state["seconds"])
        and (state["pid"] is None or _is_whole(state["pid"], 1, 2**31))
    )
    if not right:
        raise DigitsError(f"{STATE} of {folder.name} is damaged. Delete the plan, and build it again.")
    return {key: state[key] for key in _EMPTY}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _fits(value: Any, shape: Any) -> bool:
    """Return whether a value is what `shape` says: a type, (type, None), a [shape] of all items, or a {key: shape}.

    The key "*" stands for any; `float` for any number from 0 on.
    """
    if isinstance(shape, tuple):
        return value is None or _fits(value, shape[0])
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        if "*" in shape:
            return bool(value) and all(key.isdecimal() and _fits(one, shape["*"]) for key, one in value.items())
        return all(key in value and _fits(value[key], one) for key, one in shape.items())
    if shape is float:
        return _is_number(value)
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


_REPORT = {
    "device": str,
    "measured": bool,
    "layers": int,
    "passes": [str],
    "batches": {
        "*": {
            **dict.fromkeys(("launches", "plan_bytes", "tensor_bytes", "weights_bytes"), int),
            "latency": float,
            "label": str,
            "tuned": str,
        }
    },
    "test": {
        "images": int,
        "by": str,
        "kernels": ({"images": int, "largest_difference": float}, None),
        **dict.fromkeys(("keras_accuracy", "plan_accuracy", "largest_difference"), float),
        "same_answers": int,
    },
}
_EMPTY: dict[str, Any] = {"status": "broken", "message": "", "progress": 0.0, "seconds": 0.0, "pid": None}


def plan_file(folder: Path, batch: int) -> Path:
    """Return where the plan for a batch is."""
    return folder / f"batch-{batch}.plan"


def start(workspace: Workspace, run: str, spec: PlanSpec | None = None) -> PlanJob:
    """Begin to build the plan of a run's last weights, in a process of its own; return at once.

    Raises DigitsError where lab 09 is missing, and for a run that has no weights or does not classify.
    """
    if why := missing():
        raise DigitsError(why)
    spec = spec or PlanSpec()
    found = runs.open(workspace, run)
    if found.spec.kind != "classification":
        raise DigitsError(
            f"The run {found.name} is for {found.spec.kind}. Lab 09's engine takes networks that classify; train one."
        )
    if not trained.listed(found):
        raise DigitsError(f"The run {found.name} has no weights yet. Wait for its first checkpoint.")
    folder = workspace.create("plans", f"{found.name}-{spec.precision}")
    try:
        about = {
            "id": folder.name,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "run": run,
            "name": found.name,
            "dataset": found.spec.dataset,
            **asdict(spec),
        }
        write_json(folder / PLAN, about)
        _launch(folder)
    except BaseException:
        delete_folder(folder)
        raise
    return PlanJob(folder)


def open(workspace: Workspace, id: str) -> PlanJob:
    """Return the plan `id`. Raises DigitsError if there is none."""
    return PlanJob(workspace.folder("plans", id))


def listing(workspace: Workspace) -> list[PlanJob]:
    """Return all plans, newest first. One that is damaged is among them, its status "broken"."""
    return [PlanJob(workspace.plans / id) for id in workspace.ids("plans")]


def _launch(folder: Path) -> None:
    """Take the plan's lock and start a process that inherits it."""
    with Lock(folder / LOCK) as lock:
        message = "Starting: TensorFlow takes some seconds."
        write_json(folder / STATE, _EMPTY | {"status": "waiting", "message": message})
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        launch(folder, lock, "digits.deploy.worker", f"start building {folder.name}", environment=environment)
