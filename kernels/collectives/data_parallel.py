"""Data-parallel SGD: k ranks hold the same network, each computes the gradient of its part of the batch, an all-reduce
averages the gradients, and all take the same step: that of a single device with the whole batch, to rounding.

    python -m kernels.collectives.data_parallel --ranks 4     on processes, by MPI, compared with one device

On GPUs, overlapped: data_parallel_gpu.py. The lesson's `train` has all ranks in one process.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.collectives.mpi_ranks import SECONDS, MpiMissing, Rank, RankFailed, be_rank, launch
from kernels.collectives.over_mpi import run_rank
from kernels.collectives.perceptron import Perceptron, clusters
from kernels.collectives.ring import ring_all_reduce

TOLERANCE = 1e-5  # of float32, ||a - b|| / ||a||, after some tens of steps


@dataclass(frozen=True)
class Task:
    """What is trained: a perceptron of `sizes` on `batch` points per step, for `steps` steps at `rate`."""

    sizes: tuple[int, ...] = (32, 64, 64, 10)
    batch: int = 64
    steps: int = 20
    rate: float = 0.1
    seed: int = 1

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return points and classes of all steps."""
        return clusters(self.batch * self.steps, self.sizes[0], self.sizes[-1], self.seed)

    def part(self, step: int, rank: int, ranks: int) -> slice:
        """Return the points that a rank takes in a step. Raise ValueError if the batch cannot be shared out equally."""
        if self.batch % ranks:
            raise ValueError(
                f"a batch of {self.batch} cannot be shared out equally to {ranks} ranks, whose gradients are averaged; "
                f"take a multiple of {ranks}"
            )
        points = self.batch // ranks
        start = step * self.batch + rank * points
        return slice(start, start + points)


def train_alone(task: Task) -> tuple[list[np.ndarray], list[float]]:
    """Return the layers' parameters after training on one device with the whole batch, and the loss of each step."""
    return train_rank(task, 0, 1, lambda gradient: gradient)


def train_rank(
    task: Task, rank: int, ranks: int, all_reduce: Callable[[np.ndarray], np.ndarray]
) -> tuple[list[np.ndarray], list[float]]:
    """Return one rank's training: its parameters in the end, and the losses on its parts of the batches.

    `all_reduce`: takes this rank's array and returns the sum over all ranks.
    """
    x, labels = task.data()
    network, losses = Perceptron(task.sizes, task.seed), []
    for step in range(task.steps):
        part = task.part(step, rank, ranks)
        losses.append(float(network.backward(x[part], labels[part])))
        for layer in range(len(network.gradients) - 1, -1, -1):
            network.gradients[layer] = all_reduce(network.gradients[layer]) / np.float32(ranks)
            network.step(layer, task.rate)
    return network.parameters, losses


def difference(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Return ||one - other|| / ||one|| over all layers."""
    a, b = (np.concatenate([layer.ravel() for layer in layers]).astype(np.float64) for layers in (one, other))
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


# --- Over processes --------------------------------------------------------------------------------------------------


def train_over_mpi(task: Task, ranks: int, *, seconds: float = SECONDS) -> list[dict[str, Any]]:
    """Train on as many processes. Of each rank: `difference` of its weights from those of one device, the `digest` of
    its weights, and its `losses`. Raise RankFailed, naming the rank, if one dies or they take longer than `seconds`.
    """
    task.part(0, 0, ranks)
    fields = (",".join(map(str, task.sizes)), task.batch, task.steps, task.rate, task.seed)
    names = ("--sizes", "--batch", "--steps", "--rate", "--seed")
    arguments = [str(text) for pair in zip(names, fields, strict=True) for text in pair]
    return launch(__spec__.name, [*arguments, "--seconds", str(seconds)], ranks, seconds=seconds)


def _train_as(task: Task, rank: Rank) -> dict[str, Any]:
    schedule = ring_all_reduce(rank.ranks, rank.ranks)

    def all_reduce(gradient: np.ndarray) -> np.ndarray:
        run_rank(schedule, gradient, rank)
        return gradient

    weights, losses = train_rank(task, rank.number, rank.ranks, all_reduce)
    reference, _ = train_alone(task)
    digest = hashlib.sha256(b"".join(layer.tobytes() for layer in weights)).hexdigest()[:16]
    return {"difference": difference(reference, weights), "digest": digest, "losses": losses}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0, or 1 if the ranks' weights are not those of one device, or a rank failed."""
    default = Task()
    parser = argparse.ArgumentParser(
        prog="python -m kernels.collectives.data_parallel", description="Data-parallel SGD over processes by MPI."
    )
    parser.add_argument("--ranks", type=int, default=4)
    sizes = ",".join(map(str, default.sizes))
    parser.add_argument("--sizes", default=sizes, help="units of the layers, features first (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=default.batch, help="points of all ranks (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--rate", type=float, default=default.rate)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit (default: %(default)s)")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    task = Task(
        *(tuple(int(size) for size in chosen.sizes.split(",")), chosen.batch, chosen.steps, chosen.rate, chosen.seed)
    )
    if chosen.as_rank:
        return be_rank(chosen.seconds, functools.partial(_train_as, task))
    try:
        results = train_over_mpi(task, chosen.ranks, seconds=chosen.seconds)
    except (RankFailed, MpiMissing, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    apart = max(result["difference"] for result in results)
    same = len({result["digest"] for result in results}) == 1
    first, last = (float(np.mean([result["losses"][step] for result in results])) for step in (0, -1))
    print(
        f"{chosen.ranks} ranks, {task.steps} steps, seed {task.seed}: loss {first:.3f} to {last:.3f}; all ranks hold "
        f"{'the same weights' if same else 'DIFFERENT weights'}, {apart:.1e} from those of one device"
    )
    return 0 if same and apart < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
