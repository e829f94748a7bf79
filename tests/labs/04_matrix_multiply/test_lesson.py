"""What lab 04's text says of code that learners write, and the picture that its section 8 draws."""

import importlib.util
import math
import re

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.matmul import recordings
from kernels.matmul.counting import counted, per_multiply_add
from kernels.matmul.pipeline_diagram import draw_pipeline, tile_events
from tests.support.lesson_answers import load
from warpcourse.bench.lab import find
from warpcourse.paths import COURSE
from warplab import simulate
from warplab.estimating.estimate import estimate
from warplab.hardware.cards import card
from warplab.launch.kernel_source import CudaSource

ANSWERS = load(find("matmul"))
LESSON = COURSE / "notebooks" / "04_matrix_multiply.ipynb"

USED = {"__syncthreads": "barrier", "sum[r][s] +=": "use"}
LINES = {
    "warp_tile": {"(from) : v": "order", "of_a.x": "come", "of_a.z": "come", "(&b_tile[b_k]": "come", **USED},
    "async_copies": {
        "cp.async.ca": "order",
        "cp.async.cg": "order",
        "commit_group": "commit",
        "wait_group": "come",
        **USED,
    },
}
ROW_AFTER_ROW = "\n        ".join(
    f"for i in range(32): sum{r} += a_tile[y + {8 * r}, i] * b_tile[i, x]" for r in range(4)
)
WIDE = """
extern "C" __global__ void f(const int* starts, float* out)
{
    __shared__ float4 words[1024];
    for (int i = threadIdx.x; i < 1024; i += 32) words[i] = make_float4(i, i, i, i);
    __syncthreads();
    const float4 four = words[starts[threadIdx.x] / 4];
    out[threadIdx.x] = four.x + four.y + four.z + four.w;
}
"""


def kernel_of(source, tmp_path, name="four_rows"):
    """The Numba kernel that a learner's cell defines."""
    path = tmp_path / "answer.py"
    path.write_text(f"from numba import float32\n\nfrom warplab import cuda\n\n\n{source}\n")
    spec = importlib.util.spec_from_file_location("answer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def counts_of(source, tmp_path):
    """The counts of a `four_rows` for 64 × 64 × 32, which must be right."""
    kernel = kernel_of(source, tmp_path)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((64, 32), (32, 64)))
    c = np.zeros((64, 64), np.float32)
    launch = simulate(kernel, (2, 2), (32, 8), (a, b, c))
    np.testing.assert_array_equal(c, a @ b)
    return launch.counts


def test_four_sums_in_one_loop_take_more_passes_than_one_loop_after_another(tmp_path):
    loop = f"for i in range(32): {ANSWERS.INNER}"
    assert loop in ANSWERS.four_rows()
    together = per_multiply_add(counts_of(ANSWERS.four_rows(), tmp_path))
    after = per_multiply_add(counts_of(ANSWERS.four_rows().replace(loop, ROW_AFTER_ROW), tmp_path))
    assert (together["passes"], after["passes"]) == (1.3125, 0.8125)


def estimate_of(source, tmp_path, name, block):
    """The lesson's estimate for 4096 × 4096 × 4096, from 256 × 256 × 256."""
    tmp_path.mkdir()
    a, b, c = (np.ones((256, 256), np.float32) for _ in range(3))
    launch = simulate(kernel_of(source, tmp_path, name), (8, 8), block, (a, b, c), sample_blocks=4)
    return estimate(launch, blocks=256, each=16, footprint=(8 * 4096**2, 4 * 4096**2))


def needs(found):
    """What a launch needs of each resource: its seconds alone, and its work."""
    return {r.name: (r.seconds, r.work) for r in found.time.resources}


def test_what_the_lesson_says_of_the_estimates_of_four_rows(tmp_path):
    loop = f"for i in range(32): {ANSWERS.INNER}"
    cells = {cell.id: cell.source for cell in nbformat.read(LESSON, as_version=4).cells}
    tiled = estimate_of(cells["matmul-tiled"], tmp_path / "tiled", "tiled", (32, 32))
    together = estimate_of(ANSWERS.four_rows(), tmp_path / "together", "four_rows", (32, 8))
    one_by_one = ANSWERS.four_rows().replace(loop, ROW_AFTER_ROW)
    after = estimate_of(one_by_one, tmp_path / "after", "four_rows", (32, 8))
    assert (tiled.limit, together.limit, after.limit) == ("L1 data path", "issue slots", "L1 data path")
    assert needs(together)["L1 data path"] < needs(tiled)["L1 data path"]
    assert needs(together)["issue slots"][1] > 2 * needs(tiled)["issue slots"][1] > 2 * needs(after)["issue slots"][1]
    assert after.seconds < 0.7 * tiled.seconds < 0.7 * together.seconds
    asked_for = 2 * 4096**3 / (1e12 * card("H100").fp32_tflops)
    assert 1.9e-3 < asked_for < 2.2e-3
    assert needs(tiled)["FMA pipe"][0] > 1.2 * asked_for
    assert max(seconds for seconds, _ in needs(tiled).values()) < tiled.seconds


def test_passes_of_a_sum_in_float64_are_not_given(tmp_path):
    counts = counts_of(ANSWERS.four_rows().replace("= float32(0)", "= 0"), tmp_path)
    with pytest.raises(ValueError, match="start its sums with float32"):
        per_multiply_add(counts)


PATTERNS = {
    "side by side": lambda i: 4 * i,
    "two apart": lambda i: 8 * i,
    "all in one group": lambda i: 32 * i,
    "padded rows": lambda i: 36 * i,
    "a group a quarter": lambda i: 4 * (i // 8) + 32 * i,
    "one quarter worse": lambda i: 4 * (i % 8) + 1024 * (i // 8) if i > 7 else 64 * i,
    "shuffled": lambda i: 4 * (i * 11 % 32),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_the_passes_of_16_byte_loads_are_those_that_the_task_asks_for(name):
    starts = [PATTERNS[name](lane) for lane in range(32)]
    scope = {}
    exec(ANSWERS.ANSWERS["your-turn-wide"].right, scope)
    out = np.zeros(32, np.float32)
    launch = simulate(CudaSource(WIDE, "f"), 1, 32, (np.array(starts, np.int32), out))
    np.testing.assert_array_equal(out, starts)
    assert launch.counts.shared_load_requests == 1
    assert launch.counts.shared_load_wavefronts == scope["wide_passes"](starts)


def test_tiles_are_on_the_way_while_others_are_used_from_step_8_on():
    for name, ahead in (("warp_tile", 0), ("async_copies", 1)):
        launch = counted(name)
        events = tile_events(launch, LINES[name])
        at = {event: place for place, event in enumerate(events)}
        for tile in range(8):
            assert at[("order", tile)] < at[("come", tile)] < at[("use", tile)], name
        for tile in range(7):
            overlaps = at[("order", tile + 1)] < at[("use", tile)] < at[("come", tile + 1)]
            assert overlaps == bool(ahead), (name, tile)
        assert isinstance(draw_pipeline(launch, LINES[name]), Figure)


def test_the_picture_of_tiles_needs_lines_that_were_run():
    launch = counted("warp_tile")
    with pytest.raises(ValueError, match="there is no kind arrive; choose among order"):
        draw_pipeline(launch, {"of_a.x": "arrive"})
    with pytest.raises(ValueError, match="holds no line of the kind come"):
        draw_pipeline(launch, {"(from) : v": "order", "sum[r][s] +=": "use", "cp.async": "come"})


VALUES = recordings.values()
RATE = {row["name"]: row for row in VALUES["ladder"]["rows"]}
NCU = {row["name"]: row for row in VALUES["traffic"]}
PEAK, SMS = VALUES["ladder"]["peak_tflops"], 132


def faster(name, before):
    return RATE[before]["seconds"] / RATE[name]["seconds"]


def instructions(name):
    return 32 * NCU[name]["warp_instructions"] / NCU[name]["ffma_threads"]


def useful(m, n, tile=128):
    """The lesson's `busy`."""
    return m * n / (math.ceil(math.ceil(m / tile) * math.ceil(n / tile) / SMS) * SMS * tile * tile)


def shares_of_the_formula():
    rows = [(useful(*row["shape"][:2]), row["warp_tile"]["tflops"]) for row in VALUES["shapes"]]
    most, best = (max(column) for column in zip(*rows, strict=True))
    shares = sorted(rate / best / (share / most) for share, rate in rows)
    assert [f"{share:.2f}" for share in shares[-3:]] == ["0.99", "0.99", "1.00"]  # "large matrices are at 1"
    return (f"the measured share is {shares[0]:.2f} to {shares[-4]:.2f} of the formula's",)


def blocks_of_the_library():
    blocks = {
        tuple(row["shape"]): math.prod(map(int, re.findall(r"\d+", row["kernels"][0]["grid"])))
        for row in VALUES["library_kernels"]
    }
    assert sum(each in (128, 256) for each in blocks.values()) == 9
    assert min(each for (m, n, _), each in blocks.items() if m * n >= 4095 * 4097) == 512
    return (
        "For nine of the fifteen shapes cuBLAS launches 128 or 256 blocks",
        f"; {blocks[16, 8192, 8192]}, nearly five, for 16 × 8192 × 8192. "
        f"128 × 128 × 128 is too small ({blocks[128, 128, 128]});",
    )


def ratios_by_shape():
    ratio = {tuple(row["shape"]): row["tuned"]["tflops"] / row["cublas"]["tflops"] for row in VALUES["shapes"]}
    deep = [ratio.pop(shape) for shape in ((512, 512, 16384), (128, 128, 65536))]
    said = f"step 9 reaches {min(ratio.values()):.2f} to {max(ratio.values()):.2f} of cuBLAS on the recorded H100."
    return said, "it falls to {:.2f}, and to {:.2f} at 128 × 128 × 65536".format(*deep)


def bytes_moved():
    moved = {name: row["dram_bytes"] for name, row in NCU.items()}
    least, flop = 3 * 4 * 4096**2, 2 * 4096**3
    allowed = flop / moved["coalesced"] * VALUES["copy_gbps"] / 1e3
    all_of = [moved[name] / 1e9 for name in ("naive", "coalesced", "async_copies", "tuned", "warp_tile")]
    return (
        f"Step 2 moves {moved['coalesced'] / least:.0f} times as many bytes as it must; that would still allow "
        f"{allowed:.0f} TFLOP/s, and it reaches {RATE['coalesced']['tflops']:.0f}.",
        "step 1 moves {:.1f} GB, step 2 {:.1f}, steps 8 and 9, with smaller tiles, {:.1f} and {:.1f} where 5 to 7 move "
        "{:.1f}.".format(*all_of),
    )


def factors():
    top = PEAK * 1e12 / (2 * 128 * SMS)
    shares = {n: r["issue_active_percent"] / 100 / instructions(n) * r["clock_hz"] / top for n, r in NCU.items()}
    off = max(abs(share / RATE[name]["ratio_to_peak"] - 1) for name, share in shares.items())
    return (f"They do, to within {100 * off:.1f} %, for all steps and for cuBLAS",)


QUOTED = {
    "matmul-title": lambda: (f"NVIDIA's library to {RATE['tuned']['ratio_to_cublas']:.2f} of it",),
    "matmul-fma-peak-after": lambda: (f"{PEAK:.1f} of 66.9 in the recording ({recordings.recorded('ladder').origin})",),
    "matmul-passes-after": lambda: (
        f"runs exactly at this limit, {RATE['naive']['tflops']:.3f}",
        f"busy {NCU['naive']['lsu_data_percent']:.0f} % of the time. "
        f"`coalesced` reaches {RATE['coalesced']['tflops']:.2f} of {PEAK / 8:.1f}.",
    ),
    "matmul-tiled-after": lambda: (
        f"{faster('shared_tile', 'coalesced'):.1f} times the speed",
        f"That is {PEAK:.1f} / 4 / 1.56, or {PEAK / 4 / 1.5625:.1f} TFLOP/s, "
        f"and {RATE['shared_tile']['tflops']:.1f} were",
    ),
    "matmul-register-after": lambda: (
        f"From {RATE['shared_tile']['tflops']:.1f} to {RATE['register_tile_2d']['tflops']:.1f} TFLOP/s",
    ),
    "matmul-vector-after": lambda: (
        f"{instructions('vectorised'):.2f} per FMA instead of {instructions('register_tile_2d'):.2f}",
        f"comes {100 * faster('vectorised', 'register_tile_2d') - 100:.0f} % more speed in the recording",
    ),
    "matmul-warp-after": lambda: (
        f"busy {NCU['vectorised']['lsu_data_percent']:.0f} % of the time in step 6 and now "
        f"{NCU['warp_tile']['lsu_data_percent']:.0f} % (`ncu`)",
    ),
    "matmul-async-after": lambda: (f"({instructions('async_copies'):.2f} instead of {instructions('warp_tile'):.2f})",),
    "matmul-tuned-after": lambda: (
        f"still {100 * faster('tuned', 'async_copies') - 100:.0f} % faster, {RATE['tuned']['ratio_to_cublas']:.2f} of",
    ),
    "matmul-roofline-after": bytes_moved,
    "matmul-instructions-after": factors,
    "matmul-shapes-predict": shares_of_the_formula,
    "matmul-shapes-picture": blocks_of_the_library,
    "matmul-shapes-after": ratios_by_shape,
    "matmul-verdict-text": lambda: (
        f"reaches {PEAK / 66.9:.2f} of the H100's in the recording",
        f"went from {RATE['naive']['ratio_to_peak']:.3f} to {RATE['tuned']['ratio_to_peak']:.2f} of the peak in nine "
        f"steps, and reached {RATE['cublas']['ratio_to_peak']:.2f} in NVIDIA's library",
    ),
}


@pytest.mark.parametrize("cell", QUOTED)
def test_the_lesson_quotes_what_was_recorded(cell):
    said = next(each.source for each in nbformat.read(LESSON, as_version=4).cells if each.id == cell)
    for words in QUOTED[cell]():
        assert words in said, words
