"""The rates of estimates are those that the recorded sweeps show."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from warplab.estimating import atomics, launch_time, rates, warp_latency

COURSE = Path(__file__).parents[3]

SWEEPS = json.loads((COURSE / "warplab" / "estimating" / "sweeps.json").read_text())
H100 = rates.rates("H100")
SWEPT = {"H100": "sweeps.json", "H200": "sweeps_h200.json"}
LAUNCH = 3.8e-6  # of a kernel that does nothing, and the kernel's own latency


def rows(key: str, **named: Any) -> list[dict]:
    return [row for row in SWEEPS[key]["rows"] if all(row.get(k) == v for k, v in named.items())]


def clocks(row: dict, each: str) -> float:
    return (row["seconds"] - LAUNCH) * H100.clock_hz / row[each]


@pytest.mark.parametrize(
    ("instruction", "known"),
    [
        ("red_add_u32", H100.atomic_clocks),
        ("atom_cas_u32", H100.atomic_clocks),
        ("red_add_f32", H100.atomic_float_clocks),
        ("red_add_f64", H100.atomic_float_clocks),
    ],
)
def test_atomics_on_one_word(instruction: str, known: float) -> None:
    (row,) = rows("global_atomics", instruction=instruction, lanes=1, words=1, blocks=528)
    assert known == pytest.approx(clocks(row, "requests"), rel=0.05)


@pytest.mark.parametrize(("lines", "sectors"), [(8, 22.2), (16, 26.3), (64, 30.4)])
def test_slices_of_the_l2(lines: int, sectors: float) -> None:
    """32 lanes at random words of some lines take so many passes through sectors, on average."""
    found = statistics.fmean(clocks(row, "requests") for row in rows("atomic_places", words=32 * lines))
    assert sectors * 1.451 / atomics.slices(lines) == pytest.approx(found, rel=0.05)


def test_passes_of_the_l1() -> None:
    """32 lanes in as many lines: one clock each at the same place in the line, one for four at different banks."""
    for skew, expected in ((0, 32), (1, 8)):
        (row,) = rows("l1_hits", bytes=4, lines=32, skew=skew, warps=64)
        assert clocks(row, "requests") == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("warps", [1, 4, 8, 32])
def test_barriers(warps: int) -> None:
    (row,) = rows("barriers", step=0, warps=warps, blocks=1)
    known = warp_latency.BARRIER + warp_latency.BARRIER_WARP * warps
    assert known == pytest.approx(row["cycles"], rel=0.05)


def of_h200(key: str) -> list[dict[str, Any]]:
    return json.loads((COURSE / "warplab" / "estimating" / SWEPT["H200"]).read_text())[key]["rows"]


@pytest.mark.parametrize(("step", "name"), [("shfl", "SHFL"), ("ex2", "MUFU"), ("popc", "POPC"), ("dfma", "DFMA")])
def test_latencies(step: str, name: str) -> None:
    (row,) = rows("chains", step=step)
    assert rates.SLOW[name] == pytest.approx(row["latency"], rel=0.03)


def test_starts_of_blocks() -> None:
    (row,) = rows("starts", warps=8, shared_bytes=0)
    assert H100.block_clocks == pytest.approx(clocks(row, "blocks"), rel=0.02)


def test_a_block_follows_another_after_as_long_whatever_its_warps() -> None:
    gaps = [row["gap"] for row in of_h200("gaps") if row["resident"] * row["warps"] <= 16]  # that leave slots idle
    assert pytest.approx(statistics.median(gaps), rel=0.03) == launch_time.NEXT_BLOCK
    assert launch_time.NEXT_BLOCK == pytest.approx(max(gaps), rel=0.1) == pytest.approx(min(gaps), rel=0.1)


@pytest.mark.parametrize("stride", [2, 4, 8, 16, 32])
def test_a_load_waits_two_clocks_for_each_conflict_of_banks(stride: int) -> None:
    """For one it has the L1."""
    free, found = (row["latency"] for row in of_h200("conflicts") if row["warps"] == 1 and row["stride"] in (1, stride))
    assert found - free == pytest.approx(2 * (stride - 1), rel=0.12)


def test_loads_and_stores_that_lie_anywhere() -> None:
    (pieces,) = rows("scattered", access="l2_loads", place="memory", bytes=4, lines=32)
    assert H100.scattered_bandwidth == pytest.approx(
        32 * 64 * pieces["requests"] / (pieces["seconds"] - LAUNCH), rel=0.05
    )
    (stores,) = rows("scattered", access="l2_stores", place="memory", bytes=4, lines=32)
    assert H100.scattered_stores == pytest.approx(32 * stores["requests"] / (stores["seconds"] - LAUNCH), rel=0.05)


def test_floats_in_shared_memory_try_again() -> None:
    (row,) = rows("shared_atomics", instruction="add_f32", sharing=32, blocks=8)
    assert atomics.TURNS["CAST"] == pytest.approx(clocks(row, "requests") / 32, rel=0.05)


@pytest.mark.parametrize("card", ["H100", "H200"])
def test_stores_and_streams(card: str) -> None:
    sweeps = json.loads((COURSE / "warplab" / "estimating" / SWEPT[card]).read_text())
    known = rates.rates(card)

    def per_second(key: str, amount: str, **named: Any) -> float:
        (row,) = (r for r in sweeps[key]["rows"] if all(r[k] == v for k, v in named.items()))
        return row[amount] / (row["seconds"] - LAUNCH)

    lines = per_second("in_order", "requests", access="stores", place="L2", bytes=4, run=1, apart=128)
    assert known.partial_stores == pytest.approx(32 * lines, rel=0.05)
    if "streams" in sweeps:
        for reads, writes in ((1, 0), (3, 1), (2, 1), (1, 1), (1, 2), (0, 1)):
            found = per_second("streams", "nbytes", bytes=16, reads=reads, writes=writes)
            assert known.bandwidth(writes / (reads + writes)) == pytest.approx(found, rel=0.04)


def test_warps_in_step_wait_as_one_alone() -> None:
    """Eight warps that walk through one list take as long as one, and no longer than through lists of their own."""
    for ahead in (1, 4, 8):
        one, eight, own = (rows("walks", ahead=ahead, warps=n, own=k)[0]["cycles"] for n, k in ((1, 0), (8, 0), (8, 1)))
        assert one <= own <= eight <= 1.1 * one


def test_sweeps_name_their_gpu() -> None:
    sources = " ".join(H100.sources.values())
    for entry in SWEEPS.values():
        place = f"sweeps.json, recorded on an {entry['machine']['device']}, {entry['machine']['date']}"
        assert f"warplab/estimating/{place}" in sources
