"""The numbers that lab 13's second lesson quotes follow from data sheets, from its own cells and from right answers."""

import importlib.util

import ml_dtypes
import nbformat
import numpy as np
import pytest

from kernels.attention import counting, lesson, recordings
from kernels.attention.measurements import UNFUSED
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


def test_the_errors_of_formats_are_those_of_the_text():
    scope = {"np": np, "lesson": lesson}
    exec(CELLS["work-errors"], scope)
    half, brain, eight = (scope["error"](k) for k in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn))
    assert (
        f"FP16 is off by {100 * half:.2f} %, bf16 by {100 * brain:.1f}, FP8 by {100 * eight:.0f}"
        in (CELLS["work-errors-after"])
    )
    assert eight / half == pytest.approx(128, rel=0.05)


def test_what_an_h200_did_is_what_was_recorded():
    passes = [recordings.recorded(f"{name}_table") for name in ("forward", "backward")]
    assert {m.device for m in passes} == {"NVIDIA H200"}
    forward, backward = ([row for row in m.value["rows"] if not row["causal"]] for m in passes)
    text = CELLS["work-verdict"]

    def between(values, digits):
        return f"{min(values):.{digits}f} to {max(values):.{digits}f}"

    of_cudnn = [row["tflops"]["cuDNN"] for row in forward if 1024 <= row["length"] <= 8192]
    assert f"{between(of_cudnn, 0)} TFLOP/s at lengths of 1k to 8k" in CELLS["work-libraries"]
    assert passes[0].date in CELLS["work-libraries"]
    shares = [100 * rate / card("H200").tensor_tflops for rate in of_cudnn]
    assert f"{between(shares, 0)} % of the peak" in text
    gains, again = (
        [row["seconds"][UNFUSED] / row["seconds"]["FlashAttention 2"] for row in x] for x in (forward, backward)
    )
    assert f"FlashAttention 2 was {between(gains, 1)} times as fast" in text
    assert f"backward pass took {between([1 / x for x in again], 2)} of the time" in text
    longest = forward[-1]
    fewer, more = longest["bytes"]["wgmma"] / 1e9, longest["peers_bytes"][UNFUSED] / 1e9
    assert longest["length"] == 16384
    assert f"16 heads of 16 384 tokens took {fewer:.2f} GB on an H200, unfused {more:.1f} |" in text


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


def test_what_the_text_says_of_languages():
    """By what is counted of Numba and CUDA C++ here; of Triton where it is installed, else as recorded."""
    numba, cuda_cpp, triton = counting.of_languages().values()
    counts = ["bytes by DRAM, at least", "shared wavefronts", "tensor instructions", "registers"]
    assert [name for name in counts if cuda_cpp[name] == triton[name]] == counts[:1]
    assert str(counts).replace("'", '"') in CELLS["work-languages-predict"]
    assert 1.95 < numba[counts[0]] / cuda_cpp[counts[0]] < 2
    length, size, heads, _ = counting.CASE
    assert cuda_cpp["tensor instructions"] == heads * length**2 * size // 1024
    assert triton["tensor instructions"] < cuda_cpp["tensor instructions"] / 4
    assert triton["shared wavefronts"] < cuda_cpp["shared wavefronts"]
    for pipe in ("FMA", "LSU"):
        assert 50 < numba[f"{pipe} instructions"] / cuda_cpp[f"{pipe} instructions"] < 200


def test_a_picture_of_a_matrix_tells_its_numbers():
    few, many = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 1]]), np.array([[0.5, 0.25], [0.5, 0.5]])
    words = lesson.draw_matrices("title", {"": few}, "key", "query").says
    assert words == "title; by query and key: 0 to 1: 1 at 0, 0 at 1 to 2; 2: 1 at 0 to 2."
    words = lesson.draw_matrices("title", {"P": many}, "key", "query", "ab", ".2f").says
    assert words == "title; P; by query and key: a: 0.25 to 0.50, most at a; b: 0.50 to 0.50, most at a, b."


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
