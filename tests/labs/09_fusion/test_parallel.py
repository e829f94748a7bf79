"""Launches side by side: streams and waits let nothing run too early, and memory makes nobody wait."""

import random

import numpy as np
import pytest

from kernels.fusion import plan
from kernels.fusion.passes import optimise
from kernels.fusion.plan import memory_plan, parallel
from kernels.fusion.plan.engine import Engine
from kernels.fusion.trained import variants
from warplab.hardware import backend

from . import random_graphs
from .fuzz_plans import example

SHORTEST = 11  # launches of the fused network in a row, of 17: in both modules three branches run side by side


def run_in_any_order(runner, rng):
    """Queue the layers' launches in an order that the streams allow, drawn at random."""
    waiting = {}
    for step in parallel.steps(runner.plan):
        waiting.setdefault(step.stream, []).append(step)
    done, order = set(), []
    while any(waiting.values()):
        ready = [steps[0] for steps in waiting.values() if steps and done.issuperset(steps[0].waits)]
        step = rng.choice(ready)
        for call in runner.calls[step.layer]:
            call.queue()
        waiting[step.stream].pop(0)
        done.add(step.layer)
        order.append(step.layer)
    return order


def graphs():
    yield "with slices and a residual", example().graph
    for seed in range(4):
        raw = random_graphs.from_seed(seed)
        yield f"raw {seed}", raw
        yield f"fused {seed}", optimise.optimise(raw, "float32")


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize(("name", "graph"), list(graphs()), ids=lambda value: value if isinstance(value, str) else "")
def test_any_order_that_the_streams_allow_gives_the_same_bits(name, graph, side_by_side):
    rng = np.random.default_rng(9)
    inputs = [rng.standard_normal((1, *graph.tensors[one].shape)).astype(np.float32) for one in graph.inputs]
    runner = Engine(plan.build(graph, side_by_side=side_by_side), cuda_graph=False)
    expected = runner.run(*inputs)
    expected = expected if isinstance(expected, dict) else {graph.outputs[0]: expected}
    orders = set()
    for seed in range(4):
        runner.memory.fill(0xFF)
        runner._write_constants()
        runner.put(*inputs)
        orders.add(tuple(run_in_any_order(runner, random.Random(seed))))
        for output, array in expected.items():
            assert runner.tensor(output).tobytes() == array.tobytes(), (seed, output)
    assert len(orders) > 1 or parallel.depth(runner.plan) == len(runner.plan.layers)


@pytest.mark.parametrize("kind", variants.KINDS)
def test_memory_shared_side_by_side_costs_a_little_memory_and_no_waiting(kind):
    graph = variants.variant(kind)
    least, shared, apart = (plan.build(graph, **how) for how in ({}, {"side_by_side": True}, {"reuse": False}))
    assert parallel.depth(shared) == parallel.depth(apart) < parallel.depth(least) <= len(least.layers)
    assert least.memory.nbytes < shared.memory.nbytes < apart.memory.nbytes
    memory_plan.check(shared.memory, graph, 1)
    if kind != variants.UNFUSED:
        assert (parallel.depth(shared), len(shared.layers)) == (SHORTEST, 17)


def test_each_layer_waits_for_those_before_it_and_no_more():
    made = plan.build(variants.variant("float32"), side_by_side=True)
    names = [layer.node.name for layer in made.layers]
    found = {names[number]: {names[i] for i in needed} for number, needed in enumerate(parallel.dependencies(made))}
    first, second = (f"{m}_1x1 + {m}_3x3_reduce + {m}_5x5_reduce" for m in "ab")
    assert found["stem"] == set()
    assert found["a_5x5"] == found["a_3x3"] == {first}
    assert found["a_pool"] == found[first] == {"stem"}
    assert found["pool"] == {"a_3x3", "a_5x5", "a_pool_proj"}
    assert found["average"] == {"b_3x3", "b_5x5", "b_pool_proj"}
    assert found[second] == found["b_pool"] == {"residual_3x3"}
    steps = parallel.steps(made)
    assert sorted(step.layer for step in steps) == list(range(17))
    assert all(wait < step.layer and steps[wait].stream != step.stream for step in steps for wait in step.waits)


def test_launches_that_share_memory_wait_for_each_other():
    made = plan.build(variants.variant("float32"))
    placed, owners = {p.tensor: p for p in made.memory.placed}, made.memory.owners
    before = []
    for number, needed in enumerate(parallel.dependencies(made)):
        before.append(needed.union(*(before[i] for i in needed)))
        written = [placed[owners[part.tensor]] for part, _ in made.layers[number].writes]
        for earlier in set(range(number)) - before[number]:
            layer = made.layers[earlier]
            others = [*(t.name for t in layer.reads), *(part.tensor for part, _ in layer.writes)]
            for one in written:
                for other in (placed[owners[name]] for name in others):
                    assert one.tensor == other.tensor or not one.overlaps(other), (number, earlier)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", variants.KINDS)
@pytest.mark.parametrize("batch", [1, 16])
def test_side_by_side_gives_the_same_bits_as_in_a_row(kind, batch):
    made = plan.build(variants.variant(kind), batch, side_by_side=True)
    images = np.random.default_rng(9).uniform(0, 1, (40, 1, 8, 8)).astype(np.float32)
    row, side = Engine(made, cuda_graph=True), Engine(made, cuda_graph=True, side_by_side=True)
    expected = row.run(images)
    for _ in range(20):
        assert side.run(images).tobytes() == expected.tobytes()
    assert backend.name() == "gpu"
