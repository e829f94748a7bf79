"""Step 10 of lab 04: products of drawn shapes by drawn plans in the simulator, with all its checks; the rule that
chooses a plan, and what was measured of it."""

import math

import numpy as np
import pytest

from kernels.matmul import matmul, measured_shapes, recordings
from kernels.matmul.ladder import SOURCES
from kernels.matmul.shape_rule import RULE, TILES
from kernels.matmul.split_k import Plan, function_of, launch
from kernels.matmul.split_regret import BLOCKS, regrets
from kernels.matmul.tiles import Tiles
from tests.support.matrix_products import guarded, operands
from tests.support.random_inputs import generator
from warpcourse.bench import measured_plans
from warpcourse.bench.shape_rule import mean_regret, packed
from warpcourse.paths import COURSE
from warplab import cp, simulator
from warplab.estimating.launch_time import launch_time
from warplab.estimating.rates import rates
from warplab.estimating.work import work_of
from warplab.hardware import backend
from warplab.hardware.cards import card
from warplab.launch import resources
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

H100, RATES = card("H100"), rates("H100")
PLANS = (
    Plan(Tiles(64, 64, 16, 32, 64, 8, 8, 3, 6, 8)),
    Plan(Tiles(64, 64, 16, 32, 32, 8, 4, 3, 4, 8), 3, True),
    Plan(Tiles(32, 32, 32, 16, 32, 4, 4, 3, 6, 8), 2),
    Plan(Tiles(48, 32, 24, 16, 32, 4, 4, 3, 6, 8), 5),
    Plan(Tiles(16, 64, 64, 16, 32, 4, 4, 3, 6, 8), 1, True),
    Plan(Tiles(64, 16, 64, 32, 16, 4, 4, 3, 6, 8), 4),
    Plan(Tiles(4, 128, 32, 4, 128, 4, 4, 4, 3, 8), 2),
    Plan(Tiles(128, 128, 16, 64, 64, 16, 8, 3, 2, 8)),
    Plan(Tiles(1, 128, 64, 1, 128, 1, 4, 1, 4, 8), 3),
    Plan(Tiles(2, 128, 64, 2, 128, 2, 4, 1, 4, 8)),
)


def check(a, b, found):
    """Each element within the bound of a float32 sum of k products, in any order."""
    exact, size = a.astype(np.float64) @ b.astype(np.float64), np.abs(a) @ np.abs(b).astype(np.float64)
    np.testing.assert_array_less(np.abs(found - exact), 2.0**-24 * (a.shape[1] + 1) * size + 1e-30)


def drawn(random, most):
    return [int(np.exp(random.uniform(0, np.log(high)))) for high in most]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "-".join(map(str, packed(plan))))
def test_drawn_shapes_by_each_kind_of_plan(plan):
    random = generator()
    m, n, k = drawn(random, (150, 150, 500))
    k = max(k, plan.parts * plan.tiles.bk)
    for columns in (n, -(-n // 4) * 4):  # rows that no float4 fits, most likely, and those that it does
        a, b = operands(m, columns, k)
        out = cp.asarray(np.full((m, columns), np.nan, np.float32))
        launch(cp.asarray(a), cp.asarray(b), out, plan)
        check(a, b, cp.asnumpy(out))


def test_drawn_shapes_as_the_rule_chooses():
    random = generator()
    for most in ((16, 300, 300), (300, 16, 300), (60, 60, 3000), (9, 9, 9)):
        a, b = operands(*drawn(random, most))
        check(a, b, guarded(lambda a, b, out: matmul(a, b, out, "split_k"), a, b))


DRAWN = 300


@pytest.mark.parametrize("count", [5, pytest.param(DRAWN, marks=pytest.mark.thorough)])
def test_drawn_products(count):
    """Any shape, by each kind of plan, of numbers with all bits and sizes from 2^-33 to 2^16."""
    random = generator()
    for i in range(count):
        plan = PLANS[i % len(PLANS)]
        m, n, k = drawn(random, (200, 200, 600))
        k = max(k, plan.parts * plan.tiles.bk)
        a, b = (
            (random.uniform(-1, 1, shape) * 2.0 ** random.integers(-16, 17, shape)).astype(np.float32)
            for shape in ((m, k), (k, n))
        )
        c = guarded(lambda a, b, out, plan=plan: launch(a, b, out, plan) or out, a, b, offset=random.integers(4))
        check(a, b, c)


def test_the_parts_are_added_in_the_same_order_every_time():
    a, b = (cp.asarray(x) for x in operands(40, 36, 500))
    found = []
    for _ in range(2):
        out = cp.asarray(np.full((40, 36), np.nan, np.float32))
        launch(a, b, out, Plan(PLANS[2].tiles, 7))
        found.append(cp.asnumpy(out))
    np.testing.assert_array_equal(*found)


@pytest.mark.skipif(backend.name() == "gpu", reason="the simulator finds it")
def test_without_the_fence_the_sums_race(monkeypatch):
    text = SOURCES.text("10_split_k.cu")
    old = "    __threadfence();\n    __syncthreads();\n    __shared__ bool last;"
    assert text.count(old) == 1
    changed = text.replace(old, old.replace("__threadfence();", ""))
    code = CudaSource(changed, PLANS[2].entry(4, True), SOURCES.options("10_split_k.cu"))
    a, b = (cp.asarray(x) for x in operands(32, 32, 256))
    out, sums, counters = (
        cp.zeros(size, kind) for size, kind in ((1024, np.float32), (2048, np.float32), (1, np.uint32))
    )
    arguments = a, b, out, sums, counters, *map(np.int32, (32, 32, 256, 32))
    with pytest.raises(simulator.DataRace):
        simulate(code, (1, 1, 2), PLANS[2].tiles.threads, arguments, shared_bytes=PLANS[2].tiles.shared_bytes)


def test_plans_and_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="parts must be 1 to 1024"):
        Plan(PLANS[0].tiles, 0)
    a, b, c = (cp.zeros(shape, np.float32) for shape in ((4, 20), (20, 4), (4, 4)))
    with pytest.raises(ValueError, match="a depth of 20 has 2 tiles for 3 blocks"):
        launch(a, b, c, Plan(PLANS[0].tiles, 3))
    with pytest.raises(ValueError, match="split_k takes fewer than 16,777,216"):
        matmul(cp.zeros((1, 2**24), np.float32), cp.zeros((2**24, 1), np.float32), kernel="split_k")


@pytest.mark.parametrize("tiles", TILES, ids=str)
def test_the_sizes_compile_without_spills(tiles):
    code, options = SOURCES.text("10_split_k.cu"), SOURCES.options("10_split_k.cu")
    for parts in (1, 2):
        found = resources.of(CudaSource(code, Plan(tiles, parts).entry(4, True), options))
        said = 56 if tiles.few_rows and (tiles.bm, parts) == (2, 1) else 0  # as above the kernel
        assert found.spill_bytes <= said, (tiles, parts)


def test_the_rule_chooses_about_as_well_as_it_says():
    assert RULE.table["device"].startswith("NVIDIA H")
    rule, rows = RULE.table["rule"], RULE.rows()
    assert set(rule["constants"]) == set(RULE.start)
    for name, half in (("fitted", rows[::2]), ("held_out", rows[1::2])):
        assert RULE.regret(rule["constants"], half) == pytest.approx(rule[f"regret_{name}"], rel=1e-3)
    assert rule["regret_held_out"]["mean"] <= 1.07


def test_every_shape_has_a_plan():
    random = generator()
    for _ in range(300):
        shape = drawn(random, (40000, 40000, 40000))
        assert not RULE.chosen(*shape).refuses(shape[2]), shape
    assert RULE.chosen(64, 64, 65536).parts > 1
    assert RULE.chosen(1, 4096, 4096).tiles.few_rows
    for plan in PLANS:
        assert RULE.unpacked(packed(plan)) == plan


def test_what_was_measured_is_what_the_rule_chooses():
    value = recordings.values()["every_shape"]
    assert value["seed"] == measured_shapes.SEED
    drawn = measured_plans.drawn(measured_shapes.SEED)
    assert [tuple(row["shape"]) for row in value["rows"]["drawn"]] == drawn
    assert not set(drawn) & {row.shape for row in RULE.rows()}
    for group, found in value["rows"].items():
        for row in found:
            assert row["correct"], row
            assert row["plan"] == str(RULE.chosen(*row["shape"])), row["shape"]
        for of in ("cold", "warm"):
            assert measured_plans.summary(found, of) == pytest.approx(value["summaries"][group][of], rel=1e-3)


def test_header_and_lesson_quote_what_was_recorded():
    text = " ".join(SOURCES.text("10_split_k.cu").partition("#include")[0].replace("//", "").split())
    every = recordings.values()["every_shape"]
    recorded = every["summaries"]
    drawn, networks, lab = (recorded[name]["cold"] for name in ("drawn", "networks", "lab"))
    assert f"{drawn['mean']:.2f} of that algorithm, the geometric mean" in text
    (deep,) = (row["cold"] for row in every["rows"]["lab"] if row["shape"] == [128, 128, 65536])
    assert f"{1e6 * deep['ours']:.0f} µs for it, {deep['ratio']:.2f} of cuBLASLt's" in text
    for name, found in (("networks' shapes", networks), ("the lab's", lab)):
        assert f"{name} {found['mean']:.2f}, the least {found['least']:.2f}" in text
    warm = (f"{recorded[name]['warm']['mean']:.2f}" for name in ("drawn", "networks", "lab"))
    least = min(recorded[name]["warm"]["least"] for name in ("drawn", "networks", "lab"))
    assert "with operands in it {}, {} and {}, the least {:.2f}".format(*warm, least) in text
    held_out, shapes = RULE.table["rule"]["regret_held_out"], len(RULE.rows()[1::2])
    assert f"{100 * held_out['mean'] - 100:.1f} % longer than the best plan, the mean of {shapes} shapes" in text
    assert f"at worst {100 * held_out['most'] - 100:.0f} %" in text

    never, most = (
        [each for tile in BLOCKS for each in regrets(choose, tile)]
        for choose in (lambda *given: 1, lambda *given: max(given[-1]))
    )
    lesson = (COURSE / "notebooks" / "04_matrix_multiply.ipynb").read_text(encoding="utf-8")
    said = f"{mean_regret(never):.1f} times as long as the best choice, in the mean over {len(never)} recorded products"
    assert f"Never to divide k takes {said}" in lesson
    assert f"as often as possible {mean_regret(most):.1f} times" in lesson
    origin = recordings.recorded("every_shape").origin
    said = f"{drawn['mean']:.2f} of cuBLASLt's fastest over {len(every['rows']['drawn'])} shapes drawn at random"
    assert f"{said} (geometric mean, {origin}), {drawn['least']:.2f} at least, {least:.2f} with" in lesson


SMALL = 256  # of a block's depth, in the launches that stand for all others


def small_work(tiles, parts):
    """What a tile of C, shared by `parts` blocks, asks of an H100."""
    m, n, k = tiles.bm, tiles.bn, SMALL * parts
    a, b, c, sums = (np.ones(shape, np.float32) for shape in ((m, k), (k, n), (m, n), parts * m * n))
    arguments = a, b, c, sums, np.zeros(1, np.uint32), *map(np.int32, (m, n, k, n))
    function = function_of(Plan(tiles, parts), 4, c_aligned=True)
    options = {"checks": False, "races": False, "trace_warps": 0}
    grid = 1, 1, parts
    return work_of(simulate(function, grid, tiles.threads, arguments, shared_bytes=tiles.shared_bytes, **options), H100)


def test_estimates_of_two_small_launches_choose_the_parts_without_a_gpu():
    """evidence/estimates/README.md has the regret over all tiles."""
    tiles = next(tiles for tiles in TILES if (tiles.bm, tiles.bn) == (64, 128))
    small = {parts: small_work(tiles, parts) for parts in (1, 2)}

    def choose(m, n, k, bm, bn, blocks, choices):
        def seconds(parts):
            of, tiles_of_c = small[min(parts, 2)], math.ceil(m / bm) * math.ceil(n / bn)
            met = 4 * tiles_of_c * bm * bn * parts * (parts > 1)  # bytes of sums, written and read
            footprint = 4 * (m * k + k * n) + met, 4 * m * n + met
            return launch_time(of.times(tiles_of_c * parts / of.blocks, k / parts / SMALL, footprint), RATES).seconds

        return min(choices, key=seconds)

    assert mean_regret(regrets(choose, (64, 128))) <= 1.08
    assert mean_regret(regrets(lambda *given: 1, (64, 128))) > 2  # so there is something to choose
