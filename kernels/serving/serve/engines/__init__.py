"""What answers a batch: the interface that all servers of this lab take, and engines by name, as "module:function".

    engine = make("kernels.serving.serve.engines:digits")
    probabilities = engine.predict(images)          # (samples, *engine.shape) -> (samples, classes)

A name instead of an import: so a service, a replica on another machine, and Triton start the same engine from a line of
text, and an engine may come from anywhere, a module of yours too. Whatever has the attributes of `Engine` is one.
"""

import importlib
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kernels.serving.serve.engines import digits_network


class EngineError(ValueError):
    """An engine that cannot be made, or that breaks the interface: the message says which, why, and what to do."""


class Engine(Protocol):
    """`name`: what it serves, for people. `shape`: of one sample, float32.

    `predict(batch)`: float32, (samples, *shape), any number of samples from 1 on -> an array of numbers with a row for
    each sample, in their order. It may keep no state from batch to batch: a batch may be computed twice. It is called
    in threads other than the one that made the engine, by `at_once` of them at the same time (an attribute that may be
    missing: then by one). `close()` is called after the last batch, and `retries` counts batches that were computed
    again; both may be missing.
    """

    name: str
    shape: tuple[int, ...]

    def predict(self, batch: np.ndarray) -> np.ndarray: ...


def make(name: str, **options: Any) -> Engine:
    """Return the engine that the function called `name`, "package.module:function", returns for these options.

    Raise EngineError where there is no such function, where it refuses the options, and for anything that is no Engine.
    """
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), function]):
        raise EngineError(
            f"{name!r} is no name of an engine: write module:function, such as kernels.serving.serve.engines:digits"
        )
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise EngineError(
                f"there is no module {error.name!r}, which the engine {name!r} names; look at its spelling, and start "
                "in the folder of the course, or where your module can be imported"
            ) from None
        raise EngineError(f"the engine {name!r} needs the module {error.name!r}, which is not installed") from error
    factory = getattr(imported, function, None)
    if not callable(factory):
        raise EngineError(f"module {module!r} has no function {function!r}; look at the engine's spelling")
    try:
        engine = factory(**options)
    except (ValueError, TypeError, OSError, ImportError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items()) or "no options"
        raise EngineError(f"the engine {name!r} could not be made of {given}: {error}") from error
    return checked(engine, name)


def checked(engine: Any, name: str) -> Engine:
    """Return `engine` itself; EngineError if it lacks something of the interface."""
    missing = [wanted for wanted in ("name", "shape", "predict") if not hasattr(engine, wanted)]
    if missing:
        raise EngineError(f"{name!r} made a {type(engine).__name__}, which is no engine: it has no {missing[0]!r}")
    shape = engine.shape
    if not isinstance(shape, tuple) or not shape or not all(isinstance(n, int) and n > 0 for n in shape):
        raise EngineError(f"{name!r} has the shape {shape!r}; it must be a tuple of whole numbers above 0, of a sample")
    if at_once(engine) < 1:
        raise EngineError(f"{name!r} takes {engine.at_once} batches at once; it must be 1 or more")
    return engine


def at_once(engine: Engine) -> int:
    """Return how many batches the engine takes at the same time, each in a thread of its own."""
    return getattr(engine, "at_once", 1)


def close(engine: Engine) -> None:
    """Let the engine free what it holds, if it wants to."""
    getattr(engine, "close", lambda: None)()


def answer(engine: Engine, batch: np.ndarray) -> np.ndarray:
    """Return `engine.predict(batch)`, held to the interface: EngineError unless it has a finite row for each sample."""
    results = np.asarray(engine.predict(batch))
    if results.ndim < 1 or len(results) != len(batch) or results.dtype.kind not in "fiu":
        raise EngineError(
            f"the engine {engine.name} answered a batch of {len(batch)} with {results.dtype} of shape {results.shape}; "
            "it must answer numbers, a row for each sample"
        )
    if not np.isfinite(results).all():
        raise EngineError(f"the engine {engine.name} answered with numbers that are not finite")
    return results


def warm_up(engine: Engine) -> tuple[int, ...]:
    """Let the engine answer one sample of zeros, so that kernels are compiled before the first request.

    Returns the shape of an answer. EngineError if it answers otherwise than the interface says.
    """
    try:
        return answer(engine, np.zeros((1, *engine.shape), np.float32)).shape[1:]
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(f"the engine {engine.name} fails on its first sample, zeros: {error}") from error


# -- engines of this lab -----------------------------------------------------------------------------------------------


class DigitsInNumPy:
    """The lab's own network: images of digits, (1, 8, 8), from 0 to 1, to ten probabilities."""

    name = "digits in NumPy"
    shape = digits_network.IMAGE

    def __init__(self) -> None:
        self._weights = digits_network.load()

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Return probabilities, float32, (images, 10)."""
        return digits_network.probabilities(self._weights, batch)


def digits() -> Engine:
    """Return the network of `digits_network`, computed by NumPy."""
    return DigitsInNumPy()


class Virtual:
    """An engine that computes nothing and takes the time it is told: a batch of n takes per_batch + n · per_sample.

    It answers each sample with the sum of its numbers, so that answers can be told apart. `wait` is what lets time
    pass: `time.sleep` by default, or the clock of a simulation.
    """

    name = "virtual engine"

    def __init__(
        self,
        per_batch: float,
        per_sample: float,
        shape: tuple[int, ...] = (4,),
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        for what, seconds in (("per_batch", per_batch), ("per_sample", per_sample)):
            if isinstance(seconds, str) or not 0 <= seconds < math.inf:
                raise ValueError(f"{what} is {seconds!r} seconds; it must be a number, 0 or more")
        self.per_batch, self.per_sample, self.shape = per_batch, per_sample, tuple(shape)
        self._wait, self._one = wait, threading.Lock()

    def seconds(self, samples: int) -> float:
        """Return what a batch of so many samples takes."""
        return self.per_batch + samples * self.per_sample

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Return the sums, float64, (samples, 1), after `seconds(len(batch))`."""
        with self._one:
            self._wait(self.seconds(len(batch)))
        return batch.reshape(len(batch), -1).sum(axis=1, dtype=np.float64)[:, None]


def virtual(per_batch: float = 0.002, per_sample: float = 0.0001, shape: tuple[int, ...] = (4,)) -> Engine:
    """Return a `Virtual` engine that sleeps. Times in seconds."""
    return Virtual(per_batch, per_sample, shape)
