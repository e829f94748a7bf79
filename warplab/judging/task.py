"""`Task`: what a kernel has to do, declared: inputs, reference in NumPy, launches, tolerances, limits.

import numpy as np
from warplab.judging.task import Launch, Task

task = Task(
    sizes=({"n": 1}, {"n": 1000}, {"n": 4099}),
    inputs=lambda rng, n: {"a": rng.random(n, np.float32), "b": rng.random(n, np.float32)},
    outputs=lambda n: {"c": (n, np.float32)},
    reference=lambda a, b, n: {"c": a + b},
    launches=lambda n: [Launch("add", (n + 255) // 256, 256, ("a", "b", "c", np.int32(n)))],
    limits={"sectors_per_request__le": 4.2},
)
"""

import math
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from warplab.launch.dimensions import dimensions
from warplab.running.strictness import BOOKS
from warplab.simulator.run.launch_limits import check_shape

Size = Mapping[str, int]


@dataclass(frozen=True)
class Launch:
    """One launch. `args`: names of arrays of the task, and NumPy numbers. `shared_bytes`: dynamic, per block."""

    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: tuple[Any, ...]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Task:
    """What an answer is judged by. Each function is called with the numbers of a size by name.

    `sizes`: the cases, the last one counts for `limits` and times. `inputs(rng, ...)`: arrays by name, made with the
    generator that it is given. `outputs(...)`: shape and dtype by name of the arrays that the kernels write; one that
    is an input, too, begins with its values, any other with random bytes. `reference(...)`: gets the inputs by name,
    too, and returns what the outputs must hold. `launches(...)`: in order, on one device.
    `rtol`, `atol`: as of numpy.allclose, for floating point; integers must be equal. `limits`: of counters, as of
    `warplab.assert_counters`, summed over the launches. `options`: NVRTC's, for an answer in CUDA C++. `strict`: the
    rule book of `warplab run --strict`. `max_seconds`: for one launch in the simulator.
    """

    sizes: Sequence[Size]
    inputs: Callable[..., dict[str, np.ndarray]]
    outputs: Callable[..., dict[str, tuple]]
    reference: Callable[..., dict[str, np.ndarray]]
    launches: Callable[..., list[Launch]]
    rtol: float = 1e-5
    atol: float = 1e-6
    limits: Mapping[str, float] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    strict: str = "course"
    max_seconds: float = 60.0


class BadTask(Exception):
    """A task that is none, or contradicts itself; the message is the sentence that says so."""


def load(path: str) -> Task:
    """Return the task of a file, its variable `task`. Raises BadTask. The file is the judge's own: it is executed."""
    try:
        found = runpy.run_path(path).get("task")
    except OSError as error:
        raise BadTask(f"the task {path} cannot be read: {error.strerror}") from None
    except (Exception, SystemExit) as error:
        raise BadTask(f"the task {path} ends in {type(error).__name__}: {error}") from error
    if not isinstance(found, Task):
        raise BadTask(f"{path} defines no task = Task(...) of warplab.judging.task")
    if not isinstance(found.sizes, Sequence) or not found.sizes:
        raise BadTask(f"{path}: sizes={found.sizes!r} holds no size; give at least one, such as ({{'n': 1000}},)")
    if not isinstance(found.limits, Mapping) or not all(isinstance(name, str) for name in found.limits):
        raise BadTask(
            f"{path}: limits={found.limits!r} is no dict by counter, such as {{'sectors_per_request__le': 4}}"
        )
    if found.strict not in tuple(BOOKS):
        raise BadTask(f"{path}: there is no rule book {found.strict!r}; choose among {', '.join(BOOKS)}")
    if wrong := [name for name in ("inputs", "outputs", "reference", "launches") if not callable(getattr(found, name))]:
        raise BadTask(f"{path}: {wrong[0]}={getattr(found, wrong[0])!r} is no function")
    for name in ("rtol", "atol", "max_seconds"):
        if not (isinstance(number := getattr(found, name), Real) and float(number) >= 0):
            raise BadTask(f"{path}: {name}={number!r} is no number of 0 or more")
        if name != "max_seconds" and math.isinf(number):
            raise BadTask(f"{path}: {name}={number!r} takes every answer for right")
    if isinstance(found.options, str) or not all(isinstance(option, str) for option in found.options):
        raise BadTask(f"{path}: options={found.options!r} is no sequence of strings, such as ('-DN=64',)")
    return found


@dataclass(frozen=True)
class Case:
    """A task at one size: its arrays before the launches, what they must hold after, and the launches."""

    size: Size
    inputs: dict[str, np.ndarray]
    start: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    launches: list[Launch]


def case(task: Task, size: Size, rng: np.random.Generator, *, referred: bool = True) -> Case:
    """Draw the arrays of one case; without `referred` nothing is `expected`. Raises BadTask where the parts of the task
    do not fit together."""
    try:
        return _case(task, size, rng, referred)
    except (Exception, SystemExit) as error:
        if isinstance(error, BadTask):
            raise
        raise BadTask(f"the task at size {size!r} ends in {type(error).__name__}: {error}") from error


def _case(task: Task, size: Size, rng: np.random.Generator, referred: bool) -> Case:
    inputs = {name: np.ascontiguousarray(array) for name, array in task.inputs(rng, **size).items()}
    start = {name: array.copy() for name, array in inputs.items()}
    shapes = task.outputs(**size)
    for name, (shape, dtype) in shapes.items():
        if name not in start:
            empty = np.empty(shape, dtype)
            start[name] = np.frombuffer(rng.bytes(empty.nbytes), empty.dtype).reshape(empty.shape)
    launches = task.launches(**size)
    unknown = {arg for launch in launches for arg in launch.args if isinstance(arg, str)} - start.keys()
    if unknown or not launches:
        raise BadTask(f"launches names {_names(unknown)}, which is no array" if unknown else "launches gives none")
    for launch in launches:
        check_shape(dimensions(launch.grid, "grid"), dimensions(launch.block, "block"))
    if not referred:
        return Case(size, inputs, start, {}, launches)
    expected = {name: np.asarray(array) for name, array in task.reference(**inputs, **size).items()}
    if expected.keys() != shapes.keys():
        raise BadTask(f"reference gives {_names(expected)}, outputs declares {_names(shapes)}")
    for name, array in expected.items():
        if array.dtype.kind in "OSU":
            raise BadTask(f"reference gives {name} of {array.dtype}, which is no number")
        if array.shape != start[name].shape:
            raise BadTask(f"reference gives {name} of shape {array.shape}, outputs declares {start[name].shape}")
    return Case(size, inputs, start, expected, launches)


def _names(names) -> str:
    return ", ".join(sorted(names)) or "nothing"
