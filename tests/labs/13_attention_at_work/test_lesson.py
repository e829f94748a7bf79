"""The numbers that lab 13's second lesson quotes follow from data sheets, from its own cells and from right answers."""

import importlib.util

import ml_dtypes
import nbformat
import numpy as np
import pytest

from kernels.attention import lesson
from tests.support.lesson_answers import load
from warpcourse.bench.lab import find
from warpcourse.paths import COURSE
from warplab import simulate
from warplab.checks import CheckFailed
from warplab.estimating.estimate import estimate
from warplab.hardware.cards import CARDS, card

LESSON = COURSE / "notebooks" / "13_attention_at_work.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(LESSON, as_version=4).cells}
ANSWERS = load(find("attention").lessons[1])


def test_computing_again_is_faster_than_reading_on_tensor_cores_alone():
    cards = [CARDS[name] for name in ("P100", "V100", "A100", "H100", "H200")]
    tensor = [2 * 128 / c.tensor_tflops / 1e12 / (2 / c.bandwidth_gbs / 1e9) for c in cards if c.tensor_tflops]
    ordinary = [2 * 128 / c.fp32_tflops / 1e12 / (4 / c.bandwidth_gbs / 1e9) for c in cards]
    assert len(tensor) == 4
    assert f"takes {min(tensor):.2f} to {max(tensor):.2f} of the time of reading" in CELLS["work-again-after"]
    assert f"{min(ordinary):.0f} to {max(ordinary):.0f} times as long" in CELLS["work-again-after"]
    h20, l40s = CARDS["H20"], CARDS["L40S"]
    others = 128 * h20.bandwidth_gbs / h20.tensor_tflops / 1e3, 64 * l40s.bandwidth_gbs / l40s.fp32_tflops / 1e3
    said = "an H20's tensor cores take {:.1f} times as long as reading, an L40S's FP32 cores {:.1f}"
    assert said.format(*others) in CELLS["work-again-after"]
    s = 4 * 4096**2
    reading = s / (1e9 * card("H200").bandwidth_gbs)
    assert f"reading S, {s / 1e6:.0f} MB, {1e6 * reading:.0f} µs by data sheet" in CELLS["work-again-after"]


def test_the_errors_of_formats_are_those_of_the_text():
    scope = {"np": np, "lesson": lesson}
    exec(CELLS["work-errors"], scope)
    half, brain, eight = (scope["error"](k) for k in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn))
    assert (
        f"FP16 is off by {100 * half:.2f} %, bf16 by {100 * brain:.1f}, FP8 by {100 * eight:.0f}"
        in (CELLS["work-errors-after"])
    )
    assert eight / half == pytest.approx(128, rel=0.05)


def test_shares_of_peaks_are_those_of_the_readings():
    text = CELLS["work-libraries"]
    low, high = 595 / card("H200").tensor_tflops, 657 / card("H200").tensor_tflops
    assert "595 to 657" in text
    assert f"{100 * low:.0f} to {100 * high:.0f} % of the peak" in CELLS["work-verdict"]


def test_64_blocks_decode_as_much_faster_as_the_text_says(tmp_path):
    head = "import math\nfrom numba import float32\nfrom kernels.attention import lesson\nfrom warplab import cuda\n"
    path = tmp_path / "written.py"
    parts = head + "SCALE = lesson.SCALE", CELLS["work-warp"], ANSWERS.ANSWERS["your-turn-split"].right
    path.write_text("\n\n\n".join(parts) + "\n")
    spec = importlib.util.spec_from_file_location("written", path)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    scope = {"np": np, "lesson": lesson, "simulate": simulate, "split": written.split}
    exec(CELLS["work-split-run"], scope)
    one, many = (estimate(scope["decode"](blocks)[0], "H200", each=16).seconds for blocks in (1, 64))
    assert f"{one / many:.0f} times as fast" in CELLS["work-split-after"]


@pytest.mark.parametrize(
    ("check", "answer", "said"),
    [
        (lesson.check_operand, lambda left, right: None, "operand is not written yet"),
        (lesson.check_operand, lambda left, right: left, "another kind of array"),
        (lesson.check_combine, lambda top, total, o: "?", "another kind of array"),
        (lesson.check_combine, lambda top, total, o: o.sum(axis=0), "combine returns wrong values"),
    ],
)
def test_an_answer_of_another_kind_is_refused(check, answer, said):
    with pytest.raises(CheckFailed, match=said):
        check(answer, np.random.default_rng(1))
