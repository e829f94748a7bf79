"""Machine code by LLVM: many pieces at once, from many threads, in little memory"""

from __future__ import annotations

import ctypes
import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warplab.simulator.translate import machine_compiler

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")


def _adds(number: int) -> machine_compiler.Compiled:
    return machine_compiler.Compiled(machine_compiler.Source(f"def f(a):\n    return a + {number}\n", {}))


def _called(code: machine_compiler.Compiled, value: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(value)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_pieces_of_one_name_stand_side_by_side_and_come_from_any_thread():
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(_adds, range(40)))
    assert [_called(code, 2) for code in codes] == list(range(2, 42))


def test_a_piece_of_code_costs_pages_and_not_an_engine():
    _adds(0)
    gc.collect()
    before = _resident()
    codes = [_adds(number) for number in range(50)]
    assert _resident() - before < 50 * 200_000
    assert _called(codes[-1], 1) == 50
