"""Lab 13's kernels on the active backend against float64, within derived bounds; what they refuse."""

import re

import numpy as np
import pytest

from kernels.attention import reference
from kernels.attention.counting import counted
from kernels.attention.forward_pass import STEPS, forward, wgmma_sizes
from kernels.attention.numba_kernels import rows_of
from kernels.attention.sources import SOURCES
from tests.support.random_inputs import generator
from warpcourse.bench import hopper
from warplab import cp, profile
from warplab.compile import nvrtc

from .bounds import forward_bounds, operands, rounded, within
from .held import check_forward, run_forward

HALVES = "float16", "bfloat16"
KINDS = {"naive": ("float32",), "fused": ("float32",), "mma": HALVES, "wgmma": HALVES}
# batch, heads, query heads for a head of keys, queries, keys, size, causal: one of each; no multiples of a tile, more
# keys than queries; more queries than keys, some of which see none; several tiles and groups.
CASES = (
    (1, 1, 1, 1, 1, 32, True),
    (1, 2, 2, 37, 70, 64, True),
    (2, 2, 1, 40, 9, 80, True),
    (1, 1, 1, 130, 150, 128, False),
    (2, 6, 3, 33, 65, 96, True),
    (1, 1, 1, 17, 33, 256, False),
)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in KINDS for kind in KINDS[name]])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_step_at_awkward_sizes(name, kind, case):
    check_forward(name, case, kind)


@pytest.mark.parametrize("name", ["naive", "fused"])
@pytest.mark.parametrize("size", [1, 33, 129, 256])
def test_steps_in_numba_take_any_size_of_heads(name, size):
    check_forward(name, (1, 2, 2, 5, 35, size, True), "float32")


@pytest.mark.parametrize("name", list(STEPS))
def test_random_shapes(name):
    random = generator()
    for _ in range(4):
        shared_by, of_keys = random.integers(1, 4, 2)
        queries, keys = random.integers(1, 100, 2)
        size, kind = random.choice([32, 64]), random.choice(KINDS[name])
        case = (1, int(shared_by * of_keys), int(shared_by), int(queries), int(keys), int(size), random.random() < 0.7)
        check_forward(name, case, str(kind), float(random.uniform(0.05, 0.5)), random)


@pytest.mark.parametrize("case", [(1, 3, 1, 300, 140, 32, True), (1, 4, 2, 200, 150, 64, False)], ids=str)
def test_blocks_of_hoppers_step_take_tile_after_tile(case, monkeypatch):
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 1)
    check_forward("wgmma", case, "float16")


@pytest.mark.parametrize("name", list(STEPS))
def test_large_and_rising_scores_are_rescaled(name):
    kind = KINDS[name][0]
    q, _, v = operands(generator(), 1, 1, 1, 20, 140, 64, kind)
    rising = rounded(np.sign(q.numbers[:, :, :1]) * np.linspace(0.1, 8, 140)[:, None], kind)
    out, _ = run_forward(name, q, rising, v, False, 1.0)
    numbers = q.numbers, rising.numbers, v.numbers
    exact, bound = reference.forward(*numbers, False, 1.0)[0], forward_bounds(*numbers, False, 1.0, kind)[0]
    assert within(out, exact, bound)


@pytest.mark.parametrize("name", list(STEPS))
def test_a_head_reads_nothing_of_its_neighbours(name):
    kind = KINDS[name][0]
    q, k, v = operands(generator(), 1, 3, 1, 20, 35, 32, kind)
    given = [x.given.copy() for x in (q, k, v)]
    for x in given:
        x[:, ::2] = np.nan
    out, lse = forward(*map(cp.asarray, given), step=name)
    alone = [x[:, 1:2] for x in (q.numbers, k.numbers, v.numbers)]
    exact, bound = reference.forward(*alone), forward_bounds(*alone, False, None, kind)
    assert within(cp.asnumpy(out)[:, 1:2], exact[0], bound[0])
    assert within(cp.asnumpy(lse)[:, 1:2], exact[1], bound[1])
    for found in (out, lse):
        assert np.isnan(cp.asnumpy(found)[:, ::2]).all(), "a fault upstream must not become zeros"


def test_the_bounds_tell_wrong_results_apart():
    q, k, v = (x.numbers for x in operands(generator(), 1, 4, 2, 33, 65, 64, "float16"))
    exact, _ = reference.forward(q, k, v, True)
    bound, _ = forward_bounds(q, k, v, True, None, "float16")
    assert within(rounded(exact, "float16").numbers, exact, bound)
    p = reference.weights(reference.scores(q, k, True))
    wide = reference.for_each_query_head(v, 4)
    coarse = np.where(p > p.max(-1, keepdims=True) / 2, rounded(p, "bfloat16").numbers * 1.004, p)
    for wrong in (
        reference.forward(q, k[:, ::-1], v[:, ::-1], True)[0],  # another head's keys
        reference.forward(q, k, v, False)[0],  # no mask
        reference.forward(q[:, :, 1:], k[:, :, :-1], v[:, :, :-1], True)[0],  # a mask that is one key further
        coarse @ wide,  # weights of too few digits
        p[..., 32:] @ wide[:, :, 32:],  # a tile left out
    ):
        assert not within(wrong, exact[:, :, -wrong.shape[2] :], bound[:, :, -wrong.shape[2] :])


def test_outputs_are_allocated_and_no_keys_give_zeros():
    q, k, v = (cp.asarray(x.given) for x in operands(generator(), 1, 2, 1, 5, 7, 32, "float16"))
    out, lse = forward(q, k, v)
    assert out.shape == q.shape
    assert lse.dtype == np.float32
    out, lse = forward(q, k[:, :, :0].copy(), v[:, :, :0].copy())
    assert not cp.asnumpy(out).any()
    assert (cp.asnumpy(lse) == -np.inf).all()
    assert forward(q[:, :, :0].copy(), k, v)[0].shape == (1, 2, 0, 32)


def test_wrong_arguments_are_named():
    q, k, v = (cp.asarray(x.given) for x in operands(generator(), 1, 4, 2, 5, 7, 32, "float16"))
    off = cp.zeros(q.size + 2, np.float16)[2:].reshape(q.shape)  # wgmma's step stores 8 bytes at a time
    for arguments, error, message in (
        ((cp.asnumpy(q), k, v), TypeError, r"q is a ndarray in host memory; copy it with cp\.asarray\(q\)"),
        ((q, k.astype(np.float32), v), ValueError, "k is float32; the kernel takes float16"),
        ((q[0], k, v), ValueError, r"q has shape \(4, 5, 32\); it must be \(batch, heads, length, size\)"),
        ((q, k, v[:, :, 1:].copy()), ValueError, "k and v must be of one shape"),
        ((q[:, :3].copy(), k, v), ValueError, "q has 3 heads, and k 2: the heads of q must be a multiple"),
        (([1.0], k, v), TypeError, "q is a list in host memory"),
        *(
            ((q, k, v, True, scale), ValueError, re.escape(f"scale is {scale}; it must be more than 0, and a normal"))
            for scale in (0.0, -1.0, np.nan, np.inf, 1e-40, 1e39)
        ),
        ((q, k, v, False, None, "fused"), ValueError, "q is float16; the kernel takes float32"),
        ((q, k, v, False, None, "flash"), ValueError, "there is no step 'flash'; choose one of 1 or 'naive', 2 or"),
        ((q, k, v, False, None, 3, k), ValueError, r"out has shape \(1, 2, 7, 32\); it must be \(1, 4, 5, 32\)"),
        ((q, k, v, False, None, 3, q), ValueError, "an input and out overlap"),
        ((q, k, v, False, None, 4, off), ValueError, "out starts 4 bytes past a multiple of 16"),
    ):
        with pytest.raises(error, match=message):
            forward(*arguments)
    odd = [cp.zeros((1, 1, 4, 40), np.float16)] * 3
    with pytest.raises(ValueError, match="heads have a size of 40; kernels with tensor cores are for 32, 64, 80"):
        forward(*odd)
    for size in (0, 257):
        with pytest.raises(ValueError, match=f"heads have a size of {size}; fused takes 1 to 256"):
            forward(*[cp.zeros((1, 1, 4, size), np.float32)] * 3, step=2)
    long, one = (cp.zeros((1, 1, length, 1), np.float32) for length in (16 * 65535 + 1, 1))
    with pytest.raises(ValueError, match="q has 1,048,561 queries; naive takes at most 1,048,560"):
        forward(long, one, one, step=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "causal"), [(64, False), (64, True), (128, True), (256, True)])
def test_machine_code_of_hoppers_step_is_as_it_must_be(size, causal):
    sizes = wgmma_sizes(size, causal)
    given = *hopper.include(), *sizes.options(np.uint16 if size == 128 else np.float16)
    log, *_ = nvrtc.assemble_cuda(SOURCES.text("4_wgmma.cu"), "4_wgmma.cu", "90a", given)
    assert "0 bytes spill stores" in log
    # ptxas warns (C75xx) when it must wait for each wgmma, or leaves setmaxnreg out.
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
    assert int(re.search(r"Used (\d+) registers", log).group(1)) * sizes.threads <= 65536
    assert sizes.shared_bytes <= 227 * 1024


def test_the_counters_say_what_fusion_saves():
    size = 32
    for length in (64, 128):
        naive, fused = (counted(step, length, size) for step in ("naive", "fused"))
        assert naive["launches"] == 3
        scores = 4 * length * length
        assert naive["stored"] == 2 * scores + naive["stored_once"]  # scores, weights
        assert fused["stored"] == fused["stored_once"]
        # Of each row of queries once; of keys and values once for each block of queries.
        assert fused["loaded"] == 4 * size * length * (1 + 2 * length // rows_of(size))
    half = counted("fused", 128, size, causal=True)
    # Tiles of 32 × 32: 1 + 2 + 3 + 4 of 16.
    assert half["loaded"] == 4 * size * 128 * (1 + 2 * 4 * 10 / 16)
    with pytest.raises(ValueError, match="wgmma loads by TMA"):
        counted("wgmma", 64)


@pytest.mark.parametrize("size", [64, 80, 128])
def test_fragments_of_step_3_meet_no_bank_conflicts_and_skip_hidden_tiles(size):
    counts = []
    for causal in (False, True):
        q, k, v = (cp.asarray(x.given) for x in operands(generator(), 1, 1, 1, 256, 256, size, "float16"))
        with profile() as profiled:
            forward(q, k, v, causal)
        counts.append(profiled.counts)
        assert counts[-1].shared_load_requests > 0
        assert counts[-1].shared_load_conflicts == 0
    # Of tiles of 128 queries × 64 keys, the first queries see 2 of 4, the others all.
    assert counts[1].shared_load_requests == counts[0].shared_load_requests * 6 / 8
