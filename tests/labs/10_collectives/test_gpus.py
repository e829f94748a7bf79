"""The engines and kernels of lab 10 on GPUs: several ranks on one GPU, and one rank per GPU where there are two."""

from __future__ import annotations

import time

import numpy as np
import pytest

from kernels.collectives import interpreter, nccl, nccl_window, on_gpus
from kernels.collectives.data_parallel import Task, difference, train_alone
from kernels.collectives.data_parallel_gpu import WAYS, Training, timeline
from kernels.collectives.gpu_ranks import GpuTimeout, Ranks
from kernels.collectives.recursive import halving_doubling_all_reduce, recursive_doubling_all_reduce
from kernels.collectives.relays import OneShotAllReduce, StoreBroadcast, TmaAllReduce, TmaBroadcast, TwoShotAllReduce
from kernels.collectives.ring import ring_all_gather, ring_all_reduce, ring_broadcast, ring_reduce_scatter
from tests.support.waiting import HANG
from warpcourse.bench import hopper, timing

pytestmark = pytest.mark.gpu
GPUS = timing.gpu_count()
SEED = 11
PLACES = [
    pytest.param(False, id="one GPU"),
    pytest.param(True, id="a GPU per rank", marks=pytest.mark.skipif(GPUS < 2, reason=f"needs two GPUs; here: {GPUS}")),
]
RANKS = [
    pytest.param(k, marks=pytest.mark.skipif(k > GPUS, reason=f"needs {k} GPUs; this machine has {GPUS}"))
    for k in (2, 4)
]
on_k_gpus = pytest.mark.parametrize("k", RANKS)


def devices(k: int, several: bool) -> list[int]:
    """A GPU for each of k ranks; with more ranks than GPUs they take turns."""
    return [rank % GPUS if several else 0 for rank in range(k)]


def whole_numbers(k: int, n: int, dtype=np.float32) -> list[np.ndarray]:
    generator = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    return [generator.integers(-99, 100, n).astype(dtype) for _ in range(k)]


@pytest.fixture(scope="module", autouse=True)
def _hopper():
    if not hopper.available():
        pytest.skip("needs a GPU of compute capability 9.0")


@pytest.mark.parametrize("several", PLACES)
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    "schedule",
    [
        ring_broadcast(2, 8),
        ring_broadcast(4, 5, root=2),
        ring_all_reduce(2, 8),
        ring_all_reduce(3, 6),
        ring_reduce_scatter(4, 8),
        ring_all_gather(3, 3),
        recursive_doubling_all_reduce(4, 3),
        halving_doubling_all_reduce(4, 4),
    ],
    ids=lambda schedule: f"{schedule.collective}-{schedule.ranks}",
)
def test_copies_end_as_the_interpreter_says(schedule, graph, several):
    arrays = whole_numbers(schedule.ranks, 100_003)
    found = on_gpus.run(schedule, arrays, graph=graph, devices=devices(schedule.ranks, several))
    for got, want in zip(found, interpreter.run(schedule, arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("several", PLACES)
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [4, 1000, 1_000_004])
@pytest.mark.parametrize("kind", [StoreBroadcast, TmaBroadcast, TmaAllReduce])
def test_relays(kind, n, k, several):
    ranks, arrays = Ranks(k, devices(k, several)), whole_numbers(k, n)
    relay = kind(ranks)
    for _ in range(3):  # the mailboxes go on from launch to launch
        buffers = ranks.put(arrays)
        relay.launch(buffers)
        ranks.wait("the relay", 10)
        want = np.sum(arrays, axis=0) if kind is TmaAllReduce else arrays[0]
        for got in ranks.get(buffers):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("several", PLACES)
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("kind", [OneShotAllReduce, TwoShotAllReduce])
def test_small_messages_give_all_ranks_the_same_bits(kind, k, several):
    ranks, generator = Ranks(k, devices(k, several)), np.random.default_rng(SEED)
    small = kind(ranks)
    for n in (2, 1000, 2**18, 2, 1000):
        arrays = [generator.standard_normal(n, dtype=np.float32) for _ in range(k)]
        outputs = ranks.put([np.full(n, np.nan, np.float32)] * k)
        small.launch(ranks.put(arrays), outputs)
        ranks.wait("the all-reduce", 10)
        want = arrays[0].copy()
        for array in arrays[1:]:
            want += array
        for got in ranks.get(outputs):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("several", PLACES)
@pytest.mark.parametrize("absent", [0, 1])
@pytest.mark.parametrize("kind", [StoreBroadcast, TmaBroadcast])
def test_a_rank_that_does_not_take_part_is_an_error_in_time(kind, absent, several):
    k, n = 3, 4_000_000
    ranks = Ranks(k, devices(k, several))
    buffers = ranks.put([np.zeros(n, np.float32)] * k)
    kind(ranks).launch(buffers, skip=[absent])
    start = time.monotonic()
    with pytest.raises(GpuTimeout, match=r"had not ended after 1 s at rank"):
        ranks.wait("the broadcast", 1)
    assert time.monotonic() - start < HANG  # a time limit, not a speed
    kind(ranks).launch(buffers)  # the GPUs work again
    ranks.wait("the broadcast", 10)
    outputs = ranks.put([np.zeros(1000, np.float32)] * k)
    OneShotAllReduce(ranks).launch(outputs, outputs, skip=[absent])
    with pytest.raises(GpuTimeout) as caught:
        ranks.wait("the one-shot all-reduce", 1)
    assert absent not in caught.value.ranks


def test_a_link_that_does_not_deliver_is_named():
    """A kernel that waits for ever keeps the link's stream from copying."""
    schedule = ring_broadcast(2, 2)
    ranks = Ranks(2, devices(2, GPUS > 1))
    messages = on_gpus.Messages(schedule, ranks, ranks.put(whole_numbers(2, 1000)))
    boxes = TmaBroadcast(ranks, blocks=1)
    boxes.launch(ranks.put(whole_numbers(2, 1000)), skip=[1])  # rank 0 waits for rank 1
    messages.launch()
    with pytest.raises(GpuTimeout, match=r"from rank 0 to rank 1 had not all come after 1 s"):
        messages.wait(1)


def expected(collective, arrays, rank):
    """(the part of rank's result that is of worth, what it must be)."""
    k, n = len(arrays), arrays[0].size
    parts = [slice(r * (n // k), (r + 1) * (n // k)) for r in range(k)]
    everything = slice(0, n)
    match collective:
        case "broadcast":
            return everything, arrays[0]
        case "all-gather":
            return everything, np.concatenate([array[part] for array, part in zip(arrays, parts, strict=True)])
    total = np.sum(arrays, axis=0)
    return (everything, total) if collective == "all-reduce" else (parts[rank], total[parts[rank]])


@on_k_gpus
@pytest.mark.parametrize("collective", nccl.COLLECTIVES)
def test_nccl(collective, k):
    arrays, ranks = whole_numbers(k, 100_000), Ranks(k)
    nccls, buffers = nccl.Nccl(ranks), ranks.put(arrays)
    nccls.launch(collective, buffers)
    nccls.wait()
    for rank, got in enumerate(ranks.get(buffers)):
        part, want = expected(collective, arrays, rank)
        np.testing.assert_array_equal(got[part], want)


@on_k_gpus
@pytest.mark.parametrize("n", [1024, 10**7])
def test_nccl_in_a_symmetric_window(n, k):
    ranks = Ranks(k)
    nccls = nccl.Nccl(ranks)
    try:
        buffers = nccl_window.symmetric(nccls, n)
    except nccl_window.NoWindow as error:
        pytest.skip(str(error))
    arrays = whole_numbers(k, n)
    for rank, buffer in enumerate(buffers):
        with ranks.on(rank):
            buffer.set(arrays[rank])
    nccls.launch("all-reduce", buffers)
    nccls.wait()
    for got in ranks.get(buffers):
        np.testing.assert_array_equal(got, np.sum(arrays, axis=0))


@on_k_gpus
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_sgd_gives_the_weights_of_one_device(way, overlap, k):
    task = Task(sizes=(64, 256, 256, 10), batch=128, steps=10)
    reference, _ = train_alone(task)
    weights = Training(task, k, way=way, overlap=overlap).train()
    assert max(difference(reference, found) for found in weights) < 1e-4
    for one, *others in zip(*weights, strict=True):
        for other in others:
            np.testing.assert_array_equal(one, other)
    apart = Training(task, k, way=None).train()  # without the sums they come to differ
    assert difference(apart[0], apart[1]) > 1e-3


@on_k_gpus
def test_timeline_of_a_step(k):
    task = Task(sizes=(64, 256, 256, 10), batch=128, steps=2)
    rows = timeline(Training(task, k))
    names = {"forward", *(f"{what} {layer}" for what in ("backward", "sum") for layer in range(3)), "update"}
    for rank in range(k):
        assert {row["what"] for row in rows if row["rank"] == rank} == names
    assert all(row["end"] >= row["begin"] for row in rows)
