"""What lab 04's text says of code that learners write, and the picture that its section 8 draws."""

import importlib.util

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

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
