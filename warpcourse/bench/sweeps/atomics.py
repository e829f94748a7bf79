"""Atomics by addresses: on global memory, and on shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpcourse.bench.sweeps.sweep import SMS, seconds

ROUNDS = 32
SHARED_ROUNDS = 256
BLOCK = 256
LINES = (1, 2, 4, 8, 16, 64, 256, 1024, 4096, 2**15, 2**18)
TYPES = {"u32": np.uint32, "f32": np.float32, "u64": np.uint64, "f64": np.float64, "f16x2": np.uint32}


def _pattern(
    lanes: int = 32,
    sharing: int = 1,
    lane_step: int = 0,
    warp_step: int = 0,
    round_step: int = 0,
    words: int = 1,
    spread: int = 1,
    random: bool = False,
) -> dict[str, int]:
    """As in atomics.cu, with the number of words instead of the mask."""
    return {
        "lanes": lanes,
        "sharing": sharing,
        "lane_step": lane_step,
        "warp_step": warp_step,
        "round_step": round_step,
        "words": words,
        "spread": spread,
        "random": int(random),
    }


ONE_LANE, ALL_LANES = _pattern(lanes=1), _pattern()
ONE_LINE = _pattern(lane_step=1, words=32)
MANY_LINES = _pattern(lane_step=1, warp_step=32, round_step=32, words=32 * 1024)
FEW = [ONE_LANE, ALL_LANES, ONE_LINE, MANY_LINES, _pattern(random=True, words=256), _pattern(random=True, words=2**20)]
ALL = [
    ONE_LANE,
    *(_pattern(sharing=k, lane_step=1, words=32) for k in (32, 16, 8, 4, 2, 1)),
    # One lane of a warp, or all lanes in a line, by the number of lines that the warps go through.
    *(_pattern(lanes=1, warp_step=32, round_step=32, words=32 * n) for n in LINES),
    *(_pattern(lane_step=1, warp_step=32, round_step=32, words=32 * n) for n in LINES),
    # Four words in a line, in different sectors; each lane a line of its own.
    *(_pattern(lanes=n, lane_step=8, words=32) for n in (2, 4)),
    *(_pattern(lane_step=32, warp_step=1024, round_step=1024, words=32 * n) for n in (32, 256, 1024, 2**15, 2**18)),
    *(_pattern(random=True, words=2**k) for k in (3, 5, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26)),
]
GLOBAL = {
    "red_add_u32": ALL,
    "atom_add_u32": ALL,
    "red_add_f32": ALL,
    **dict.fromkeys(
        ("atom_add_f32", "red_max_u32", "atom_cas_u32", "atom_exch_u32", "red_add_u64", "red_add_f64", "red_add_f16x2"),
        FEW,
    ),
}


def global_atomics() -> Iterator[dict[str, Any]]:
    """Measure seconds by instruction and addresses. `requests`: of warps, each of `lanes` operations."""
    for name, patterns in GLOBAL.items():
        for pattern in patterns:
            yield _global(name, pattern, 4 * SMS)
        for blocks in (1, SMS):
            yield _global(name, ONE_LANE, blocks)


def _global(name: str, pattern: dict[str, int], blocks: int) -> dict[str, Any]:
    import cupy

    kind = TYPES[name.rpartition("_")[2]]
    data, out = cupy.zeros(pattern["words"] * pattern["spread"], kind), cupy.zeros(BLOCK, kind)
    arguments = (*_words(pattern), data, np.int32(ROUNDS), kind(1), out)
    time = seconds("atomics.cu", f"global_{name}", blocks, BLOCK, arguments)
    return {
        "instruction": name,
        **pattern,
        "blocks": blocks,
        "requests": blocks * BLOCK // 32 * ROUNDS,
        "seconds": time,
    }


def places(tries: int = 24, apart: int = 2**20) -> Iterator[dict[str, Any]]:
    """Measure seconds of atomics on a few neighbouring lines, random words of them, that begin at different places.

    `place`: the first word. Which parts of the L2 serve the lines depends on it.
    """
    import cupy

    data, out = cupy.zeros(tries * apart, np.uint32), cupy.zeros(BLOCK, np.uint32)
    starts = np.random.default_rng(3).integers(0, apart // 256, tries) * 256 + np.arange(tries) * apart
    for words in (64, 128, 256, 512, 1024, 2048, 8192):
        pattern = _pattern(random=True, words=words)
        for start in starts.tolist():
            arguments = (*_words(pattern), data[start:], np.int32(ROUNDS), np.uint32(1), out)
            time = seconds("atomics.cu", "global_red_add_u32", 4 * SMS, BLOCK, arguments)
            yield {"words": words, "place": start, "requests": 4 * SMS * BLOCK // 32 * ROUNDS, "seconds": time}


def _words(pattern: dict[str, int]) -> tuple[np.uint32, ...]:
    values = {**pattern, "mask": pattern["words"] - 1}
    order = ("lanes", "sharing", "lane_step", "warp_step", "round_step", "mask", "spread", "random")
    return tuple(np.uint32(values[name]) for name in order)


def shared_atomics() -> Iterator[dict[str, Any]]:
    """Measure seconds by instruction, addresses and blocks of 8 warps on a multiprocessor. `requests`: of one of
    them."""
    import cupy

    names = ["increment_u32", "add_u32", "add_used_u32", "max_u32", "cas_u32", "exch_u32", "add_f32", "add_u64"]
    patterns = [
        *(_pattern(sharing=k, lane_step=1, warp_step=32, words=256) for k in (1, 2, 4, 8, 16, 32)),
        *(_pattern(lane_step=k, words=1024) for k in (2, 4, 32)),  # conflicts of banks
        ALL_LANES,
        ONE_LINE,
        *(_pattern(random=True, words=n) for n in (16, 256, 2048)),
    ]
    for name in names:
        kind = TYPES[name.rpartition("_")[2]]
        out = cupy.zeros(BLOCK, kind)
        for pattern in patterns:
            for blocks in (1, 8):
                arguments = (*_words(pattern), np.int32(SHARED_ROUNDS), kind(1), out)
                time = seconds("atomics.cu", f"shared_{name}", blocks * SMS, BLOCK, arguments)
                requests = blocks * BLOCK // 32 * SHARED_ROUNDS
                yield {"instruction": name, **pattern, "blocks": blocks, "requests": requests, "seconds": time}
