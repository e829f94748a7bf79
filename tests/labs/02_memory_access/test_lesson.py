"""The numbers that lab 02's text quotes are those recorded, and what it says of estimates is so."""

import json
import statistics

import nbformat
import numpy as np
import pytest

from kernels.memory_access import recordings, tables
from tests.support.lesson_answers import load
from warpcourse.bench.lab import find
from warpcourse.paths import COURSE
from warplab import simulate
from warplab.estimating.estimate import estimate
from warplab.launch.kernel_source import CudaSource

ANSWERS = load(find("memory_access"))
LESSON = COURSE / "notebooks" / "02_memory_access.ipynb"
VALUES = recordings.values()
LABEL = f"in the recording ({recordings.recorded('transpose_table').origin})"
LATER = f"in the recording ({recordings.recorded('scan_table').origin})"


def by(rows, **where):
    """The one row that has these values."""
    (row,) = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return row


def gbps(table, kernel):
    return by(VALUES[table]["kernels"], kernel=kernel)["gbps"]


def strides():
    rate = {row["stride"]: row["gbps"] for row in VALUES["strides"]["rows"]}
    assert 0.48 < rate[16] / rate[8] < 0.55  # "down to half"
    moved = {2: rate[2] * 12 / 8, 8: rate[8] * (32 + 4) / 8, 16: rate[16] * (64 + 4) / 8}
    return (
        f"{rate[2]:.0f} GB/s {LABEL} are {rate[2]:.0f} · 12/8 = {moved[2]:.0f} GB/s moved",
        f"stride 8, {rate[8]:.0f} · (32 + 4)/8 = {round(moved[8], -1):.0f}",
        f"counting 64 bytes, {rate[16]:.0f} · (64 + 4)/8 = {round(moved[16], -1):.0f}.",
        f"stride 1 moves only {rate[1]:.0f} GB/s",
        f"`cudaMemcpyAsync`, at {gbps('transpose_table', 'copy'):.0f}",
    )


def offsets():
    lost = {row["offset"]: 1 - row["gbps"] / VALUES["offsets"]["rows"][0]["gbps"] for row in VALUES["offsets"]["rows"]}
    assert all(f"{share:.0%}" == "3%" for offset, share in lost.items() if offset % 32)
    return "in the recording the rate falls by 3 %", f"even 32 loses {100 * lost[32]:.1f} %"


def transposes():
    of_copy = {row["kernel"]: row["ratio_to_copy"] for row in VALUES["transpose_table"]["kernels"]}
    assert round(1 / of_copy["cuda_naive"]) == 7
    assert round(of_copy["cuda_tile"] / of_copy["cuda_naive"]) == 4
    odd = {(row["rows"], row["kernel"]): row["ratio_to_copy"] for row in VALUES["transpose_shapes"]}
    origin = recordings.recorded("transpose_shapes").origin
    assert recordings.recorded("transpose_drawn").origin == origin
    drawn = tables.chosen(VALUES["transpose_drawn"])
    least = min(drawn, key=lambda row: row["ratio_to_copy"])
    return (
        f"without the conflicts it is at {of_copy['cuda_padded']:.2f}",
        f"`float4` reaches {odd[16380, 'cuda_float4']:.2f} of a copy in the recording ({origin})",
        f"With 16381 × 20011 `large` reaches {odd[16381, 'cuda_large']:.2f}",
        f"begin where sectors of `out` do, reaches {odd[16381, 'cuda_sectors']:.2f}",
        f"The least of {len(drawn)} drawn shapes is {least['ratio_to_copy']:.2f}, "
        f"for {least['rows']} × {least['columns']}, where",
        f"and {min(each['transpose_least'] for each in VALUES['processes']):.2f} in another process.",
    )


def sums():
    best, atomic = gbps("sum_table", "cuda_float4"), by(VALUES["sum_table"]["kernels"], kernel="cuda_atomic")
    gained = gbps("sum_table", "numba_sequential") / gbps("sum_table", "numba_interleaved")
    return (
        f"I{LABEL[1:]} `atomic` is the step back",
        f"{1e3 * atomic['seconds']:.0f} ms in all",
        f"{gbps('sum_table', 'cuda_grid_stride'):.0f} GB/s, in Numba {gbps('sum_table', 'numba_grid_stride'):.0f}",
        f"and {gained:.1f} times as fast in Numba",
        f"{best / gbps('sum_table', 'CUB (cuda.compute)'):.2f} times CUB",
        f"{best / gbps('sum_table', 'cupy.sum'):.2f} times `cupy.sum`",
    )


def stencils():
    shares = [row["l1_of_shared"] for row in VALUES["stencils"]["rows"]]
    assert shares[1:] == sorted(shares[1:], reverse=True)
    last = VALUES["stencils"]["rows"][-1]
    free = by(VALUES["bank_conflicts"]["rows"], stride=1)["gbps"]
    return (
        f"down to {shares[-1]:.2f} at r = {last['radius']} in the recording",
        f"{last['shared']['loaded_gbps'] / 1e3:.0f} TB/s from shared memory in the recording",
        f"which do nothing else, reached {free / 1e3:.0f}.",
    )


def in_flight():
    rows = [row for row in VALUES["bytes_in_flight"]["rows"] if row["in_flight_bytes"] == 4096]
    many, few = (by(rows, load_bytes=4, warps=warps, loads=loads)["gbps"] for warps, loads in ((32, 1), (4, 8)))
    return (f"reached {many:.0f} GB/s {LABEL}, four warps with eight loads {few:.0f}.",)


def managed():
    way = {row["way"]: row for row in VALUES["unified_memory"]["rows"]}
    total = {name: row["move_seconds"] + row["kernel_seconds"] for name, row in way.items()}
    faults = total["managed, faults"]
    assert 0.9 < faults / total["copy, pageable"] < 1.1
    assert all(4.5 < faults / total[name] < 5.5 for name in ("managed, prefetch", "copy, pinned"))
    kernel = [1e3 * way[name]["kernel_seconds"] for name in ("managed, prefetch", "copy, pinned")]
    back = [1e3 * way[name]["host_read_seconds"] for name in ("copy, pageable", "managed, faults", "managed, prefetch")]
    return (
        f"{kernel[0]:.3f} ms, against {kernel[1]:.3f} after the copy from pinned memory, in the recording",
        f"takes {back[0]:.0f} ms; where the pages have to come back from the GPU, {back[1]:.0f} ms after faults "
        f"and {back[2]:.0f} after the prefetch",
    )


def scans():
    one = gbps("scan_table", "cuda_look_back")
    blocks, cub = (one / gbps("scan_table", name) for name in ("cuda_by_blocks", "CUB (cuda.compute)"))
    lengths = [row["ratio_to_copy"] for row in VALUES["scan_lengths"]]
    assert by(VALUES["scan_lengths"], n=2**22)["ratio_to_copy"] == min(lengths)
    again = min(each["scan_least"] for each in VALUES["processes"])
    machine = "{} ({})".format(*recordings.recorded("scan_lengths").origin.removeprefix("NVIDIA ").split(", "))
    pipelined = by(VALUES["scan_table"]["kernels"], kernel="cuda_pipelined")
    return (
        f"I{LATER[1:]} one pass is {blocks:.1f} times as fast as scanning block by block, and {cub:.2f} times",
        f"{pipelined['ratio_to_library']:.2f} times as fast as CUB, at {pipelined['ratio_to_copy']:.2f} of a copy",
        f"On an {machine} it reaches {statistics.geometric_mean(lengths):.2f} of a copy over {len(lengths)} lengths, "
        f"at least {min(lengths):.2f}, and {again:.2f} in other processes: 2²² elements the driver",
    )


def limits():
    error = json.loads((COURSE / "warplab" / "estimating" / "error.json").read_text())["H100"]
    assert "stores of parts of sectors" not in error["limits"]
    return ("No unseen launch had this limit",)


QUOTED = {
    "memory-17": strides,
    "memory-20": offsets,
    "memory-53": transposes,
    "task-lifted": limits,
    "memory-70": sums,
    "memory-78": stencils,
    "memory-87": in_flight,
    "memory-96": managed,
    "memory-100": scans,
}


@pytest.mark.parametrize("cell", QUOTED)
def test_the_text_quotes_what_was_recorded(cell):
    text = next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)
    for phrase in QUOTED[cell]():
        assert phrase in text


def transpose_estimate(pitch):
    """The lesson's estimate of a transpose with rows of the tile that are `pitch` words apart."""
    source = CudaSource(ANSWERS.lifted(pitch).removeprefix("%%cuda\n"), "transpose_lifted")
    a = np.ones((1024, 1024), np.float32)
    arguments = (a, np.zeros_like(a), np.int32(1024), np.int32(1024))
    return estimate(simulate(source, (32, 32), (32, 8), arguments), blocks=2**8)


def test_without_its_conflicts_the_transpose_comes_to_the_mark_that_its_estimate_had():
    tile, lifted = transpose_estimate("32"), transpose_estimate("33")
    assert (tile.limit, lifted.limit) == ("L1 data path", "DRAM")
    assert lifted.seconds < 0.7 * tile.seconds
    assert lifted.seconds == pytest.approx(tile.lifted["L1 data path"], rel=0.05)
