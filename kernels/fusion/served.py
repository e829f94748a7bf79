"""Plans as a server takes them: a name, the shape of a sample, and `predict(batch)` for any number of samples.

    served = trained(batches=[1, 8, 32])                 # or from_files(["digits-1.plan", "digits-32.plan"])
    probabilities = served.predict(images)

A plan is built for one batch, and the engine fills up a smaller one with zeros: in a plan for 32 one sample takes as
long as 32. A server that batches what arrives has batches of all sizes; so there are several plans, and each batch goes
to the smallest that holds it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kernels.fusion.plan import Plan, PlanError, build, plan_file, tuning
from kernels.fusion.plan.engine import Engine
from kernels.fusion.trained.variants import variant

BATCHES = (1, 8, 32)


class Served:
    """Engines of the same network for different batches. One caller at a time: they share no memory, but each has one.

    `name`: the network and its batches. `shape`: of a sample. PlanError for plans of several inputs or outputs, or of
    different networks.
    """

    def __init__(self, plans: Iterable[Plan]) -> None:
        by_batch = {plan.batch: plan for plan in plans}
        if not by_batch:
            raise PlanError("there is no plan to serve: give at least one")
        sides = {batch: _sides(plan) for batch, plan in by_batch.items()}
        (self.shape, self.answer_shape), *others = sides.values()
        if any(other != (self.shape, self.answer_shape) for other in others):
            told = "; ".join(f"batch {batch}: {a} to {b}" for batch, (a, b) in sides.items())
            raise PlanError(f"these plans are of different networks ({told}): give plans of one")
        self._engines = {batch: Engine(by_batch[batch]) for batch in sorted(by_batch)}
        first = next(iter(by_batch.values()))
        self.name = f"{first.graph.name}, plans for {', '.join(map(str, self._engines))} on {first.device}"

    @property
    def batches(self) -> tuple[int, ...]:
        """Return the batches that there are plans for, the smallest first."""
        return tuple(self._engines)

    def parts(self, samples: int) -> list[tuple[int, int]]:
        """Return how so many samples are run: (samples, the batch of the plan that takes them), one after the other."""
        largest = self.batches[-1]
        whole = [(largest, largest)] * (samples // largest)
        rest = samples % largest
        return whole + ([(rest, next(batch for batch in self.batches if batch >= rest))] if rest else [])

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Return the network's output, float32, (samples, *answer_shape), for float32, (samples, *shape), one or more.

        ValueError for another shape. Plans for different batches may sum in different orders.
        """
        if batch.shape[1:] != self.shape or not len(batch):
            raise ValueError(f"the samples have the shape {batch.shape}; it must be (samples, *{self.shape})")
        found, start = [], 0
        for count, size in self.parts(len(batch)):
            found.append(self._engines[size].run(batch[start : start + count]))
            start += count
        return np.concatenate(found)


def trained(batches: Sequence[int] = BATCHES, kind: str = "float32", tuned: bool = False) -> Served:
    """Return the lab's trained network with plans for these batches.

    `kind`: a key of `variants.KINDS`. `tuned`: time all tactics first, on a GPU seconds, and take the fastest. Images
    (1, 8, 8), from 0 to 1, to ten probabilities.
    """
    wrong = [batch for batch in batches if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1]
    if wrong:
        raise ValueError(f"batches holds {wrong[0]!r}; each must be a whole number, 1 or more")
    graph = variant(kind)
    return Served(build(graph, batch, tuned=tuning.tune(graph, batch) if tuned else None) for batch in batches)


def from_files(paths: str | Path | Sequence[str | Path]) -> Served:
    """Return the plans in these files, of one network for different batches; what `plan_file.load` raises for damaged
    ones."""
    given = [paths] if isinstance(paths, str | Path) else paths
    plans = [plan_file.load(path) for path in given]
    if len({plan.batch for plan in plans}) < len(plans):
        raise PlanError(f"two of {', '.join(map(str, given))} are for the same batch: give each batch once")
    return Served(plans)


def _sides(plan: Plan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    graph = plan.graph
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise PlanError(
            f"{graph.name} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs; a server takes one of each"
        )
    return tuple(graph.tensors[graph.inputs[0]].shape), tuple(graph.tensors[graph.outputs[0]].shape)
