"""On a GPU of compute capability 9.0: tensor maps, TMA, clusters and mbarriers do what the simulator's tests expect."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import hopper_launches
from tests.warplab.simulator.run import test_async_copies as async_copies
from tests.warplab.simulator.run import test_clusters as clusters
from tests.warplab.simulator.run import test_tensor_copies as tensor_copies
from warpcourse.bench import hopper
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """The tests of the simulator launch on the GPU."""
    import cupy

    if not hopper.available():
        pytest.skip("needs a GPU of compute capability 9.0")
    for module in (tensor_copies, clusters, async_copies):
        monkeypatch.setattr(module, "simulate", hopper_launches.launch)
    for name in ("encode_tiled", "encode_im2col"):
        monkeypatch.setattr(tensor_copies, name, getattr(hopper_launches, name))
    monkeypatch.setattr(tensor_copies, "cp", cupy)
    monkeypatch.setattr(tensor_copies, "as_map", lambda data: data.view("V128"))


@pytest.mark.parametrize("case", tensor_copies.TILED, ids=str)
def test_boxes(case):
    tensor_copies.test_boxes(case)


@pytest.mark.parametrize("case", tensor_copies.IM2COL, ids=str)
def test_columns_of_pixels(case):
    tensor_copies.test_columns_of_pixels(case)


@pytest.mark.parametrize(("cluster", "mask"), [(2, 3), (4, 0b1010), (4, 1)])
def test_multicast(cluster, mask):
    tensor_copies.test_multicast(cluster, mask)


@pytest.mark.parametrize("at", [(0, 0), (8, 17), (40, 5), (16, 0)])
@pytest.mark.parametrize("span", [0, 128])
def test_stored_boxes(at, span):
    tensor_copies.test_stored_boxes(at, span)


OPERATIONS = [
    ("i4", "add", lambda a, b: a + b),
    ("f4", "add", lambda a, b: a + b),
    ("f2", "add", lambda a, b: a + b),
    ("u4", "min", min),
    ("i4", "max", max),
    ("u4", "and", lambda a, b: a & b),
    ("u8", "or", lambda a, b: a | b),
    ("u4", "xor", lambda a, b: a ^ b),
]


@pytest.mark.parametrize(("dtype", "name", "operation"), OPERATIONS, ids=[f"{o[0]}-{o[1]}" for o in OPERATIONS])
def test_reductions(dtype, name, operation):
    tensor_copies.test_reductions(dtype, name, operation)


@pytest.mark.parametrize(
    "test",
    [
        tensor_copies.test_nan_outside,
        tensor_copies.test_hints_and_one_elected_thread,
        tensor_copies.test_every_thread_may_ask_for_a_box,
        tensor_copies.test_stored_boxes_of_more_axes,
        tensor_copies.test_stored_pixels,
        clusters.test_blocks_write_into_one_another,
        clusters.test_atomics_and_generic_addresses,
        clusters.test_kinds_of_addresses,
        clusters.test_bulk_copies_between_blocks,
        clusters.test_what_one_thread_learns_a_barrier_passes_on,
        async_copies.test_bulk_copy_to_global_memory,
        async_copies.test_a_source_of_no_bytes_is_not_read,
        async_copies.test_pipeline_of_a_thread,
        async_copies.test_barrier_of_a_block,
        async_copies.test_pipeline_of_a_block,
    ],
    ids=lambda test: test.__name__,
)
def test_what_the_simulator_does(test):
    test()


def test_registers():
    clusters.test_registers(chunk_lanes=1)


@pytest.mark.parametrize("blocks", [4, 12])
def test_blocks_read_what_the_next_one_has(blocks):
    clusters.test_blocks_read_what_the_next_one_has(blocks)


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_pipelines(tiles):
    clusters.test_mbarriers_across_blocks(tiles)
    async_copies.test_producer_and_consumer(tiles)
    async_copies.test_bulk_copies(tiles)


F4, U4 = np.float32, np.uint32
KERNELS = [  # module, name, blocks, threads, arguments
    (clusters, "sent", 4, 64, (clusters.numbers(512).astype(U4), np.zeros(512, U4))),
    (clusters, "added", 2, 128, (clusters.numbers(512).astype(U4), np.zeros(512, U4))),
    (async_copies, "phases", 1, 1, (np.full(20, 9, U4), np.int32(2))),
    (async_copies, "send_waiting", 1, 64, (async_copies.numbers(320), np.zeros(320, F4), np.int32(5))),
    *(
        (async_copies, "widths", 1, 32, (np.arange(896).astype(np.int8), np.full(896, 99, np.int8), np.int32(n)))
        for n in (16, 12, 6, 3, 0)
    ),
    *((async_copies, "groups", 1, 32, (async_copies.numbers(128), np.zeros(32, F4), np.int32(n))) for n in (0, 1, 3)),
    *(
        (async_copies, name, 2, 64, (async_copies.numbers(64), np.zeros(64, F4)))
        for name in ("group_copy", "barrier_copy", "copies_arrive")
    ),
]


@pytest.mark.parametrize(("module", "name", "blocks", "threads", "arguments"), KERNELS, ids=[k[1] for k in KERNELS])
def test_kernels(module, name, blocks, threads, arguments):
    def copies():
        return tuple(a.copy() for a in arguments)

    simulated, on_gpu = copies(), copies()
    source = module.CudaSource(module.SOURCE, name, ("--gpu-architecture=sm_90a",))
    simulate(source, blocks, threads, simulated)
    hopper_launches.launch(source, blocks, threads, on_gpu)
    for seen, want in zip(simulated, on_gpu, strict=True):
        np.testing.assert_array_equal(seen, want)
