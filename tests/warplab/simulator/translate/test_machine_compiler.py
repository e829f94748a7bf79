"""Machine code by LLVM: many pieces at once, from many threads, in little memory"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from warplab.simulator.translate import machine_compiler

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")


def _adds(number: int) -> machine_compiler.Compiled:
    return machine_compiler.Compiled(machine_compiler.Source(f"def f(a):\n    return a + {number}\n", {}))


def _called(code: machine_compiler.Compiled, value: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(value)


def test_pieces_of_one_name_stand_side_by_side_and_come_from_any_thread():
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(_adds, range(40)))
    assert [_called(code, 2) for code in codes] == list(range(2, 42))


# In a process of its own, since other tests' memory grows a worker, too; the compiler's own comes before the count.
_FIFTY_PIECES = """
import os, pathlib
from warplab.simulator.translate.machine_compiler import Compiled, Source
def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
sources = [Source(f"def f(a):\\n    return a + {number}\\n", {}) for number in range(51)]
for source in sources:
    source.kept = source.code()
first = Compiled(sources[0])
before = resident()
codes = [Compiled(source) for source in sources[1:]]
print(resident() - before)
"""


def test_a_piece_of_code_costs_pages_and_not_an_engine():
    shown = subprocess.run([sys.executable, "-c", _FIFTY_PIECES], capture_output=True, text=True, check=True)
    assert 0 < int(shown.stdout) < 50 * 200_000
