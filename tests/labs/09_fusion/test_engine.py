"""Lab 09's plans and engine on the active backend: raw and fused graphs, memory reuse, tuning, what does not fit."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernels.fusion import plan, tactics
from kernels.fusion.graph import interpret
from kernels.fusion.graph.build import Builder
from kernels.fusion.measured import networks
from kernels.fusion.passes import optimise, quantise
from kernels.fusion.plan import PlanError, engine, memory_plan, plan_file, tuning
from kernels.fusion.plan.engine import Engine
from kernels.fusion.plan.memory_plan import MemoryPlanError
from kernels.fusion.tactics.layer import layers
from kernels.fusion.tactics.tactic import Call, Tactic
from kernels.fusion.tactics.timing_cache import TimingCache, TimingCacheError
from kernels.fusion.trained import digits, network
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend

from . import fuzz_plans, random_graphs

PRECISIONS = ("float32", "float16", "int8")
BY_WGMMA = "wgmma_128x128_by_2"


@pytest.fixture(scope="module")
def raw():
    return network.trained_graph()


@pytest.fixture(scope="module")
def images():
    return digits.split()[2].images


def small():
    """Two branches, a concatenation, a dense layer; biases for `add` from a constant."""
    rng = generator()
    b = Builder("small")
    x = b.input("x", (4, 6, 5))
    b.add("conv", "left", [x], {"filters": rng.standard_normal((8, 4, 3, 3))}, padding=(1, 1, 1, 1))
    b.add("relu", "positive", ["left"])
    b.add("identity", "same", ["positive"])
    b.add("max_pool", "right", [x], window=(3, 3), padding=(1, 1, 1, 1))
    b.add("concat", "both", ["same", "right"])
    b.add("constant", "numbers", [], {"value": rng.standard_normal((12, 1, 1))})
    b.add("add", "moved", ["both", "numbers"])
    b.add("flatten", "flat", ["moved"])
    b.add("dense", "y", ["flat"], {"matrix": rng.standard_normal((3, 360)) / 20, "bias": rng.standard_normal(3)})
    return b.graph("y")


def test_the_trained_network_runs_unfused_as_the_interpreter_says(raw, images):
    made = plan.build(raw, batch=2)
    assert len(made.choices) == len(memory_plan.launched(raw)) == len(made.layers)
    runner = Engine(made)
    found = runner.run(images[:3])  # a batch and a half
    expected = interpret.run(raw, images[:3])[network.OUTPUT]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert runner.run(images[:3]).tobytes() == found.tobytes()


@pytest.fixture(scope="module")
def optimised(raw):
    """The trained network by precision, as the optimiser leaves it."""
    samples = digits.split()[1].images
    return {name: optimise.optimise(raw, name, lambda g: quantise.scales(g, samples)) for name in PRECISIONS}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_optimised_network_runs_as_the_interpreter_says(optimised, raw, images, precision):
    graph = optimised[precision]
    runner = Engine(plan.build(graph))
    found = runner.run(images[:2])
    np.testing.assert_allclose(found, interpret.run(graph, images[:2])[network.OUTPUT], atol=2e-3)
    assert runner.run(images[:2]).tobytes() == found.tobytes()
    layers = [node for node in raw.nodes if node.op not in memory_plan.WITHOUT_LAUNCH]
    assert len(runner.launches) == 17 < len(layers) / 3  # the stem writes what the others read: nothing is converted
    filters = sum(node.weights["filters"].size for node in graph.nodes if node.op == "cbr")
    assert runner.weights_bytes < {"float32": 4.2, "float16": 2.2, "int8": 1.3}[precision] * filters


def test_int8_loses_at_most_half_a_point(optimised):
    """On all 360 test images, by the interpreter, with which the engine was compared above."""
    test = digits.split()[2]

    def right(precision):
        found = interpret.run(optimised[precision], test.images, dtype=np.float32)[network.OUTPUT]
        return (found.argmax(axis=1) == test.labels).mean()

    assert right("int8") >= right("float32") - 0.005


SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(6, 30))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_run_as_the_interpreter_says(seed):
    """Plans that were saved and loaded, of the graph as it is and optimised: in float32 both compute the same."""
    graph = random_graphs.from_seed(seed)
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal((3, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs]

    def largest(fused):
        values = interpret.all_tensors(fused, *inputs)
        return {name: max(float(np.abs(array).max()), 1e-6) / 127 for name, array in values.items()}

    made = {"raw": graph} | {name: optimise.optimise(graph, name, largest) for name in PRECISIONS}
    for name, tolerance in {"raw": 1e-4, "float32": 1e-4, "float16": 5e-3, "int8": 0.05}.items():
        saved = plan_file.to_bytes(plan.build(made[name], 2))
        found = Engine(fuzz_plans.load(saved)).run(*inputs)
        found = found if isinstance(found, dict) else {graph.outputs[0]: found}
        for output, exact in interpret.run(graph if name == "float32" else made[name], *inputs).items():
            assert np.abs(found[output] - exact).max() <= tolerance * (np.abs(exact).max() + 1e-3), (name, output)


@pytest.mark.thorough
@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_resnet_50_runs_whole(precision):
    """An image of 224 × 224 through 56 launches, most by wgmma: a minute each in the simulator."""
    graph, x = networks.fused("ResNet-50", precision), networks.images("ResNet-50", 1)
    able = {layer.node.name: {t.name for t in tactics.candidates(layer)} for layer in layers(graph, 1)}
    found = Engine(plan.build(graph, 1, choices={name: BY_WGMMA for name in able if BY_WGMMA in able[name]})).run(x)
    (exact,) = interpret.run(networks.network("ResNet-50"), x, dtype=np.float32).values()
    assert np.abs(found - exact).max() <= networks.TOLERANCES[precision] * np.abs(exact).max()


def test_engines_of_one_plan_run_in_several_threads():
    """Kernels here take structures by value and index arrays in them, so each launch has memory for its parameters."""
    made, x, threads = plan.build(optimise.fuse(small())), generator().standard_normal((2, 4, 6, 5)), 4
    expected, together = Engine(made).run(x).tobytes(), threading.Barrier(threads)

    def results(_):
        mine = Engine(made)
        together.wait()
        return [mine.run(x).tobytes() for _ in range(5)]

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(results, range(threads))) == [[expected] * 5] * threads


def test_threads_of_one_engine_take_turns():
    made, together = Engine(plan.build(optimise.fuse(small()))), threading.Barrier(4)
    images = generator().standard_normal((4, 3, 4, 6, 5))
    expected = [made.run(x).tobytes() for x in images]

    def results(x):
        together.wait()
        return made.run(x).tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(results, images)) == expected


@pytest.mark.parametrize("batch", [1, 5])
def test_operators_without_a_launch_and_constants(batch):
    graph = small()
    x = generator().standard_normal((5, 4, 6, 5)).astype(np.float32)
    runner = Engine(plan.build(graph, batch))
    np.testing.assert_allclose(runner.run(x), interpret.run(graph, x)["y"], rtol=1e-4, atol=1e-5)
    # conv, ReLU, pool, two copies of concat, add, dense; none for identity, constant and flatten.
    assert len(runner.launches) == 7
    assert runner.weights_bytes == 4 * (8 * 36 + 8 + 3 * 360 + 3)


def test_int8_fp16_and_fp32_with_slices_and_a_residual():
    made = fuzz_plans.example()
    x = generator().uniform(-2, 2, (1, 4, 6, 6)).astype(np.float32)
    graph = made.graph
    values = interpret.all_tensors(graph, x)
    runner = Engine(plan.build(graph, reuse=False))
    found = runner.run(x)
    # A step of INT8 more or less in between moves the last layer a little.
    np.testing.assert_allclose(found, values["y"], atol=0.02)
    wide = runner.tensor("wide").transpose(0, 3, 1, 2) * graph.tensors["wide"].scale
    assert np.abs(wide - values["wide"]).max() <= 1.01 * graph.tensors["wide"].scale
    assert Engine(made).run(x).tobytes() == found.tobytes()  # memory shared or not


def test_reuse_saves_memory_and_the_plan_says_how_much(raw):
    with_reuse, without = (memory_plan.plan(raw, 4, reuse=reuse) for reuse in (True, False))
    assert without.nbytes == without.nbytes_without_reuse == with_reuse.nbytes_without_reuse
    assert with_reuse.most_alive <= with_reuse.nbytes < without.nbytes / 4
    for p in (with_reuse, without):
        memory_plan.check(p, raw, 4)
    assert len(with_reuse.rows) == len(with_reuse.placed)
    assert "without reuse" in str(with_reuse)
    assert with_reuse.rows[0][1] == 0


def test_memory_plans_that_cannot_run_are_refused():
    graph = small()
    right = memory_plan.plan(graph)

    def changed(tensor, **fields):
        placed = [dataclasses.replace(p, **fields) if p.tensor == tensor else p for p in right.placed]
        return dataclasses.replace(right, placed=tuple(placed))

    offsets = {p.tensor: p.offset for p in right.placed}
    with pytest.raises(MemoryPlanError, match="share memory, both alive in launch"):
        memory_plan.check(changed("both", offset=offsets["moved"]), graph, 1)
    with pytest.raises(MemoryPlanError, match="begins at byte 4; it must be a multiple of 256"):
        memory_plan.check(changed("both", offset=4), graph, 1)
    with pytest.raises(MemoryPlanError, match="lives in launches"):
        memory_plan.check(changed("both", last=3), graph, 1)
    with pytest.raises(MemoryPlanError, match="end within"):
        memory_plan.check(changed("both", offset=2**20), graph, 1)
    with pytest.raises(MemoryPlanError, match="lives in launches"):
        memory_plan.check(right, graph, 2)
    with pytest.raises(MemoryPlanError, match="must place each tensor once; look at left"):
        memory_plan.check(
            dataclasses.replace(right, placed=tuple(p for p in right.placed if p.tensor != "left")), graph, 1
        )


def test_a_renamed_tensor_lies_where_it_was_and_lives_as_long_as_both():
    graph = small()
    p = memory_plan.plan(graph)
    assert p.offset("same") == p.offset("positive")
    assert p.offset("flat") == p.offset("moved")
    lives = {row[0]: row[1:3] for row in p.rows}
    assert lives["positive"] == (1, 3)  # written by the ReLU, read by the concatenation as `same`
    assert lives["numbers"] == (0, 5)  # a constant is written before the first run, and must stay


def test_tuning_times_each_tactic_once_and_the_cache_remembers(raw, tmp_path):
    graph = small()
    cache = TimingCache(tuning.device())
    first = tuning.tune(graph, 2, cache)
    timed = len(cache)
    assert cache.hits == 0
    assert timed == cache.misses
    assert set(first.seconds["left"]) == {t.name for t in tactics.candidates(plan.build(graph).layers[0])}
    assert first.estimated == (backend.name() != "gpu")
    assert min(seconds for times in first.seconds.values() for seconds in times.values()) > 0
    if first.estimated:
        assert first.label == "estimated by roofline for H100: no measurement"
        assert first.label in str(first)
    path = tmp_path / "cache.json"
    cache.save(path)
    again = TimingCache.load(path, tuning.device())
    assert tuning.tune(graph, 2, again).choices == first.choices
    assert (again.misses, again.hits) == (0, timed)
    assert len(TimingCache.load(path, "another device")) == 0
    other = TimingCache.load(path, tuning.device())
    other.get(plan.build(graph, 3).layers[0], "f32_64x64")  # another batch is another layer
    assert other.misses == 1
    made = plan.build(graph, 2, tuned=first)
    assert made.choices == first.choices


def test_equal_layers_share_timings():
    rng = generator()
    b = Builder("twice")
    x = b.input("x", (3, 4, 4))
    for name in ("a", "b"):
        b.add("conv", name, [x], {"filters": rng.standard_normal((5, 3, 1, 1))})
    b.add("add", "y", ["a", "b"])
    cache = TimingCache(tuning.device())
    tuning.tune(b.graph("y"), 1, cache)
    assert cache.hits == 4  # those of b


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 2, "timings": {}}',
        '{"format": 1, "timings": {"d": {"l": {"t": -1}}}}',
        "\xff",
        "[" * 9999,
    ],
)
def test_a_file_that_is_no_timing_cache_is_refused(text, tmp_path):
    path = tmp_path / "cache.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TimingCacheError, match="delete it"):
        TimingCache.load(path, "device")
    with pytest.raises(ValueError, match="a time is a finite number"):
        TimingCache("device").put(plan.build(small()).layers[0], "x", float("nan"))


def test_a_tactic_from_a_notebook_can_be_registered_and_chosen():
    graph = small()
    seen = []

    def bind(layer, inputs, outputs, weights):
        def queue():
            seen.append(layer.node.name)
            x, y = cp.asnumpy(inputs[0]), outputs[0]
            y.set(np.maximum(x, 0) + cp.asnumpy(weights["nothing"]))

        return [Call("mine", queue)]

    def refuses(layer):
        return "" if layer.batch == 1 else "it takes one image"

    mine = Tactic("mine", ("relu",), refuses, lambda _: {"nothing": np.zeros(1, np.float32)}, bind)
    tactics.register(mine)
    try:
        x = generator().standard_normal((1, 4, 6, 5)).astype(np.float32)
        runner = Engine(plan.build(graph, choices={"positive": "mine"}), cuda_graph=False)
        np.testing.assert_allclose(runner.run(x), interpret.run(graph, x)["y"], rtol=1e-4, atol=1e-5)
        assert seen == ["positive"]
        with pytest.raises(PlanError, match="'positive' cannot run by the tactic 'mine': it takes one image"):
            plan.build(graph, 2, choices={"positive": "mine"})
        with pytest.raises(PlanError, match="'left' cannot run by the tactic 'mine': it runs relu"):
            plan.build(graph, choices={"left": "mine"})
    finally:
        tactics.forget("mine")
    with pytest.raises(PlanError, match="there is no tactic 'mine'"):
        plan.build(graph, choices={"positive": "mine"})


def test_what_does_not_fit_is_refused():
    graph = small()
    runner = Engine(plan.build(graph))
    x = np.zeros((1, 4, 6, 5), np.float32)
    with pytest.raises(ValueError, match=r"input 'x' has the shape \(1, 4, 5, 5\); it must be \(samples, 4, 6, 5\)"):
        runner.run(x[:, :, :5])
    with pytest.raises(ValueError, match="at least one sample"):
        runner.run(x[:0])
    for odd, kind in ((x.astype(complex), "complex128"), (x.astype(str), "<U32"), (x.astype(object), "object")):
        with pytest.raises(ValueError, match=f"takes real numbers; an array holds {kind}"):
            runner.run(odd)
    with pytest.raises(ValueError, match="takes one array for each of x; got 2"):
        runner.run(x, x)
    with pytest.raises(ValueError, match="batch is 0"):
        plan.build(graph, 0)
    with pytest.raises(ValueError, match="batch is True"):
        plan.build(graph, True)
    with pytest.raises(PlanError, match="kernels count up to 2,147,483,647"):
        plan.build(graph, 2**24)
    with pytest.raises(PlanError, match="there is no layer 'up' to choose a tactic for"):
        plan.build(graph, choices={"up": "pool"})
    if backend.name() != "gpu":
        with pytest.raises(ValueError, match="the simulator has no CUDA graphs"):
            Engine(plan.build(graph), cuda_graph=True)
    assert "7 launches" in str(runner)
    assert engine.DTYPES["int8"] is np.int8


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 16])
def test_a_cuda_graph_gives_the_same_bits_as_launches(raw, images, batch):
    made = plan.build(raw, batch)
    captured, plain = Engine(made, cuda_graph=True), Engine(made, cuda_graph=False)
    first = captured.run(images)
    assert first.tobytes() == plain.run(images).tobytes()
    assert captured.run(images).tobytes() == first.tobytes()


@pytest.mark.gpu
@pytest.mark.parametrize("side_by_side", [False, True])
def test_threads_of_one_captured_engine_get_their_own_results(raw, images, side_by_side):
    made = plan.build(optimise.fuse(raw), 4, side_by_side=side_by_side)
    runner, together = Engine(made, cuda_graph=True, side_by_side=side_by_side), threading.Barrier(2)
    of_thread = images[:128], images[128:256]
    expected = [runner.run(given).tobytes() for given in of_thread]

    def results(given):
        together.wait()
        return {runner.run(given).tobytes() for _ in range(20)}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(results, of_thread)) == [{one} for one in expected]
