"""Step 7 of lab 05: products of drawn shapes by drawn plans in the simulator, with all its checks; what it compiles to;
the rule that chooses a plan, and what was measured of it."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from kernels.tensor_core import every_shape, measured_shapes, multiply_any, recordings, tiles
from kernels.tensor_core.every_shape import ANY_ROWS, ANY_SPLITS, ENTRY, ENTRY_FILE, SPREAD, Plan, Tile, launch
from kernels.tensor_core.shape_rule import ALONE, RULE, RULES, STACKS
from kernels.tensor_core.small_factors import decoded, encoded
from tests.support.random_inputs import generator
from tests.support.tensor_products import STEP_ERROR, operands, within
from warpcourse.bench import hopper, measured_plans
from warpcourse.bench.lab_kernels import NotOnThisCard
from warpcourse.bench.shape_rule import mean_regret, packed, regret
from warpcourse.paths import COURSE
from warplab import cp, profile, simulator
from warplab.compile import nvrtc
from warplab.estimating.launch_time import launch_time
from warplab.estimating.rates import rates
from warplab.estimating.work import work_of
from warplab.hardware import backend
from warplab.hardware.cards import card

ON_SIMULATOR = pytest.mark.skipif(backend.name() == "gpu", reason="a wrong kernel may hang a GPU")
LETTERS = ("NN", "NT", "TN", "TT")
# Tiles, endings and clusters of all kinds, with few stages, so that they come round in small products, too.
PLANS = (
    Plan(Tile(64, 64, 1, 2)),
    Plan(Tile(64, 64, 1, 3, 2)),
    Plan(Tile(128, 128, 2, 2)),
    Plan(Tile(192, 128, 3, 2)),
    Plan(Tile(128, 256, 2, 2, stack=2)),
    Plan(Tile(64, 256, 1, 2, stack=4)),
    Plan(Tile(64, 64, 1, 2, split=2)),
    Plan(Tile(64, 128, 1, 3, split=4)),
    Plan(Tile(64, 128, 1, 3, split=2, stack=2)),
    Plan(Tile(128, 128, 2, 2, stack=2, side=2)),
    Plan(Tile(128, 64, 1, 2, side=2)),
    Plan(Tile(128, 192, 2, 2, stack=3)),
    Plan(Tile(192, 64, 3, 2, side=3)),
    Plan(Tile(64, 192, 1, 2, stack=4, side=2)),
    Plan(Tile(128, 128, 2, 2, stack=2, side=4)),
    Plan(Tile(64, 64, 1, 2), parts=2),
    Plan(Tile(128, 64, 2, 2), parts=3),
    Plan(Tile(64, 64, 1, 2), parts=9),
    Plan(Tile(64, 16, 1, 3), swapped=True),
    Plan(Tile(128, 32, 2, 3), parts=3, swapped=True),
    Plan(Tile(64, 96, 1, 3, stack=4), swapped=True),
    Plan(Tile(64, 48, 1, 3, stack=2, side=2), swapped=True),
    Plan(Tile(128, 96, 2, 2), parts=2, swapped=True),
    *(Plan(ANY_ROWS[i % len(ANY_ROWS)], split) for i, split in enumerate(2 * ANY_SPLITS)),
    *map(Plan, SPREAD),
)


def product(m, n, k, transposed, plan=None, dtype=np.float16, factors=None):
    """A product, of factors drawn if none are given, by a plan or by the rule, into poisoned memory; is every element
    near enough?"""
    a, b = factors or operands(m, n, k)
    given = [
        cp.asarray(np.ascontiguousarray(x.T) if letter == "T" else x)
        for x, letter in zip((a, b), transposed, strict=True)
    ]
    c = cp.asarray(np.full((m, n), np.nan, dtype))
    if plan:
        launch(*given, c, plan, transposed, group=2)
    else:
        assert multiply_any(*given, c, transposed=transposed) is c
    assert within(a, b, cp.asnumpy(c)).all(), (m, n, k, transposed, plan, np.dtype(dtype))
    return cp.asnumpy(c)


def drawn(random, most):
    return [int(np.exp(random.uniform(0, np.log(high)))) for high in most]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "-".join(map(str, packed(plan))))
def test_drawn_shapes_by_each_kind_of_plan(plan):
    random = generator()
    m, n, k = drawn(random, (260, 260, 700))
    k = max(k, 64 * plan.parts * plan.tile.split)  # a step for each that shares the depth
    transposed = LETTERS[random.integers(1 if plan.tile.any_rows else 2 if plan.tile.bn % 64 else 4)]
    product(m, n, k, transposed, plan, (np.float16, np.float32)[random.integers(2)])


@pytest.mark.parametrize("transposed", LETTERS)
def test_drawn_shapes_as_the_rule_chooses(transposed):
    random = generator()
    for most in ((32, 400, 400), (400, 32, 400), (200, 200, 2000), (9, 9, 9)):
        product(*drawn(random, most), transposed)


DRAWN = 300
# Few, so that few kernels are compiled: one block to a tile, blocks that share the depth, a cluster, results turned.
FEW = (
    Plan(Tile(64, 64, 1, 2)),
    Plan(Tile(64, 64, 1, 2), parts=3),
    Plan(Tile(64, 128, 1, 3, split=2)),
    next(plan for plan in PLANS if plan.swapped),
)


@pytest.mark.parametrize("count", [6, pytest.param(DRAWN, marks=pytest.mark.thorough)])
def test_drawn_products(count):
    """Any shape, all four transposes and both results, of numbers with all bits and sizes from 2^-9 to 2."""
    random = generator()
    for _ in range(count):
        plan, which = FEW[random.integers(len(FEW))], random.integers(4)
        m, n, k = drawn(random, (200, 200, 600))
        k = max(k, 64 * plan.parts * plan.tile.split)  # a step for each that shares the depth
        transposed = LETTERS[which % 2 if plan.swapped else which]
        a, b = (
            (random.uniform(-1, 1, shape) * 2.0 ** random.integers(-8, 2, shape)).astype(np.float16)
            for shape in ((m, k), (k, n))
        )
        product(m, n, k, transposed, plan, (np.float16, np.float32)[random.integers(2)], (a, b))


def test_more_tiles_than_blocks(monkeypatch):
    monkeypatch.setattr(every_shape, "_resident", lambda function, plan: 2)
    product(300, 270, 200, "NT", Plan(Tile(64, 64, 1, 2)))
    product(300, 270, 200, "TN", Plan(Tile(64, 128, 1, 2, stack=2)))


def test_parts_are_added_in_the_same_order_every_time():
    a, b = (cp.asarray(x) for x in operands(70, 72, 900))
    found = []
    for _ in range(2):
        c = cp.asarray(np.full((70, 72), np.nan, np.float32))
        launch(a, b, c, Plan(Tile(64, 64, 1, 2), parts=5))
        found.append(cp.asnumpy(c))
    np.testing.assert_array_equal(*found)


def test_rows_that_start_anywhere():
    """Arrays two bytes past a multiple of four, as a view may lie."""
    a, b = operands(33, 40, 64)
    memory = cp.asarray(np.concatenate([np.zeros(1, np.float16), a.ravel()]))
    c = multiply_any(memory[1:].reshape(33, 64), cp.asarray(b), dtype=np.float32)
    assert within(a, b, cp.asnumpy(c)).all()


@pytest.mark.parametrize("transposed", LETTERS)
def test_factors_of_bfloat16(transposed):
    random = generator()
    for result in (np.uint16, np.float32):
        m, n, k = drawn(random, (150, 150, 500))
        a, b = (encoded(random.normal(size=shape), "bfloat16") for shape in ((m, k), (k, n)))
        given = [np.ascontiguousarray(x.T) if t == "T" else x for x, t in zip((a, b), transposed, strict=True)]
        found = multiply_any(*map(cp.asarray, given), dtype=result, transposed=transposed)
        a, b, c = (decoded(x).astype(np.float64) for x in (a, b, cp.asnumpy(found)))
        bound = -(-k // 16) * STEP_ERROR * (np.abs(a) @ np.abs(b))
        assert (np.abs(c - a @ b) <= bound + (2.0**-8 * np.abs(a @ b) if result == np.uint16 else 0)).all(), (m, n, k)


def test_factors_of_e4m3_and_what_two_levels_of_sums_gain():
    """Tensor cores keep 13 bits below the largest of 33 addends: of 128 products, four times in a row."""
    random, kept = generator(), 2.0**-13
    for m, n, k in ((70, 90, 2048), (8, 72, 1040), (129, 40, 16)):
        a, b = (encoded(random.uniform(-1, 1, shape), "e4m3") for shape in ((m, k), (n, k)))
        found = cp.asnumpy(multiply_any(cp.asarray(a), cp.asarray(b), dtype=np.float32, transposed="NT"))
        x, y = (decoded(each).astype(np.float64) for each in (a, b))
        error = np.abs(found - x @ y.T)
        assert (error <= 34 * 4 * kept * (np.abs(x) @ np.abs(y).T)).all(), (m, n, k)
        if k == 2048:
            single, pairs = (
                cp.asarray(np.zeros((m, n), np.float32)),
                (cp.asarray(each).view(np.uint16) for each in (a, b)),
            )
            launch(*pairs, single, Plan(Tile(64, 64, 1, 2)), "NT", factors="e4m3", levels=1)
            assert np.linalg.norm(cp.asnumpy(single) - x @ y.T) > 3 * np.linalg.norm(error)


def test_bits_of_small_factors():
    known = np.array([0, 1, 0x08, 0x38, 0x7E, 0xB8, 0xFE], np.uint8)
    np.testing.assert_array_equal(decoded(known), np.float32([0, 2**-9, 2**-6, 1, 448, -1, -448]))
    assert np.isnan(decoded(np.uint8([0x7F, 0xFF]))).all()
    numbers = np.uint8([bits for bits in range(256) if bits not in (0x7F, 0x80, 0xFF)])
    np.testing.assert_array_equal(encoded(decoded(numbers), "e4m3"), numbers)
    np.testing.assert_array_equal(encoded(np.float32([1 + 2**-8, 1 + 3 * 2**-8]), "bfloat16"), [0x3F80, 0x3F82])


def test_empty_products_and_wrong_arguments():
    half = lambda *shape: cp.zeros(shape, np.float16)  # noqa: E731
    assert not cp.asnumpy(multiply_any(half(5, 0), half(0, 7), cp.asarray(np.ones((5, 7), np.float32)))).any()
    assert multiply_any(half(0, 3), half(3, 7)).shape == (0, 7)
    assert multiply_any(half(3, 5), half(7, 3), transposed="TT").shape == (5, 7)
    for arguments, options, error, message in (
        ((half(4, 6), half(6, 8)), {"transposed": "N"}, ValueError, r"it must be \"NN\", \"NT\", \"TN\" or \"TT\""),
        ((half(4, 6), half(6, 8)), {"transposed": None}, ValueError, "transposed is None; it must be"),
        ((half(4, 6), half(6, 8)), {"transposed": ("N", "N")}, ValueError, r"transposed is \('N', 'N'\); it must be"),
        ((half(4, 6), half(6, 8)), {"transposed": "TN"}, ValueError, r"rows of a \(4\) .* rows of b \(6\)"),
        ((half(4, 6), half(6, 8)), {"transposed": "NT"}, ValueError, r"columns of a \(6\) .* columns of b \(8\)"),
        ((half(4, 6), half(6, 8)), {"dtype": np.float64}, ValueError, "write float32 or float16"),
        ((half(4, 6), half(6, 8), half(8, 4)), {}, ValueError, r"out has shape \(8, 4\); the product has \(4, 8\)"),
        ((np.zeros((4, 6), np.float16), half(6, 8)), {}, TypeError, "in host memory"),
        ((cp.zeros((4, 16), np.uint8), cp.zeros((16, 8), np.uint8)), {}, ValueError, r"b given as \(n, k\)"),
        ((cp.zeros((4, 24), np.uint8), cp.zeros((8, 24), np.uint8)), {"transposed": "NT"}, ValueError, "k is 24"),
        ((cp.zeros((4, 6), np.uint16), half(6, 8)), {}, ValueError, "b is float16; the kernel takes uint16"),
    ):
        with pytest.raises(error, match=message):
            multiply_any(*arguments, **options)


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        ((96, 64, 1, 4), "bm must be a multiple of 64 for each consumer"),
        ((64, 80, 1, 4), "bn must be 16, 32"),
        ((256, 256, 2, 2), "64 × 256 sums"),
        ((64, 64, 1, 20), "bytes of shared memory"),
        ((64, 64, 1, 4, 1, 1, 3), "stack must divide"),
        ((64, 64, 1, 2, 1, 16), "split must divide|8 blocks at most"),
        ((64, 64, 1, 4, 1, 1, 1, 3), "side must divide"),
        ((48, 64, 1, 1), r"bm and bn of any_rows.cu must be of \(16, 32, 64, 128\)"),
        ((64, 64, 2, 1), "any_rows.cu has one consumer, the block, or four, its warps"),
        ((64, 64, 1, 1, 2), "any_rows.cu has one stage, block, split, stack and side"),
        ((16, 64, 4, 1), "quarters of a tile must have 16 rows"),
        ((64, 64, 0, 2), "at least 1"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(sizes, rule):
    with pytest.raises(ValueError, match=rule):
        Tile(*sizes)


def test_plans_that_do_not_fit_a_product_are_refused():
    with pytest.raises(ValueError, match="parts are for blocks without a cluster"):
        Plan(Tile(64, 64, 1, 2, split=2), parts=2)
    with pytest.raises(ValueError, match="no multiple of 64 are for swapped"):
        Plan(Tile(64, 16, 1, 2))
    a, b, c = cp.zeros((64, 64), np.float16), cp.zeros((64, 64), np.float16), cp.zeros((64, 64), np.float16)
    with pytest.raises(ValueError, match="a depth of 64 has 1 steps for 2 blocks"):
        launch(a, b, c, Plan(Tile(64, 64, 1, 2), parts=2))
    with pytest.raises(ValueError, match=r"clusters of any_rows.cu have \(1, 2, 4, 8\) blocks"):
        Plan(ANY_ROWS[0], 3)
    with pytest.raises(ValueError, match="blocks whose warps share no depth share none"):
        Plan(SPREAD[0], 2)
    with pytest.raises(ValueError, match="takes no transposed operands"):
        launch(a, b, c, Plan(ANY_ROWS[0]), "NT")
    reason = Plan(Tile(64, 64, 1, 2), parts=2).refuses(8192, 8192, 8192, "NN", 132)
    assert reason == "32768 blocks must be at work at a time, and there is room for 132"


@ON_SIMULATOR
def test_other_cards_multiply_by_step_4_in_tiles_by_shape(monkeypatch):
    monkeypatch.setattr(hopper, "missing", lambda what, instead: f"{what} is not for this card: take {instead}")
    a, b = operands(70, 90, 40)
    for transposed in LETTERS:
        given = (cp.asarray(x.T.copy() if letter == "T" else x) for x, letter in zip((a, b), transposed, strict=True))
        found = multiply_any(*given, transposed=transposed)
        assert found.dtype == np.float16
        assert within(a, b, cp.asnumpy(found)).all()
    with pytest.raises(NotOnThisCard, match="take mma_stages"):
        multiply_any(cp.zeros((8, 8), np.uint16), cp.zeros((8, 8), np.uint16))
    few, many = (tiles.for_shape(side, side, side, 132) for side in (512, 8192))
    assert few.bm * few.bn < many.bm * many.bn
    assert many == tiles.stages()
    monkeypatch.setattr(tiles, "card", lambda: (89, 99 * 1024))
    for side in (64, 512, 2048, 8192):
        assert tiles.for_shape(side, side, side, 128).shared_bytes <= 99 * 1024


@ON_SIMULATOR
@pytest.mark.parametrize(
    ("plan", "old", "new", "error"),
    [
        (Plan(Tile(64, 64, 1, 2), parts=3), "__threadfence();", "", simulator.DataRace),
        (Plan(Tile(64, 64, 1, 2)), "fence_for_tma();", "", simulator.MissingProxyFence),
        (Plan(Tile(64, 64, 1, 2)), "barrier_wait(full_at + 8 * stage, parity);", "", simulator.UninitializedRead),
    ],
)
def test_mistakes_are_found(monkeypatch, plan, old, new, error):
    source = ENTRY_FILE.read_text(encoding="utf-8")
    assert source.count(old) == 1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ENTRY_FILE.name
        file.write_text(source.replace(old, new), encoding="utf-8")
        monkeypatch.setattr(every_shape, "ENTRY_FILE", file)
        with pytest.raises(error):
            product(72, 72, 448, "NN", plan)


@pytest.mark.parametrize("tile", [*ALONE, *STACKS], ids=str)
def test_machine_code_for_hopper_is_as_it_must_be(tile):
    file, options = Plan(tile).code("float16", "NN", direct=False)
    log, *_ = nvrtc.assemble_cuda(file.read_text(), file.name, "90a", (*hopper.include(), *options))
    assert "0 bytes spill stores" in log
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
    registers = int(re.search(r"Used (\d+) registers", log).group(1))
    assert -(-registers // 8) * 8 * tile.threads * tile.blocks <= 65536
    assert ENTRY.encode() in hopper.cubin(file, options)


# -- the rule ----------------------------------------------------------------------------------------------------------


def test_the_rule_chooses_about_as_well_as_it_says():
    assert RULE.table["device"].startswith("NVIDIA H")
    rule, rows = RULE.table["rule"], RULE.rows()
    assert set(rule["constants"]) == set(RULE.start)
    for name, half in (("fitted", rows[::2]), ("held_out", rows[1::2])):
        assert RULE.regret(rule["constants"], half) == pytest.approx(rule[f"regret_{name}"], rel=1e-3)
    assert rule["regret_held_out"]["mean"] <= 1.05


def test_every_shape_has_a_plan():
    random = generator()
    for _ in range(300):
        shape = tuple(drawn(random, (40000, 40000, 40000)))
        for transposed in LETTERS:
            plan = RULE.chosen(*shape, transposed)
            assert not plan.refuses(*shape, transposed, 132), (shape, transposed)
    few, many = RULE.chosen(1024, 1024, 1024), RULE.chosen(8192, 8192, 8192)
    assert few.tile.bm * few.tile.bn < many.tile.bm * many.tile.bn
    assert RULE.chosen(64, 64, 65536).parts > 1
    assert RULE.chosen(4, 8192, 8192).swapped
    assert RULE.chosen(1819, 356, 27).tile.spread


def test_a_plan_comes_back_from_the_table():
    for plan in PLANS:
        assert RULE.unpacked(packed(plan)) == plan


def test_what_was_measured_is_what_the_rule_chooses():
    value = recordings.values()["every_shape"]
    rows = value["rows"]
    assert value["seed"] == measured_shapes.SEED
    for name, multiple in (("drawn", 1), ("drawn multiples of 8", 8)):
        drawn = measured_plans.drawn(measured_shapes.SEED, multiple)
        assert [tuple(row["shape"]) for row in rows[name]] == drawn
        assert not set(drawn) & {row.shape for row in RULE.rows()}
    for group, found in rows.items():
        for row in found:
            assert row["correct"], row
            assert row["plan"] == str(RULE.chosen(*row["shape"], row["transposed"])), row["shape"]
        for of in ("cold", "warm"):
            assert measured_plans.summary(found, of) == pytest.approx(value["summaries"][group][of], rel=1e-3)
    machine = recordings.recorded("every_shape").machine
    assert machine["driver"]
    assert "nvidia-cublas" in machine["packages"]


def test_the_header_quotes_what_was_recorded():
    text = " ".join(ENTRY_FILE.read_text(encoding="utf-8").partition("#include")[0].replace("//", "").split())
    recorded = recordings.values()["every_shape"]["summaries"]
    groups = [recorded[name] for name in ("drawn", "drawn multiples of 8", "networks", "lab")]
    drawn, eights, networks, lab = (group["cold"] for group in groups)
    assert (
        f"{drawn['mean']:.2f} of cuBLASLt's fastest algorithm, the geometric mean, the least {drawn['least']:.2f}"
        in text
    )
    number = ("none", "one", "two", "three")[eights["below_0.8"]]
    assert f"multiples of 8, {eights['mean']:.2f}, {number} below 0.8, the least {eights['least']:.2f}" in text
    assert ("none is", "one is", "two are", "three are")[drawn["below_0.8"]] + " below 0.8. Over 40" in text
    for name, found in (("networks' shapes", networks), ("the lab's", lab)):
        assert f"{name} {found['mean']:.2f}, the least {found['least']:.2f}" in text
    warm = [group["warm"] for group in groups]
    least = min(found["least"] for found in warm)
    means = "{}, {}, {} and {}".format(*(f"{found['mean']:.2f}" for found in warm))
    assert f"with operands in it {means}, the least {least:.2f}" in text
    for name, words in (("held_out", "{:.1f} % longer than"), ("fitted", "of the others {:.1f}")):
        regret = RULE.table["rule"][f"regret_{name}"]
        assert words.format(100 * regret["mean"] - 100) in text
        assert f"at worst {100 * regret['most'] - 100:.0f} %" in text


def test_lesson_and_page_say_what_the_rule_misses():
    lesson = (COURSE / "notebooks" / "05_tensor_machines.ipynb").read_text(encoding="utf-8")
    every, rule = recordings.recorded("every_shape"), RULE.table["rule"]["regret_held_out"]
    drawn, eights = (every.value["summaries"][name]["cold"] for name in ("drawn", "drawn multiples of 8"))
    (deep,) = (row["cold"] for row in every.value["rows"]["lab"] if row["shape"] == [128, 256, 65536])
    assert f"at {deep['ratio']:.2f} of its speed ({every.origin})" in lesson
    reached = f"reaches {eights['mean']:.2f}, at least {eights['least']:.2f}, where sides are multiples of 8"
    assert f"{reached} (the library has more widths of tiles), and {drawn['mean']:.2f} of any size" in lesson
    assert f"Its rule takes up to {100 * rule['most'] - 100:.0f} % longer" in lesson
    rows, constants = RULE.rows()[1::2], RULE.table["rule"]["constants"]
    worst = max(rows, key=lambda row: regret(row, RULE.best(constants, row.shape)))
    plan = RULE.best(constants, worst.shape)  # as benchmark.py says
    assert (plan.tile.bm, plan.tile.bn, plan.parts > 1) == (128, 192, True)
    assert any(2 * line % 128 for line in worst.shape[1:])
    assert not {80, 144} & {tile.bn for tile in (*ALONE, *STACKS)}


def test_lesson_05_quotes_the_errors_of_sums_of_e4m3():
    rows = recordings.values()["types"]
    (errors,) = [r["errors"] for r in rows if r["factors"] == "e4m3" and r["shape"] == [8192] * 3]
    said = (COURSE / "notebooks" / "05_tensor_cores.ipynb").read_text(encoding="utf-8")
    assert f"an error of {errors['ours']:.4f} at 8192³, {errors['ours, one level']:.4f} without" in said


def test_other_types_were_measured_as_the_rule_chooses():
    rows = recordings.values()["types"]
    assert {row["factors"] for row in rows} == {"float16", "bfloat16", "e4m3"}
    for row in rows:
        m, n, k = row["shape"]
        chosen = RULES[row["factors"]].chosen(m, n, k // 2 if row["factors"] == "e4m3" else k, "NT")
        assert row["plan"] == str(chosen), row
        assert row["correct"], row
        assert row["errors"]["ours"] == pytest.approx(row["errors"]["library"], rel=0.01)


@ON_SIMULATOR
def test_estimates_of_a_tile_each_choose_the_tile_without_a_gpu():
    """evidence/estimates/README.md has the regret over more tiles."""
    depth, work, found = 512, {}, []
    for tile in (Tile(64, 64, 1, 8), Tile(128, 128, 2, 6), Tile(128, 256, 2, 4)):
        a, b = (cp.asarray(np.ones(shape, np.float16)) for shape in ((tile.bm, depth), (depth, tile.bn)))
        with profile() as launches:
            launch(a, b, cp.zeros((tile.bm, tile.bn), np.float16), Plan(tile))
        work[tile] = work_of(launches[0], card("H100"))
    for row in RULE.rows():
        m, n, k = row.shape
        plans = zip(row.plans, row.seconds, strict=True)
        seconds = {plan.tile: time for plan, time in plans if plan.tile in work and plan == Plan(plan.tile)}
        if any(size % 8 for size in row.shape) or k < 128 or not seconds.keys() >= work.keys():
            continue

        def estimated(tile, m=m, n=n, k=k):
            footprint = 2 * (m * k + k * n), 2 * m * n
            return launch_time(work[tile].times(Plan(tile).tiles(m, n), k / depth, footprint), rates("H100")).seconds

        times = {tile: seconds[tile] / min(seconds[of] for of in work) for tile in work}
        found.append((times[min(work, key=estimated)], *times.values()))
    chosen, *always = zip(*found, strict=True)
    assert len(found) >= 20
    assert mean_regret(chosen) <= 1.05
    assert min(map(mean_regret, always)) > 1.1  # so there is something to choose
