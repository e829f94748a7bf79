"""The mechanism of estimates: small launches by hand arithmetic, and what must make a launch longer."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.launch_works import SMS, instruction, launch_work
from warplab.estimating.launch_time import NEXT_BLOCK, SIDE_BY_SIDE, SM_KNEE, launch_time
from warplab.estimating.rates import L2_USED, rates
from warplab.estimating.work import CodeBlock, Uneven
from warplab.hardware.cards import CARDS

H100 = rates("H100")
ESTIMATED = [name for name, card in CARDS.items() if card.rates]
WARPS = SMS * 8.0  # of one block of 256 threads on every SM


def alone(work, name: str, **how) -> float:
    """Seconds that a resource alone takes."""
    return next(r.seconds for r in launch_time(work, H100, **how).resources if r.name == name)


def copy(**other):
    """A launch that loads and stores 1 GB in full sectors, from enough blocks."""
    counts = {
        "global_load_requests": 2.0**23,
        "global_load_sectors": 2.0**25,
        "global_store_requests": 2.0**23,
        "global_store_sectors": 2.0**25,
        "global_store_bytes": 2.0**30,
    }
    rows = (instruction("LDG.E", "LSU", 2.0**23, writes=0), instruction("STG.E", "LSU", 2.0**23, waits=1))
    values = {"counts": counts, "hits": {2**18: 0.0}, "loaded": 2.0**30, "stored": 2.0**30, **other}
    return launch_work(rows, blocks=2.0**14, **values)


def test_the_time_of_a_pipe_by_hand() -> None:
    """Each of 4 schedulers issues one FFMA per clock, so 1000 of each of 8 warps take 2000 clocks."""
    work = launch_work((instruction("FFMA", "FMA", WARPS * 1000),), loop=0)
    assert alone(work, "FMA pipe") == pytest.approx(2000 / 1.98e9)
    assert alone(work, "issue slots") == pytest.approx(2000 / 1.98e9)
    # Issue slots and the pipe are busy alike. A warp alone takes 1000 clocks at a stall of 1: from there to the start
    # of 132 blocks it bends, and then to the time of both.
    both = 2000 * 2 ** (1 / SM_KNEE)
    bent = (1000**H100.knee + (132 * H100.block_clocks) ** H100.knee) ** (1 / H100.knee)
    bent = (bent**SM_KNEE + both**SM_KNEE) ** (1 / SM_KNEE)
    assert launch_time(work, H100).seconds == pytest.approx(H100.launch_seconds + bent / 1.98e9, rel=1e-6)


def test_an_integer_multiplication_takes_twice_the_time_of_a_floating_one() -> None:
    ffma, imad = (launch_work((instruction(name, "FMA", WARPS),)) for name in ("FFMA", "IMAD"))
    assert alone(imad, "FMA pipe") == pytest.approx(2 * alone(ffma, "FMA pipe"))


def test_the_time_of_memory_by_hand() -> None:
    assert alone(copy(), "DRAM") == pytest.approx(2**31 / 3.04e12)
    assert alone(copy(stored=0.0), "DRAM") == pytest.approx(2**30 / 3.21e12)
    assert alone(copy(), "L2") == pytest.approx(2**30 / H100.l2_bandwidth + 2**30 / H100.l2_stores)


def test_single_sectors_take_the_l2_nearly_as_long_as_pairs() -> None:
    pairs, single = (copy(pair_bytes=n, stored=0.0, counts={"global_load_sectors": 2.0**20}) for n in (1.0, 2.0))
    assert alone(single, "L2") == pytest.approx(1.77 * alone(pairs, "L2"))


def test_what_is_read_first_is_not_there_yet() -> None:
    """Two loads in a row, of which the L1 serves half: the first waits for the memory, the second does not."""
    rows = (
        instruction("LDG.E", "LSU", WARPS, writes=0),
        dataclasses.replace(instruction("LDG.E", "LSU", WARPS, writes=0, waits=1), block=1),
        dataclasses.replace(instruction("FADD", "FMA", WARPS, waits=1), block=1),
    )
    counts = {"global_load_requests": 2 * WARPS, "global_load_sectors": 8 * WARPS}
    work = launch_work(rows, counts=counts, hits={2**18: 0.5}, again=0.5, loaded=4 * WARPS * 32)
    work = dataclasses.replace(work, code=(CodeBlock(0, 1, WARPS, -1), CodeBlock(1, 3, WARPS, -1)))
    once = launch_time(work, H100).warp_cycles
    assert once == pytest.approx(H100.memory_latency + H100.l1_latency, rel=0.1)


def test_blocks_of_the_first_wave_all_wait_for_what_they_share() -> None:
    """All blocks read the same: in one wave each waits for the memory, in many waves nearly none does."""
    rows = (instruction("LDG.E", "LSU", WARPS, writes=0), instruction("FADD", "FMA", WARPS, waits=1))
    counts = {"global_load_requests": WARPS, "global_load_sectors": 4 * WARPS}
    one = launch_work(rows, counts=counts, hits={2**18: 0.0}, loaded=1024.0)
    assert launch_time(one, H100).warp_cycles > H100.memory_latency
    many = one.times(1000, footprint=(1024.0, 0.0))
    assert launch_time(many, H100).warp_cycles < 1.3 * H100.l2_latency


def test_random_reads_of_more_than_the_l2_holds_miss_it() -> None:
    """Every sector four times, by different blocks, of 256 MiB: most of these reads go to the memory again, all but
    what half of the L2 holds of them; of 16 MiB none does."""
    counts = {"global_load_requests": 2.0**20, "global_load_sectors": 2.0**25}
    large, small = (
        copy(
            counts=counts,
            loaded=nbytes,
            pair_bytes=2.0,
            stored=0.0,
            reuse={"lines": 32.0, "passes": 4.0, "roaming": 1.0, "roamed": nbytes},
        )
        for nbytes in (2.0**28, 2.0**24)
    )
    assert alone(large, "DRAM") == pytest.approx(2 * (2**28 + 3 * 2**28 * (1 - 20 / 256)) / H100.scattered_bandwidth)
    assert alone(small, "DRAM") == pytest.approx(2 * 2**24 / H100.scattered_bandwidth)
    ordered = dataclasses.replace(large, reuse=large.reuse | {"roaming": 0.0})
    assert alone(ordered, "DRAM") == pytest.approx(2 * 2**28 / H100.scattered_bandwidth)


def test_a_table_that_the_l1_holds_is_there_from_the_second_wave_on() -> None:
    fits, larger = (
        copy(stored=0.0, reuse={"lines": 1.0, "passes": 1.0, "roaming": 0.5, "roamed": nbytes})
        for nbytes in (2.0**16, 2.0**19)
    )
    assert launch_time(fits, H100).l1_hits == pytest.approx(0.5 * (1 - SMS * 8 / 2.0**14))
    assert launch_time(larger, H100).l1_hits == 0.0


def test_no_launch_is_over_before_its_longest_thread() -> None:
    """One thread of many goes round a loop 40 times, the others ten times."""
    rows = tuple(instruction("FADD", "FMA", 10 * WARPS, stall=15) for _ in range(20))
    trips = Uneven(1.0, {10.0: 1e9, 40.0: 1.0}, 10.0, 1.0)
    alike, one = (launch_work(rows, loop=0, uneven=uneven) for uneven in (None, trips))
    alike, one = (launch_time(work, H100).seconds - H100.launch_seconds for work in (alike, one))
    assert one == pytest.approx(4 * alike, rel=0.05)


def test_stores_that_leave_sectors_unfilled_take_longer() -> None:
    counts = {"global_store_requests": 2.0**20, "global_store_sectors": 2.0**25, "global_store_bytes": 2.0**27}
    filled, left = (copy(counts=counts, stored=nbytes, loaded=0.0) for nbytes in (2.0**27, 2.0**30))
    name = "stores of parts of sectors"
    by_lines, by_sectors = 2.0**25 / H100.partial_stores, 2.0**30 / H100.l2_stores
    whole = (by_lines**SM_KNEE + by_sectors**SM_KNEE) ** (1 / SM_KNEE)
    assert alone(filled, name) == pytest.approx(whole)
    assert alone(left, name) == pytest.approx(whole / 8 + 7 / 8 * 2.0**25 / H100.scattered_stores)
    # Four sectors of a line, each half filled: the L2 takes a line at a time, and the memory reads what is missing.
    lines = {"lines": 1.0, "passes": 1.0, "store_lines": 0.25}
    assert alone(copy(counts=counts, stored=2.0**27, reuse=lines), name) == pytest.approx(by_sectors, rel=0.02)
    in_order = copy(counts=counts, stored=2.0**30, loaded=0.0, reuse=lines)
    assert alone(in_order, "DRAM") == pytest.approx(2**30 * (1 + 7 / 8) / H100.bandwidth(1 / (1 + 7 / 8)))


def test_stores_whose_sectors_the_l2_loses_before_they_are_filled_take_longer() -> None:
    """8 warps of each of the blocks that fit, with so many lines each: more or less than the L2 holds."""
    counts = {"global_store_requests": 2.0**20, "global_store_sectors": 2.0**25, "global_store_bytes": 2.0**27}
    held = L2_USED * H100.card.l2_bytes / (128 * 8 * SMS * 8)
    held, lost = (
        copy(counts=counts, stored=2.0**27, loaded=0.0, reuse={"store_span": held * n, "store_again": 1.0})
        for n in (0.99, 1.01)
    )
    name = "stores of parts of sectors"
    assert alone(held, name) < alone(copy(counts=counts, stored=2.0**27, loaded=0.0), name) * 1.0001
    assert alone(lost, name) == pytest.approx(2.0**25 / H100.scattered_stores)


def test_a_barrier_takes_its_time_while_the_sm_serves_the_block() -> None:
    """8 warps: a barrier of 14 cycles and 2 for each warp, 6 until the next instruction, and 8 multiply-adds."""
    rows = (instruction("BAR.SYNC", "other", WARPS, stall=6), *(instruction("FFMA", "FMA", WARPS) for _ in range(8)))
    assert launch_time(launch_work(rows), H100).warp_cycles == pytest.approx(14 + 16 + 6 + 8)


def walk(warps: int, **reuse: float):
    """A block of so many warps on each SM, in a loop of a load, on whose sector all wait, and eight additions."""
    often = SMS * warps
    rows = (
        instruction("LDG.E", "LSU", often * 256.0, writes=0),
        *(instruction("FADD", "FMA", often * 256.0, waits=1) for _ in range(8)),
    )
    counts = {"global_load_requests": often * 256.0, "global_load_sectors": often * 256.0}
    known = {"lines": 1.0, "passes": 1.0, "fresh": 0.0, "fresh_blocks": 0.0, **reuse}
    shares = {"hits": {2**18: 1.0}, "ready": {2**18: 0.0}, "ready_blocks": {2**18: 0.0}}
    return launch_work(rows, loop=0, threads=32 * warps, counts=counts, again=1.0, loaded=0.0, reuse=known, **shares)


def test_warps_that_wait_for_the_same_sectors_all_wait() -> None:
    """The L1 serves all sectors, but a warp has each only when another has fetched it; in step nothing hides that."""
    alike, ready = walk(32), dataclasses.replace(walk(32), ready={2**18: 1.0}, ready_blocks={2**18: 1.0})
    apart, at_once = launch_time(alike, H100), launch_time(ready, H100)
    assert apart.warp_cycles - at_once.warp_cycles == pytest.approx(256 * (H100.l2_latency - H100.l1_latency), rel=0.02)
    assert launch_time(walk(32, in_step=1.0), H100).seconds > 1.1 * apart.seconds


def test_an_array_that_all_blocks_read_whole_stays_in_the_l1() -> None:
    found = {"lines": 1.0, "passes": 1.0, "whole": 0.5, "whole_requests": 0.5, "whole_blocks": 0.5}
    once, shared = copy(stored=0.0), copy(stored=0.0, reuse=found)
    waves = 2.0**14 / (SMS * 8)  # of blocks that read 64 KiB each, of which the L1 has room for 32
    assert launch_time(once, H100).l1_hits == 0.0
    assert launch_time(shared, H100).l1_hits == pytest.approx(0.5 * 0.5 * (1 - 1 / waves))


def test_sectors_that_lie_anywhere_take_the_memory_longer() -> None:
    gathered, strided = (copy(pair_bytes=2.0, stored=0.0, reuse={"lines": n, "passes": 1.0}) for n in (32.0, 4.0))
    assert alone(gathered, "DRAM") == pytest.approx(2**31 / H100.scattered_bandwidth)
    assert alone(strided, "DRAM") == pytest.approx(2**31 / H100.read_bandwidth)
    side_by_side = dataclasses.replace(gathered, reuse=gathered.reuse | {"page_sectors": 32.0})
    assert alone(gathered, "DRAM") / alone(side_by_side, "DRAM") == pytest.approx(SIDE_BY_SIDE)


def test_a_block_waits_for_memory_if_one_of_its_warps_does() -> None:
    """Of what blocks read a thirtieth has not been read before; between barriers eight warps wait for any of theirs."""
    rows = (instruction("LDG.E", "LSU", 2**20 * 1.0, writes=0), instruction("BAR.SYNC", "CBU", 2.0**20, waits=1))
    counts = {"global_load_requests": 2.0**20, "global_load_sectors": 2.0**22}
    known = {"blocks": 2.0**17, "counts": counts, "hits": {2**18: 0.0}, "stored": 0.0}

    def cycles(loaded: float, names: int) -> float:
        return launch_time(launch_work(rows[:names], loaded=loaded, **known), H100).warp_cycles

    assert cycles(2.0**27 / 8, 2) - cycles(0.0, 2) == pytest.approx(H100.memory_latency - H100.l2_latency)
    assert cycles(2.0**27 / 8, 1) == cycles(0.0, 1)


def test_the_next_block_begins_after_a_while() -> None:
    """One block of 1,024 threads to an SM, whose warps wait for a barrier: nothing hides the time until the next."""
    rows = (
        *(instruction("FADD", "FMA", 32 * 1320.0, stall=15) for _ in range(200)),
        instruction("BAR.SYNC", "CBU", 42240.0),
    )
    work = launch_work(rows, blocks=1320.0, threads=1024, shared_bytes=200 * 1024)
    ten, one = (launch_time(w, H100).seconds - H100.launch_seconds for w in (work, work.times(0.1)))
    assert ten - 10 * one == pytest.approx(9 * NEXT_BLOCK / H100.clock_hz, rel=0.15)  # bends take the rest


@pytest.mark.parametrize(("lines", "clocks"), [(1.0, 62), (32.0, 69)])
def test_loads_that_hit_the_l1_wait_for_conflicts_of_banks(lines: float, clocks: float) -> None:
    """Words of 32 lines, all in one bank, took 69 clocks more on both cards (sweeps: conflicts)."""
    rows = (instruction("LDG.E", "LSU", 8.0, writes=0), instruction("FADD", "FMA", 8.0, waits=1))
    counts = {"global_load_requests": 8.0, "global_load_sectors": 256.0}
    known = {"blocks": 1.0, "counts": counts, "hits": {2**11: 1.0}, "again": 1.0, "loaded": 0.0}
    free, conflicts = (
        launch_time(launch_work(rows, reuse={"lines": m, "passes": n}, ready={2**11: 1.0}, **known), H100).warp_cycles
        for m, n in ((1.0, 1.0), (lines, 32.0))
    )
    assert conflicts - free == pytest.approx(clocks)


def test_loads_and_parts_of_sectors_share_the_l2() -> None:
    counts = {"global_store_requests": 2.0**20, "global_store_sectors": 2.0**25, "global_store_bytes": 2.0**27}
    loads = {"global_load_requests": 2.0**20, "global_load_sectors": 2.0**25}
    name, known = (
        "stores of parts of sectors",
        {"stored": 2.0**27, "loaded": 0.0, "reuse": {"store_lines": 1.0, "passes": 1.0, "lines": 1.0}},
    )
    both, stores = (alone(copy(counts=n, **known), name) for n in (counts | loads, counts))
    assert both - stores == pytest.approx(2.0**30 / H100.l2_bandwidth)


def test_rows_that_the_l2_loses_are_read_again() -> None:
    """Blocks read 1 MiB each of their own three times; 132 x 8 of them together are more than the L2 holds."""
    held = {2**k: 0.0 for k in range(11, 19)}
    thrice = copy(counts={"global_load_sectors": 3 * 2.0**25}, stored=0.0, again=2 / 3, hits=held)
    assert alone(thrice, "DRAM") == pytest.approx(3 * 2**30 / H100.read_bandwidth)
    shared = dataclasses.replace(thrice, loaded=2.0**27)  # all blocks read the same
    assert alone(shared, "DRAM") == pytest.approx(2**27 / H100.read_bandwidth)
    # 40 of the L2's 50 MiB are 38.8 KiB for each block: rows of 36 KiB fit, but not beside as many bytes stored.
    small = dataclasses.replace(thrice, hits={2**15: 0.0, 36 * 2**10: 2 / 3})
    assert alone(small, "DRAM") == pytest.approx(2**30 / H100.read_bandwidth)
    writing = dataclasses.replace(small, counts=small.counts | {"global_store_sectors": 3 * 2.0**25})
    assert alone(writing, "DRAM") > 1.5 * alone(small, "DRAM")


def test_sectors_of_which_only_every_second_is_read_move_twice_the_bytes() -> None:
    assert alone(copy(pair_bytes=2.0, stored=0.0), "DRAM") == pytest.approx(2**31 / 3.21e12)


def test_a_warm_launch_leaves_the_dram_alone_if_its_data_fit_into_the_l2() -> None:
    small = copy(loaded=2.0**20, stored=2.0**20)
    assert "DRAM" not in {r.name for r in launch_time(small, H100, warm=True).resources}
    assert launch_time(small, H100, warm=True).seconds <= launch_time(small, H100).seconds
    assert launch_time(copy(), H100, warm=True).seconds == launch_time(copy(), H100).seconds  # 2 GB do not


def atomics(opcode: str = "RED.E.ADD", **reuse: float) -> float:
    """Clocks of each of a million requests of atomics of which that is known."""
    known = {"atomics": 32.0, "atomic_requests": 1.0, "hottest_word": 0.0, "atomic_lines": 1.0, "even_lines": 1.0}
    known = known | {"atomic_turns": 1.0} | reuse
    counts = {"global_atomic_requests": 1e6, "global_atomic_sectors": 1e6}
    work = launch_work((instruction(opcode, "LSU", 1e6),), counts=counts, reuse=known)
    return alone(work, "atomics") * 1.98e9 / 1e6


def test_atomics_by_hand() -> None:
    """As swept: a slice takes 1.45 clocks for a sector of a request, and as often as lanes meet at a word of it."""
    assert atomics(atomic_passes=32.0, hottest_word=1.0) == pytest.approx(32 * 1.451)
    assert atomics(atomic_passes=8.0) == pytest.approx(8 * 1.451)
    assert atomics(atomic_passes=4.0, atomic_lines=64.0, even_lines=64.0) == pytest.approx(4 * 1.451 / 13.3)
    # Of 64 lines some are used far more than others: as crowded as four.
    assert atomics(atomic_passes=4.0, atomic_lines=64.0, even_lines=4.0) == pytest.approx(4 * 1.451 / 2.1)


def test_atomics_on_more_than_the_l2_holds_wait_for_the_memory() -> None:
    apart = {"atomic_passes": 32.0, "sectors": 32.0, "atomic_lines": 8192.0, "even_lines": 8192.0}
    in_memory = atomics(**apart, atomic_bytes=2.0**30)
    assert in_memory == pytest.approx(32 * 1.98e9 / H100.scattered_stores, rel=0.05)
    assert atomics(**apart, atomic_bytes=2.0**20) == atomics(**apart) < in_memory / 4


def test_words_of_blocks_of_their_own_are_not_common() -> None:
    """16 watched blocks add to a word of their own each: no word is hot, and all slices work."""
    known = {"atomics": 16.0, "atomic_requests": 16.0, "atomic_passes": 1.0, "hottest_word": 1 / 16}
    assert atomics(**known, atomic_bytes=2.0**22) == pytest.approx(1.451 / 62)
    shared = known | {"atomics": 160.0, "atomic_requests": 160.0}  # ten times each
    assert atomics(**shared, atomic_bytes=2.0**22) == pytest.approx(1.451 / 16)


def test_what_all_blocks_read_whole_is_no_more_than_is_left_beside_their_own() -> None:
    """Of 51,200 bytes each of 64 blocks reads 1 KB alone and, in the passes that were simulated, as many of what all
    share that it seems 4 KB. The launch loads only 512 bytes beside the blocks' own."""
    counts = {"global_load_sectors": 64 * 1600.0}
    known = {"counts": counts, "hits": {2**18: 0.9}, "again": 0.9, "reuse": {"whole": 0.08}}
    work = launch_work((), blocks=64.0, loaded=64 * 1024.0 + 512, **known)
    alike = dataclasses.replace(work, hits={2**18: 0.97}, again=0.97, reuse={"whole": 0.01})
    assert launch_time(work, H100).l1_hits == pytest.approx(launch_time(alike, H100).l1_hits)
    assert launch_time(dataclasses.replace(work, loaded=2.0**30), H100).l1_hits < launch_time(work, H100).l1_hits


def test_bins_that_all_blocks_share_do_not_grow_with_the_blocks() -> None:
    counts = {"global_atomic_requests": 1e6}
    bins, table = (
        launch_work(
            (instruction("RED", "LSU", 1e6),), counts=counts, reuse={"atomic_lines": 8.0, "atomic_bytes": nbytes}
        )
        for nbytes in (1024.0, 2.0**20)
    )
    assert bins.times(256).reuse["atomic_bytes"] == 1024.0
    assert table.times(256).reuse["atomic_bytes"] == 2.0**28
    assert table.times(256, footprint=(0.0, 2.0**22)).reuse["atomic_bytes"] == 2.0**22  # all that the launch writes


def test_floats_that_meet_at_a_word_wait_longer() -> None:
    floats = "RED.E.ADD.F32.FTZ.RN.STRONG.GPU"
    assert atomics(floats, atomic_passes=32.0, atomic_turns=32.0) == pytest.approx(32 * 3.481)
    # Lanes that meet in other sectors need not wait for them (sweeps.json: global_atomics, sharing 2).
    assert atomics(floats, atomic_passes=4.0, atomic_turns=2.0) == pytest.approx(2 * 3.481)
    apart = {"atomic_passes": 4.0, "atomic_lines": 8192.0, "even_lines": 8192.0}
    assert atomics(floats, **apart) == atomics(**apart)


def test_shared_atomics_that_try_again_take_longer() -> None:
    counts = {"shared_atomic_wavefronts": 1e6}
    native, floats = (
        launch_work((instruction(name, "LSU", 1e5),), counts=counts) for name in ("ATOMS.ADD", "ATOMS.CAST.SPIN")
    )
    assert alone(floats, "shared memory") == pytest.approx(3 * alone(native, "shared memory"))


def test_blocks_that_do_not_fit_at_once_come_in_waves() -> None:
    """With 112 KiB of shared memory two blocks fit on an SM, so 5 blocks for each take as long as 2 + 2 + 1."""
    row = instruction("FFMA", "FMA", 1000.0 * WARPS)
    one = launch_work((row,), shared_bytes=112 * 1024, loop=0)

    def body(blocks: int) -> float:
        return launch_time(one.times(blocks), H100).seconds - H100.launch_seconds

    assert launch_time(one, H100).blocks_per_sm == 2
    alike = 2 * body(2) + body(1)
    assert alike < body(5) < alike + 2 * NEXT_BLOCK / H100.clock_hz


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"shared_load_wavefronts": 2.0**28}, {"shared_load_wavefronts": 2.0**30}),
        ({"global_load_sectors": 2.0**25}, {"global_load_sectors": 2.0**28}),
        ({"global_store_sectors": 2.0**27, "global_store_bytes": 2.0**32}, {"global_store_bytes": 2.0**29}),
        ({"global_atomic_sectors": 0.0}, {"global_atomic_requests": 2.0**24, "global_atomic_sectors": 2.0**24}),
    ],
    ids=["bank conflicts", "sectors per request", "sectors stored in part", "atomics"],
)
def test_more_of_it_takes_longer(change: dict, more: dict) -> None:
    before = copy()
    first, second = (
        dataclasses.replace(before, counts=before.counts | extra, hottest=1.0) for extra in (change, change | more)
    )
    assert launch_time(second, H100).seconds > 1.05 * launch_time(first, H100).seconds


def test_a_load_has_the_l1_for_its_passes_and_for_a_clock_for_four_lines() -> None:
    """32 lines at one place in each are 32 clocks, at different banks 8; copies to shared memory count elsewhere."""
    known = ({"lines": 32.0, "passes": 32.0}, {"lines": 32.0, "passes": 1.0}, {"lines": 2.0, "passes": 1.0})
    column, scattered, row = (copy(reuse=one) for one in known)
    stores = 2.0**23
    per_second = SMS * 1.98e9
    assert alone(column, "L1 data path") == pytest.approx((32 * 2.0**23 + stores) / per_second)
    assert alone(scattered, "L1 data path") == pytest.approx((8 * 2.0**23 + stores) / per_second)
    assert alone(row, "L1 data path") == pytest.approx((2.0**23 + stores) / per_second)
    wide = instruction("LDG.E.128", "LSU", 2.0**23, writes=0)
    assert alone(dataclasses.replace(row, rows=(wide,)), "L1 data path") == pytest.approx(
        (4 * 2.0**23 + stores) / per_second
    )
    copies = dataclasses.replace(scattered, counts=scattered.counts | {"shared_copy_requests": 2.0**23})
    assert alone(copies, "L1 data path") == pytest.approx(stores / per_second)


def test_a_cache_that_serves_reads_saves_time() -> None:
    served = copy(hits={2**11: 0.9, 2**18: 0.9}, loaded=2.0**26, stored=2.0**26)
    assert launch_time(served, H100).seconds < 0.6 * launch_time(copy(), H100).seconds


def test_fewer_warps_hide_less_latency() -> None:
    """The same work in blocks that need so many registers that one fits takes longer than with eight."""
    crowded, lonely = (launch_time(copy(registers=n), H100) for n in (32, 255))
    assert (crowded.blocks_per_sm, lonely.blocks_per_sm) == (8, 1)
    assert lonely.seconds > 1.5 * crowded.seconds


def test_a_busy_resource_hides_that_warps_differ_in_length() -> None:
    """While the longest of a launch go on, the others keep the memory busy; without it, all wait for the longest."""
    long = 2.0**15
    uneven = Uneven(share=1.0, trips={1.0: 2.0**22 - long, 255.0: long}, mean=20.0, entries=1.0)

    def costs(**how) -> float:
        return launch_time(copy(uneven=uneven), H100, **how).seconds / launch_time(copy(), H100, **how).seconds

    assert 1 < costs() < costs(without=frozenset(["DRAM"]))


@pytest.mark.parametrize("card", ESTIMATED)
def test_no_resource_costs_less_than_nothing(card: str) -> None:
    known, work = rates(card), copy()
    whole = launch_time(work, known)
    for resource in whole.resources:
        assert launch_time(work, known, without=frozenset([resource.name])).seconds <= whole.seconds
    assert whole.seconds > max(r.seconds for r in whole.resources if r.name in ("DRAM", "L2", "launch"))


@pytest.mark.parametrize("card", ESTIMATED)
def test_rates_of_every_card_have_sources(card: str) -> None:
    known = rates(card)
    assert known.copy_bandwidth < known.read_bandwidth < known.card.bandwidth_gbs * 1e9
    assert known.l1_latency < known.l2_latency < known.memory_latency
    assert set(known.sources) == {one.name for one in dataclasses.fields(known)} - {"card", "sources"}
    own = {"clock_hz", *known.card.rates}
    assert own == {name for name, source in known.sources.items() if not source.startswith("no measurement known")}


def test_longer_loops_leave_what_stands_outside_them() -> None:
    """A loop of loads and one store behind it: twice the passes are twice the loads, and as many stores."""
    rows = (instruction("LDG.E", "LSU", 10 * WARPS), dataclasses.replace(instruction("STG.E", "LSU", WARPS), block=1))
    counts = {"global_load_sectors": 40.0, "global_store_sectors": 4.0, "warp_instructions": 11.0}
    one = launch_work(rows, counts=counts, loaded=1.0, stored=1.0)
    code = (CodeBlock(0, 1, 10 * WARPS, 0), CodeBlock(1, 2, WARPS, -1))
    longer = dataclasses.replace(one, code=code).times(blocks=3, each=2)
    assert longer.counts == {"global_load_sectors": 240.0, "global_store_sectors": 12.0, "warp_instructions": 63.0}
    assert [row.warps for row in longer.rows] == [60 * WARPS, 3 * WARPS]
    assert (longer.blocks, longer.loaded) == (3 * SMS, 6.0)
