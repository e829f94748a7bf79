"""How long a step of data-parallel training takes on k GPUs: computation, and gradients averaged meanwhile.

Every GPU trains on its own images, as many whatever k is (weak scaling), and has all the weights. After the backward
pass of a layer its gradient is known; gradients are put into buckets, and a full bucket is averaged over all GPUs by an
all-reduce while the backward pass goes on. The step ends when both are done:

    step = max(end of the backward pass, end of the last all-reduce)      efficiency = step on 1 GPU / step on k GPUs

Assumed, and wrong to some degree in every cluster:
- a third of the computation is the forward pass, two thirds the backward pass, in proportion to each layer's
  multiply-adds (layers that are bound by memory take longer than that);
- all-reduces run one after the other and take what the alpha–beta model says, with the links' nominal bandwidth;
- they slow the computation down by nothing, although they take memory bandwidth and multiprocessors;
- all GPUs are equally fast (`jitter` = 0), the input is never late, the update of the weights costs nothing;
- the network between nodes has no contention.
So it is a bound: a real cluster is slower. `published` says by how much some were.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from kernels.collectives import model
from kernels.collectives.model import Link
from kernels.collectives.networks import LayerCost

FORWARD = 1 / 3  # of the computation
GRADIENT = 4  # bytes per parameter, float32
BUCKET = 25 * 2**20  # bytes: PyTorch's default bucket_cap_mb

AllReduce = Callable[[float, int], float]  # (bytes, GPUs) to seconds


@dataclass(frozen=True)
class Cluster:
    """Nodes of `per_node` GPUs. `inside`: what a ring over the GPUs of one node gets; `network`: what a node has.

    `algorithm`: "flat ring" over all GPUs, as NCCL's ring, "hierarchical" (rings in nodes, and across), "halving and
    doubling" across nodes after a reduction inside, as in Goyal and others (2017), or "best" of the three.
    """

    per_node: int
    inside: Link
    network: Link
    algorithm: str = "best"

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"there is no algorithm {self.algorithm!r}; choose one of {', '.join(ALGORITHMS)}")
        if self.per_node < 1:
            raise ValueError(f"a node has at least one GPU, not {self.per_node}")

    def all_reduce(self, n: float, gpus: int) -> float:
        """Return seconds of an all-reduce of n bytes over `gpus`. ValueError unless they fill whole nodes."""
        if gpus <= self.per_node:
            return model.ring_all_reduce(n, gpus, gpus, self.inside) if gpus > 1 else 0.0
        if gpus % self.per_node:
            raise ValueError(f"{gpus} GPUs are no whole number of nodes of {self.per_node}")
        if self.algorithm == "best":
            return min(time(self, n, gpus // self.per_node) for time in ALGORITHMS.values() if time is not None)
        return ALGORITHMS[self.algorithm](self, n, gpus // self.per_node)


def flat_ring(cluster: Cluster, n: float, nodes: int) -> float:
    """Return one ring through all GPUs, into each node and out of it once; its slowest hop sets the pace."""
    gpus = nodes * cluster.per_node
    slowest = Link(
        max(cluster.inside.alpha, cluster.network.alpha), min(cluster.inside.bandwidth, cluster.network.bandwidth)
    )
    return model.ring_all_reduce(n, gpus, gpus, slowest)


def hierarchical(cluster: Cluster, n: float, nodes: int) -> float:
    """Return reduce-scatter in nodes, all-reduce across them for each place, all-gather; GPUs share the network."""
    share = Link(cluster.network.alpha, cluster.network.bandwidth / cluster.per_node)
    return model.hierarchical_ring_all_reduce(n, nodes, cluster.per_node, cluster.inside, share)


def halving_doubling(cluster: Cluster, n: float, nodes: int) -> float:
    """Reduce to one GPU of each node, halving and doubling across nodes, broadcast: 2⌈log2 nodes⌉ messages."""
    g = cluster.per_node
    inside = 2 * (model.best_ring_broadcast(n, g, cluster.inside) if g > 1 else 0.0)
    steps = 2 * math.ceil(math.log2(nodes)) * cluster.network.alpha
    return inside + steps + 2 * (nodes - 1) / nodes * n / cluster.network.bandwidth


ALGORITHMS: dict[str, Callable[[Cluster, float, int], float] | None] = {
    "flat ring": flat_ring,
    "hierarchical": hierarchical,
    "halving and doubling": halving_doubling,
    "best": None,
}


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together. `ready`, `begin`, `end` in seconds from the step's start; `layers`: how many."""

    n: float
    layers: int
    ready: float
    begin: float
    end: float


@dataclass(frozen=True)
class TrainingStep:
    """A step of training: the forward pass ends at `forward`, the backward pass at `backward`, all at `end` seconds."""

    forward: float
    backward: float
    buckets: tuple[Bucket, ...]

    @property
    def end(self) -> float:
        return max([self.backward, *(bucket.end for bucket in self.buckets)])

    @property
    def exposed(self) -> float:
        """Return seconds of communication that the backward pass does not hide."""
        return self.end - self.backward


def step(
    layers: Sequence[LayerCost],
    compute: float,
    gpus: int,
    all_reduce: AllReduce,
    bucket: float = BUCKET,
    overlap: bool = True,
    jitter: float = 0.0,
) -> TrainingStep:
    """Return a step on `gpus` GPUs. `compute`: seconds of forward and backward pass on one GPU.

    `bucket`: bytes at which a bucket is sent; 0 sends each layer's gradient alone, infinity all at once. `overlap`:
    whether buckets travel during the backward pass, or all after it. `jitter`: the standard deviation of a GPU's
    computation as a share of it; the step waits for the slowest of k normal draws, by Blom's approximation of its mean.
    """
    if gpus < 1 or compute <= 0:
        raise ValueError(f"a step needs at least one GPU and takes time to compute, not {gpus} and {compute} s")
    slowed = compute * (1 + jitter * slowest_of(gpus))
    macs = sum(layer.macs for layer in layers)
    now = forward = slowed * FORWARD
    backward = slowed
    waiting, count, free, found = 0.0, 0, 0.0, []
    for i, layer in enumerate(reversed(layers)):
        now += (1 - FORWARD) * slowed * layer.macs / macs
        waiting += GRADIENT * layer.parameters
        count += 1
        if waiting >= bucket or i == len(layers) - 1:
            ready = min(now, backward)  # rounding may have carried the sum of the layers beyond their total
            begin = max(ready if overlap else backward, free)
            free = begin + all_reduce(waiting, gpus)
            found.append(Bucket(waiting, count, ready, begin, free))
            waiting, count = 0.0, 0
    return TrainingStep(forward, backward, tuple(found) if gpus > 1 else ())


def slowest_of(k: int) -> float:
    """Return the mean largest of k standard normal draws, by Blom (1958): Φ⁻¹((k − 0.375)/(k + 0.25)); 0 for k = 1."""
    return NormalDist().inv_cdf((k - 0.375) / (k + 0.25)) if k > 1 else 0.0


def efficiency(
    layers: Sequence[LayerCost], compute: float, gpus: int, all_reduce: AllReduce, base: int = 1, **options: float
) -> float:
    """Return the throughput per GPU on `gpus`, as a share of that on `base` GPUs. `options`: those of `step`."""
    return (
        step(layers, compute, base, all_reduce, **options).end / step(layers, compute, gpus, all_reduce, **options).end
    )
