"""The counting of CuPy's names in programs."""

from __future__ import annotations

import json
from collections import Counter

from evidence.cupy_names import count

PROGRAM = """
import cupy as cp, cupy.linalg
import cupyx
from cupyx.profiler import benchmark as timed
from cupy import poly1d
cp.add.at(x, 0, cp.linalg.norm(x).sum())
cupy.fft.fft(cp.zeros(3))
cupyx.jit.rawkernel()(f)
np.linalg.inv(cp.float32(1))
"""


def test_uses_of_a_program():
    found = count.uses_of(PROGRAM)
    assert found == Counter(
        [
            "cupyx.profiler.benchmark",
            "poly1d",
            "add.at",
            "linalg.norm",
            "fft.fft",
            "zeros",
            "cupyx.jit.rawkernel",
            "float32",
        ]
    )
    lacking = {name for name in found if not count.is_there(name)}
    assert lacking == {"poly1d", "cupyx.jit.rawkernel"}
    assert not count.uses_of("import numpy as cp\ncp.zeros(3)")
    assert not count.uses_of("import cupy as cp\nprint 'Python 2'")


def test_the_page(tmp_path, capsys):
    (tmp_path / "a.py").write_text(PROGRAM)
    cells = [
        {"cell_type": "code", "source": ["%%time\n", "import cupy as cp\n", "cp.ones(3)\n"]},
        {"cell_type": "code", "source": ["!nvidia-smi\n", "cp.poly1d([1])\n"]},
        {"cell_type": "markdown", "source": ["cp.nothing"]},
    ]
    (tmp_path / "b.ipynb").write_text(json.dumps({"cells": cells}))
    page = tmp_path / "page.md"
    assert count.main([f"mine={tmp_path}", "--output", str(page)]) == 0
    text = page.read_text()
    assert "2 public files use 9 names of CuPy 10 times" in text
    assert "The stand-in has 7 of the names, which are **70.0 %** of the uses" in text
    assert "without `cupyx`, 75.0 %" in text
    assert "`poly1d` 2 (2), `cupyx.jit.rawkernel` 1 (1)." in text
    assert "poly1d" in capsys.readouterr().out
