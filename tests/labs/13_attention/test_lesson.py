"""What lesson 13's text says of kernels that learners write, by the right answers; and what its helpers compute."""

import importlib.util

import nbformat
import numpy as np
import pytest

from kernels.attention import lesson
from tests.support.lesson_answers import load
from tests.support.random_inputs import generator
from warpcourse.bench.lab import find
from warpcourse.paths import COURSE
from warplab import checks, simulate
from warplab.checks import CheckFailed
from warplab.estimating.estimate import estimate
from warplab.hardware.cards import card

ANSWERS = load(find("attention"))
CELLS = {c.id: c.source for c in nbformat.read(COURSE / "notebooks" / "13_attention.ipynb", as_version=4).cells}
HEAD = "import math\n\nfrom numba import float32\n\nfrom kernels.attention import lesson\nfrom warplab import cuda\n\n"
WRITTEN = ("scores", "softmax", "weighted", "one_row", "tiled")
N, SMALL = 4096, 256
ONE, ALL = 4 * N * 32, 4 * N * N  # bytes of Q, and of S
# kernel: grid, block, how many times the blocks and the loops of 4096 tokens, and what they load and store.
LAUNCHES = {
    "scores": ((8, 32), (32, 8), 256, 1, (2 * ONE, ALL)),
    "softmax": (256, 32, 16, 16, (ALL, ALL)),
    "weighted": ((1, 32), (32, 8), 16, 16, (ALL + ONE, ONE)),
    "one_row": (256, 32, 16, 16, (3 * ONE, ONE)),
    "tiled": (32, (32, 8), 16, 16, (3 * ONE, ONE)),
    "additive": ((8, 32), (32, 8), 256, 1, (2 * ONE, ALL)),
}


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """The launch of each kernel of the lesson at 256 tokens, as right answers make them."""
    parts = [
        CELLS["attention-warp"],
        *(ANSWERS.ANSWERS[f"your-turn-{name.replace('_', '-')}"].right for name in WRITTEN),
    ]
    path = tmp_path_factory.mktemp("lesson") / "written.py"
    path.write_text("\n\n\n".join([HEAD + "SCALE = lesson.SCALE", *parts, CELLS["attention-additive"]]) + "\n")
    spec = importlib.util.spec_from_file_location("written", path)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    q, k, v = lesson.inputs(np.random.default_rng(1), SMALL)
    kt, o = np.ascontiguousarray(k.T), np.zeros((SMALL, 32), np.float32)
    s, p = (np.zeros((SMALL, SMALL), np.float32) for _ in range(2))
    arguments = {"scores": (q, kt, s), "softmax": (s, p), "weighted": (p, v, o), "additive": (q, kt, q[0].copy(), p)}
    return {
        name: simulate(getattr(written, name), grid, block, arguments.get(name, (q, k, v, o)))
        for name, (grid, block, *_) in LAUNCHES.items()
    }


@pytest.fixture(scope="module")
def seconds(launches):
    """The lesson's estimates for 4096 tokens on an H200: seconds and what limits, by kernel."""
    found = {}
    for name, (*_, blocks, each, footprint) in LAUNCHES.items():
        made = estimate(launches[name], "H200", blocks=blocks, each=each, footprint=footprint)
        found[name] = made.seconds, made.limit
    return found


def test_what_the_text_says_of_bytes(launches):
    stored = {name: launch.counts.global_store_bytes for name, launch in launches.items()}
    three = stored["scores"] + stored["softmax"] + stored["weighted"]
    assert three / stored["one_row"] == 17
    assert "17 times fewer bytes at 256 tokens" in CELLS["attention-fused-after"]
    loaded = {name: launch.counts.global_load_bytes for name, launch in launches.items()}
    assert 1 < (loaded["scores"] + loaded["softmax"] + loaded["weighted"]) / loaded["one_row"] < 1.1
    assert "it loads nearly as much as the three" in CELLS["attention-fused-after"]


def test_what_the_text_says_of_estimates(seconds):
    text = CELLS["attention-estimated-after"]
    three = sum(seconds[name][0] for name in ("scores", "softmax", "weighted"))
    row, tile = (seconds[name][0] for name in ("one_row", "tiled"))
    assert f"the three take {1e3 * three:.2f} ms together, `one_row` {1e3 * row:.1f}" in text
    assert f"`tiled` takes {1e3 * tile:.2f} ms" in text
    assert f"{row / tile:.0f} times as fast as `one_row`" in text
    assert 3.7 < three / tile < 4
    assert "nearly 4 times as fast as the three" in text
    assert all(limit != "DRAM" for _, limit in seconds.values())
    assert "none of the five is limited by memory" in text
    assert f"stores {N * N * 2 / (N * 32) + 1:.0f} times fewer bytes" in text
    assert f"{seconds['additive'][0] / seconds['scores'][0]:.1f} times, on" in CELLS["attention-additive-after"]


def test_what_the_text_says_of_data_sheets():
    scope = {}
    exec(CELLS["attention-gain"], scope)
    most = {d: scope["gain"](card("A100"), d) for d in (64, 128)}
    assert f"At most {most[64]:.1f} and {most[128]:.1f} on an A100" in CELLS["attention-verdict"]
    h200 = card("H200")
    assert f"({int(h200.tensor_tflops)} and {h200.fp32_tflops:.0f} TFLOPS" in CELLS["attention-additive-after"]
    assert round(h200.tensor_tflops / h200.fp32_tflops) == 15
    assert 16384 * 16384 / (4 * 16384 * 64) == 64
    assert "four times the head. At 16 384 P has 64 times the bytes" in CELLS["attention-stored-after"]


def test_the_gradients_are_those_of_small_steps():
    rng = generator()
    q, k, v = (rng.standard_normal((5, 32)) for _ in range(3))
    do = rng.standard_normal((5, 32))
    for which, gradient in enumerate(lesson.gradients(q, k, v, do)):
        given = [q, k, v]
        at = int(rng.integers(5)), int(rng.integers(32))
        loss = []
        for step in (1e-5, -1e-5):
            moved = [x.copy() for x in given]
            moved[which][at] += step
            loss.append((lesson.exact(*moved)[2] * do).sum())
        assert (loss[0] - loss[1]) / 2e-5 == pytest.approx(gradient[at], rel=1e-6, abs=1e-8)


def test_lanes_hold_what_mma_sync_multiplies():
    rng = generator()
    a, b = rng.integers(-4, 5, (16, 16)), rng.integers(-4, 5, (16, 8))
    found = lesson.gathered(lesson.product(lesson.a_operand(a), lesson.b_operand(b)))
    np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize(
    ("merge", "said"),
    [
        (lambda *given: None, "merge is not written yet"),
        (lambda *given: given[0], "merge returns no pair"),
        (lambda a, x, b, y: (a, x * np.exp(a - max(a, b)) + y), "of a row of"),
    ],
)
def test_a_merge_that_is_none_is_refused(merge, said):
    with pytest.raises(CheckFailed, match=said):
        checks.trials("merge", lambda rng: lesson.check_splits(merge, rng))
