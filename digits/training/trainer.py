"""The training loop of a run: steps, points of the curves, validations, checkpoints.

Everything that a step does is a function of the spec, the step and what the last checkpoint holds: the order of the
images and their augmentation follow from (seed, epoch), dropout's random state is saved with the weights, TensorFlow's
operations are deterministic. So a run that was killed at any moment and goes on gives the curves of an unbroken one,
number by number; tests/labs/12_digits/test_kill_and_resume.py kills it.
"""

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json
from digits.networks import keras_file, starts
from digits.training import checkpoints, trained
from digits.training.curves import Curves
from digits.training.spec import RunSpec, Solver
from digits.training.task import Targets, Task, task_of
from digits.workspace import Workspace
from warpcourse.bench.tensorflow_start import start as start_tensorflow

MOST_THREADS = 8
ONEDNN = "0"  # its kernels round otherwise than TensorFlow's own, whatever the environment of a resume says
POINTS = 10  # of the training curve in an epoch, about
MOST_POINTS = 2000  # of it in a whole run, about
CHECKPOINT_EPOCH, CHECKPOINT_STEP = 5.0, 30.0  # seconds after which an epoch's end, or any step, is worth a checkpoint
MOST_WRITING = 0.05  # share of the time that checkpoints may take
LEAST_VALIDATION_BATCH = 32

Say = Callable[[str], None]
Report = Callable[[dict[str, Any]], None]


class Trainer:
    """Trains the run in `folder`, from its last checkpoint if it has one.

    `wanted()`: "run", "pause" or "stop", asked before each step. `report(progress)`: called after each step with
    {"step", "steps", "epoch", "epochs", "seconds", "remaining", "last", "best", "notes"}. `say`: a line for the log.
    """

    def __init__(
        self, folder: Path, dataset: Dataset, spec: RunSpec, wanted: Callable[[], str], report: Report, say: Say
    ) -> None:
        self.folder, self.spec, self.solver = Path(folder), spec, spec.solver
        self.task = task_of(dataset, spec)
        self.wanted, self._report, self._say = wanted, report, say
        self.images = self.task.size("train")
        self.per_epoch = -(-self.images // self.solver.batch)
        self.steps = self.per_epoch * self.solver.epochs
        self.every = max(1, math.ceil(self.per_epoch / POINTS), math.ceil(self.steps / MOST_POINTS))
        self.step, self.validated = 0, -1
        self.best: dict[str, Any] | None = None
        self._notes: list[str] = []
        self._sums: dict[str, float] = {}  # of the steps since the last point of the training curve
        self._seconds = 0.0  # spent before this process
        self._began = self._saved = time.monotonic()
        self._checkpoint_cost = 0.0  # seconds that the last one took to write
        self._first: tuple[float, int] | None = None  # when the first step of this process was done, and which

    def train(self) -> str:
        """Train until the end or until something else is wanted; return "done", "pause" or "stop".

        Raises DigitsError if the run cannot go on; its checkpoints are as they were.
        """
        threads = self._set_up()
        try:
            with ThreadPoolExecutor(1, "batches") as executor:
                self._batches = _Batches(self.task, self.per_epoch, self.images, executor)
                self._begin(threads)
                self._began = self._saved = time.monotonic()
                return self._loop()
        finally:
            if hasattr(self, "_curves"):
                self._curves.close()

    def _loop(self) -> str:
        self._tell()
        while (wanted := self.wanted()) == "run":
            if self._validation_is_due():
                if not self._validate():
                    continue
            elif self.step == self.steps:
                break
            else:
                self._train_step()
            self._maybe_checkpoint()
            self._tell()
        if self.step != self._checkpoint_step or self.validated != self._checkpoint_validated:
            self._checkpoint()
        if wanted != "pause":
            trained.save_model(self.folder, self.model)
        self._tell()
        return "done" if wanted == "run" else wanted

    def _set_up(self) -> int:
        """Start TensorFlow as the run began with it; sums of more threads round otherwise. Return the threads."""
        threads = None
        for stored in checkpoints.listed(self.folder):
            try:
                threads = read_json(stored.about).get("threads", threads)
            except DigitsError:
                continue
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = ONEDNN
        threads = threads or min(MOST_THREADS, len(os.sched_getaffinity(0)))
        self._tf = start_tensorflow(threads=threads)
        self._tf.config.experimental.enable_op_determinism()
        import keras

        keras.utils.clear_session()
        keras.utils.set_random_seed(self.solver.seed)
        keras.config.set_dtype_policy(self.solver.precision)
        return threads

    def _begin(self, threads: int) -> None:
        """Build network and optimizer, and take up the last checkpoint, or begin with one of step 0."""
        try:
            self.model = self.task.build()
        finally:
            import keras

            keras.config.set_dtype_policy("float32")
        arrays, about, problems = checkpoints.latest(self.folder)
        self._frozen = about.get("frozen", []) if arrays is not None and about is not None else self._take_start()
        for layer in self.model.layers:
            if layer.name in self._frozen:
                layer.trainable = False
        self.optimizer = _optimizer(self.solver)
        self.optimizer.build(self.model.trainable_variables)
        self._setting = {
            "threads": threads,
            "device": "GPU" if self._tf.config.list_physical_devices("GPU") else "CPU",
            "tensorflow": self._tf.__version__,
            "images": self.images,
        }
        for problem in problems:
            self._note(problem)
        for name in ("checkpoints", "events", "events/train", "events/validation"):
            if (self.folder / name).is_symlink():
                raise DigitsError(f"{name} of {self.folder.name} is a link, which may lead anywhere. Delete the run.")
        checkpoints.tidy(self.folder)
        self._checkpoint_step = self._checkpoint_validated = -2
        if arrays is None or about is None:
            if problems:
                self._note("No checkpoint is left that can be read: the training begins again, with the same curves.")
            self._curves = Curves(self.folder)
            trained.save_network(self.folder, self.model)
            self._functions()
            self._checkpoint()
            self._say(f"Begins: {self.steps} steps, {self.per_epoch} an epoch, on {self._setting['device']}.")
        else:
            self._take_up(arrays, about)
            self._functions()
            self._say(f"Goes on from the checkpoint of step {self.step} of {self.steps}.")

    def _note(self, sentence: str) -> None:
        """Say something that the user should see, not only the log."""
        self._notes.append(sentence)
        self._say(sentence)

    def _take_start(self) -> list[str]:
        """Set the start's weights; return the names of the layers that are to stay so."""
        if self.spec.start is None:
            return []
        workspace = Workspace(self.folder.parent.parent)
        if self.spec.start == starts.LAB_09:
            weights = starts.lab_09()
        elif self.spec.start.startswith(starts.FILE):
            weights = keras_file.weights(workspace.root, self.spec.start)
        else:
            weights = starts.of_model(trained.load_model(workspace.folder("runs", self.spec.start)))
        taken = starts.take(self.model, weights)
        self._note(taken.sentence())
        if not self.spec.freeze:
            return []
        last = [layer.name for layer in self.model.layers if layer.get_weights()][-1]
        frozen = [name for name in taken.layers if name != last]
        self._note(f"{len(frozen)} of them are frozen: they stay as they are.")
        return frozen

    def _take_up(self, arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> None:
        for name, now in self._setting.items():
            if about.get(name) != now and name == "images":
                raise DigitsError(
                    f"The dataset has {now} images to train on, and had {about.get(name)} when the run began. "
                    "Restore it, or start a new run."
                )
            if about.get(name) != now:
                self._note(f"Begun with {name} {about.get(name)}, now {now}: the last digits of the curves may differ.")
        trained.set_variables(self.model, arrays)
        for at, variable in enumerate(self.optimizer.variables):
            trained.assign(variable, arrays.get(f"optimizer/{at}"), f"the optimizer ({variable.path})")
        self.step = self._checkpoint_step = about["step"]
        self.validated = self._checkpoint_validated = about["validated"]
        self.best, self._sums, self._seconds = about["best"], about["sums"], about["seconds"]
        self._notes = about.get("notes", []) + self._notes
        self._curves = Curves(self.folder, self.step, self.validated)
        (self.folder / trained.MODEL).unlink(missing_ok=True)  # of a run that was stopped; it would be out of date

    def _functions(self) -> None:
        """Compile the step and the validation of a batch, for batches of any size."""
        tf, model, task, optimizer = self._tf, self.model, self.task, self.optimizer
        images, targets = task.batch("train", np.arange(1), None)
        signature = (
            tf.TensorSpec((None, *images.shape[1:]), tf.float32),
            {name: tf.TensorSpec((None, *one.shape[1:]), one.dtype) for name, one in targets.items()},
        )

        @tf.function(input_signature=signature)
        def step(images: Any, targets: Any) -> Any:
            with tf.GradientTape() as tape:
                outputs = model(images, training=True)
                loss = task.loss(targets, outputs)
                total = tf.add_n([loss, *model.losses]) if model.losses else loss
                scaled = optimizer.scale_loss(total)
            gradients = tape.gradient(scaled, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss, task.sums(targets, outputs)

        @tf.function(input_signature=signature)
        def validate(images: Any, targets: Any) -> Any:
            outputs = model(images, training=False)
            kept = outputs if task.keep_outputs else []
            return task.loss(targets, outputs), task.sums(targets, outputs), kept

        self._step_function, self._validation_function = step, validate

    def _train_step(self) -> None:
        self.rate = self.solver.rate_at(self.step, self.steps)
        self.optimizer.learning_rate.assign(self.rate)
        images, targets = self._batches.of(self.step, last=self.steps)
        loss, sums = self._step_function(images, targets)
        self.step += 1
        # The first step is compiled first, and says nothing about the others.
        self._first = self._first or (time.monotonic(), self.step)
        _add(self._sums, len(images), loss, sums)
        finite = math.isfinite(self._sums["loss"])
        if not finite or self.step % self.every == 0 or self.step % self.per_epoch == 0:
            self._point("train", self._sums, {})
            self._sums = {}
        if not finite:
            raise DigitsError(
                f"The loss is no longer a number at step {self.step}, epoch {self.step / self.per_epoch:.2f}: the "
                f"learning rate, {self.rate:g} there, is probably too high. Start a new run with a lower one, such as "
                f"{self.solver.rate / 10:g}."
            )

    def _validation_is_due(self) -> bool:
        of_epochs = self.per_epoch * self.solver.validate_every
        return self.validated < self.step and (self.step % of_epochs == 0 or self.step == self.steps)

    def _validate(self) -> bool:
        """Add a point to the validation curve; return False, with none, if something else is wanted in between."""
        count, batch = self.task.size("validation"), max(self.solver.batch, LEAST_VALIDATION_BATCH)
        sums: dict[str, float] = {}
        kept: list[tuple[Targets, list[Any]]] = []
        for first in range(0, count, batch):
            if self.wanted() != "run":
                return False
            indices = np.arange(first, min(first + batch, count))
            images, targets = self.task.batch("validation", indices, None)
            loss, of_batch, outputs = self._validation_function(images, targets)
            _add(sums, len(images), loss, of_batch)
            if self.task.keep_outputs:
                kept.append((targets, [one.numpy() for one in self._tf.nest.flatten(outputs)]))
        figures = {}
        if kept:
            names = kept[0][0]
            all_targets = {name: np.concatenate([targets[name] for targets, _ in kept]) for name in names}
            all_outputs = [np.concatenate(parts) for parts in zip(*(outputs for _, outputs in kept), strict=True)]
            figures = self.task.validated(all_targets, all_outputs)
        self.rate = self.solver.rate_at(max(0, self.step - 1), self.steps)
        line = self._point("validation", sums, figures)
        self.validated = self.step
        if self._better(line):
            self.best = line
        return True

    def _better(self, line: dict[str, Any]) -> bool:
        main = self.task.main
        sign = 1 if self.task.figures.get(main, "lower") == "higher" else -1
        value = sign * line.get(main, math.nan)
        return not math.isnan(value) and (self.best is None or value > sign * self.best[main])

    def _point(self, part: str, sums: dict[str, float], figures: dict[str, float]) -> dict[str, Any]:
        measured = {**self.task.measured(sums), **figures}
        line = {
            "step": self.step,
            "epoch": round(self.step / self.per_epoch, 6),
            "part": part,
            "loss": sums["loss"] / sums["count"],
            **{name: float(value) for name, value in measured.items()},
            "rate": self.rate,
        }
        self._curves.add(line)
        return line

    def _maybe_checkpoint(self) -> None:
        """Write a checkpoint if enough time has passed since the last; which steps have one changes no curve."""
        passed = time.monotonic() - self._saved
        epoch_ends = self.step % self.per_epoch == 0 and not self._validation_is_due()
        every = self.solver.keep_every * self.per_epoch
        keep = bool(every) and epoch_ends and self.step > 0 and self.step % every == 0
        worth = CHECKPOINT_EPOCH if epoch_ends else CHECKPOINT_STEP
        if keep or passed > max(worth, self._checkpoint_cost / MOST_WRITING):
            self._checkpoint(keep)

    def _checkpoint(self, keep: bool = False) -> None:
        began = time.monotonic()
        self._curves.sync()
        arrays = trained.variables(self.model)
        arrays |= {f"optimizer/{at}": np.asarray(one) for at, one in enumerate(self.optimizer.variables)}
        about = {
            "epoch": round(self.step / self.per_epoch, 6),
            "validated": self.validated,
            "best": self.best,
            "sums": self._sums,
            "notes": self._notes,
            "frozen": self._frozen,
            "seconds": self._spent(),
            **self._setting,
        }
        checkpoints.write(self.folder, self.step, arrays, about, keep)
        self._checkpoint_step, self._checkpoint_validated = self.step, self.validated
        self._saved = time.monotonic()
        self._checkpoint_cost = self._saved - began

    def _spent(self) -> float:
        return round(self._seconds + time.monotonic() - self._began, 3)

    def _tell(self) -> None:
        remaining = None
        if self._first and self.step > self._first[1]:
            since, step = self._first
            remaining = (time.monotonic() - since) / (self.step - step) * (self.steps - self.step)
        self._report(
            {
                "step": self.step,
                "steps": self.steps,
                "epoch": round(self.step / self.per_epoch, 3),
                "epochs": self.solver.epochs,
                "seconds": round(self._spent(), 1),
                "remaining": None if remaining is None else round(remaining, 1),
                "last": self._curves.last,
                "best": self.best,
                "notes": self._notes,
            }
        )


class _Batches:
    """The batches of the training set by step; the next one is prepared by a thread while a step runs."""

    def __init__(self, task: Task, per_epoch: int, images: int, executor: ThreadPoolExecutor) -> None:
        self._task, self._per_epoch, self._images, self._executor = task, per_epoch, images, executor
        self._seed, self._batch = task.spec.solver.seed, task.spec.solver.batch
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.arange(0))
        self._next: tuple[int, Future[Any]] | None = None

    def of(self, step: int, last: int) -> tuple[NDArray[np.float32], Targets]:
        """Return the batch of `step`, counted from 0; that of the next one is begun if it is before `last`."""
        waiting = self._next
        batch = waiting[1].result() if waiting and waiting[0] == step else self._prepared(step)
        self._next = (step + 1, self._executor.submit(self._prepared, step + 1)) if step + 1 < last else None
        return batch

    def _prepared(self, step: int) -> tuple[NDArray[np.float32], Targets]:
        epoch, at = divmod(step, self._per_epoch)
        if self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self._seed, epoch]).permutation(self._images)
        indices = self._order[1][at * self._batch : (at + 1) * self._batch]
        return self._task.batch("train", indices, epoch)


def _add(sums: dict[str, float], count: int, loss: Any, of_batch: dict[str, Any]) -> None:
    """Add a batch's figures to `sums`, in Python's numbers, which a checkpoint holds bit by bit."""
    for name, value in {"count": count, "loss": float(loss) * count, **of_batch}.items():
        sums[name] = sums.get(name, 0.0) + float(value)


def _optimizer(solver: Solver) -> Any:
    from keras import optimizers

    makers: dict[str, Callable[..., Any]] = {
        "sgd": lambda **o: optimizers.SGD(momentum=solver.momentum, **o),
        "nesterov": lambda **o: optimizers.SGD(momentum=solver.momentum, nesterov=True, **o),
        "adam": optimizers.Adam,
        "adamw": lambda **o: optimizers.AdamW(**{**o, "weight_decay": solver.decay}),  # None is refused
        "rmsprop": lambda **o: optimizers.RMSprop(momentum=solver.momentum, **o),
        "adagrad": optimizers.Adagrad,
        "adadelta": optimizers.Adadelta,
    }
    optimizer = makers[solver.optimizer](learning_rate=solver.rate, weight_decay=solver.decay or None)
    if solver.decay:
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    # Gradients of 16 bits would round to zero; the loss is scaled up before they are computed, and they are down after.
    return optimizers.LossScaleOptimizer(optimizer) if solver.precision == "mixed_float16" else optimizer
