"""What blocks read again: shares that a cache of known behaviour must have, and small launches."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import CudaSource, simulate
from warplab.simulator.count.reuse import CAPACITIES, MOST_BLOCKS, Watched, hit_shares
from warplab.simulator.run import device

SECTOR = 32


def lru(stream: np.ndarray, lines: int) -> float:
    """Hits of a cache of lines of four sectors, fetched one by one, that gives up the line read least recently."""
    held: dict[int, set[int]] = {}
    hits = 0
    for sector in stream.tolist():
        sectors = held.pop(sector // 4, set())
        hits += sector in sectors
        held[sector // 4] = sectors | {sector}
        if len(held) > lines:
            del held[next(iter(held))]
    return hits / stream.size


def test_a_cyclic_stream_hits_only_a_cache_that_holds_it_all() -> None:
    shares = hit_shares(np.tile(np.arange(1000), 5))
    assert {size: share for size, share in shares.items() if size < 1000 * SECTOR} == dict.fromkeys(
        (size for size in CAPACITIES if size < 1000 * SECTOR), 0.0
    )
    assert shares[2**15] == 0.8


def test_neighbouring_reads_hit_any_cache() -> None:
    assert set(hit_shares(np.repeat(np.arange(1000), 4)).values()) == {0.75}


@pytest.mark.parametrize("spread", [200, 1000, 5000])
@pytest.mark.parametrize("step", [1, 4], ids=["whole lines", "a sector of each line"])
def test_random_streams_hit_as_a_simulated_cache_does(spread: int, step: int) -> None:
    """Reads of one or of all four sectors of random lines, one after the other."""
    lines = np.random.default_rng(spread).integers(0, spread, 5000)
    stream = (4 * lines[:, None] + np.arange(0, 4, step)).ravel()
    for size, share in hit_shares(stream).items():
        assert share == pytest.approx(lru(stream, size // (4 * SECTOR)), abs=0.03)


def launch(body: str, *, blocks: int = 4):
    source = f'extern "C" __global__ void k(float *a, float *out) {{ int i = blockIdx.x * 256 + threadIdx.x; {body} }}'
    return simulate(CudaSource(source, "k"), blocks, 256, (np.zeros(16384, np.float32), np.zeros(4096, np.float32)))


def test_a_copy_reads_nothing_again() -> None:
    reuse = launch("out[i] = a[i];").reuse
    assert (reuse.again, reuse.pair_bytes, set(reuse.hits.values())) == (0.0, 1.0, {0.0})


@pytest.mark.parametrize(
    ("body", "share"),
    [
        ("out[i] = a[i];", 0.0),
        ("out[i] = a[i * 7919 % 16384];", 1.0),  # all over the array
    ],
)
def test_which_reads_lie_all_over_an_array(body: str, share: float) -> None:
    reuse = launch(body, blocks=16).reuse
    assert (reuse.roaming, reuse.roamed) == (share, share * 4 * 16384)


def test_blocks_that_jump_up_and_down_in_an_array_read_all_over_it() -> None:
    """Each reads 16 sectors in a row, of one row after the other or of any."""
    rows = np.random.default_rng(1).permutation(64)[:16]
    watched = Watched([], [], arrays=[(0, 1024 * SECTOR)])
    for order, found in ((rows, (256, 1024)), (np.sort(rows), (0, 0))):
        assert watched._roamed([16 * row + np.arange(16) for row in order]) == found


def test_a_block_that_reads_twice_hits_its_cache_half_the_time() -> None:
    reuse = launch("out[i] = a[i]; __syncthreads(); out[i] += ((volatile float *)a)[i];").reuse
    assert reuse.hits[2**18] == pytest.approx(0.5, abs=0.2)
    assert reuse.again == pytest.approx(0.5, abs=0.2)


def test_warps_in_step_all_wait_for_what_one_of_them_asks_for_first() -> None:
    """A list that all eight warps of four blocks walk through: eight words are a sector, two sectors a pair."""
    walk = launch("float s = 0; for (int k = 0; k < 1024; k++) s += ((volatile float *)a)[k]; out[i] = s;").reuse
    assert walk.again == pytest.approx(1 - 1 / 64)
    assert set(walk.ready.values()) == set(walk.ready_blocks.values()) == {7 / 8}
    assert (walk.fresh, walk.fresh_blocks, walk.page_sectors) == (1 / 16, 1 / 16, 128.0)
    assert walk.in_step == 7 / 8  # all warps but the first ask for what it has just asked for
    assert walk.whole == 0.0  # of 16,384 words


def test_a_block_waits_where_one_of_its_warps_does() -> None:
    """The first warp reads words of new sectors, the others the same word again and again."""
    at = "threadIdx.x < 32 ? 8 * k : 8192"
    one = launch(f"float s = 0; for (int k = 0; k < 1024; k++) s += ((volatile float *)a)[{at}]; out[i] = s;").reuse
    assert one.ready[2**11] == pytest.approx(7 / 8, abs=0.001)
    assert one.ready_blocks[2**11] == 0.0
    assert one.fresh_blocks == pytest.approx(1 / 2, abs=0.001)


def test_an_array_that_a_block_reads_whole_is_all_blocks() -> None:
    body = "float s = a[i]; for (int k = 0; k < 4096; k += 32) s += out[k + threadIdx.x % 32]; a[i] = s;"
    walk = launch(body).reuse
    assert walk.whole == pytest.approx(512 / (8 * 4 * (1 + 128)))
    assert walk.whole_requests == walk.whole_blocks == pytest.approx(128 / 129)
    assert walk.in_step == pytest.approx(1 - (8 + 128) / (8 * 129))


def test_every_second_sector_is_half_of_its_pairs() -> None:
    assert launch("out[i] = a[16 * (i % 1024)];").reuse.pair_bytes == 2.0


def test_atomics_on_one_word_and_on_many() -> None:
    one = launch("atomicAdd(out, 1.0f);").reuse
    assert (one.hottest, one.atomic_addresses) == (1.0, 1)
    many = launch("atomicAdd(out + threadIdx.x, 1.0f);").reuse
    assert (many.hottest, many.atomic_addresses) == (1 / 8, 256)  # 256 words lie in 8 lines


def test_few_blocks_are_watched() -> None:
    assert 1 <= launch("out[i % 4096] = a[i % 4096];", blocks=64).reuse.blocks <= MOST_BLOCKS


def test_larger_chunks_behind_those_that_are_watched_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" __global__ void k(const float *a, float *out, int *sum) {
        __shared__ float s[32];
        int i = blockIdx.x * 32 + threadIdx.x;
        s[threadIdx.x] = a[i * 3 % 4096] + a[blockIdx.x];
        __syncthreads();
        for (int k = i % 3; k; k--) atomicAdd(sum, k);
        if (i % 7) out[i] = s[31 - threadIdx.x] + a[i];
        atomicAdd(sum + i % 5, i);
    }"""

    def outcome(later: int) -> tuple:
        monkeypatch.setattr(device, "LATER", later)
        data = np.random.default_rng(3).random(4096, np.float32), np.zeros(4096, np.float32), np.zeros(5, np.int32)
        chunks.clear()
        profile = simulate(CudaSource(source, "k"), 125, 32, data, chunk_lanes=64)
        flow = {name: of for name, of in vars(profile.flow).items() if name != "translation"}
        return *(array.tobytes() for array in data), profile.lines, profile.reuse, flow

    chunks: list[int] = []
    run = device.Scheduler.run
    monkeypatch.setattr(device.Scheduler, "run", lambda self: [chunks.append(self.chunk.blocks), run(self)][1])
    want = outcome(1)
    assert chunks == [2] * 62 + [1]
    assert outcome(4) == want
    assert chunks == [2] * MOST_BLOCKS + [8] * 11 + [5]


def test_lines_and_passes_of_loads() -> None:
    row = launch("out[i] = a[threadIdx.x];").reuse
    assert (row.lines, row.passes) == (1.0, 1.0)
    # Each lane a line of its own, at the same place in it: one bank serves them all, one after the other.
    column = launch("out[i] = a[threadIdx.x * 32];").reuse
    assert (column.lines, column.passes) == (32.0, 32.0)
    skewed = launch("out[i] = a[threadIdx.x * 33];").reuse
    assert (skewed.lines, skewed.passes) == (32.0, 1.0)
    wide = launch("float4 v = ((float4 *)a)[threadIdx.x]; out[i] = v.x + v.w;").reuse
    assert (wide.lines, wide.passes) == (4.0, 4.0)


def test_what_a_request_of_atomics_shares() -> None:
    # Floats: each lane takes its turn. Integers to one address: the assembler lets one lane add their sum.
    assert launch("atomicAdd(out, 1.0f);").reuse.atomics == 4 * launch("atomicAdd((int *)out, 1);").reuse.atomics * 8
    pairs = launch("atomicAdd(out + threadIdx.x / 2, 1.0f);").reuse
    assert (pairs.atomic_turns, pairs.atomic_passes, pairs.sectors, pairs.hottest_word) == (2.0, 4.0, 2.0, 1 / 128)
    assert pairs.atomic_lines == pairs.even_lines == 4
    # Three of four lanes meet at one word: 24 passes in its sector, and one in each of the next two.
    uneven = launch("atomicAdd(out + (i % 4 ? 0 : i % 32 / 2), 1.0f);").reuse
    assert (uneven.atomic_turns, uneven.atomic_passes, uneven.sectors) == (25.0, 26.0, 2.0)


def test_lines_that_few_atomics_use_count_less() -> None:
    """One warp of eight adds to eight lines, four lanes to each, the others to the first of them."""
    crowded = launch("atomicAdd(out + (i / 32 == 3 ? 32 * (i % 8) : 0), 1.0f);").reuse
    assert crowded.atomic_lines == 8
    assert crowded.even_lines == pytest.approx(256 * 255 / (228 * 227 + 7 * 4 * 3))
