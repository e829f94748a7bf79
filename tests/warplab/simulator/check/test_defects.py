"""Each class of mistake, in both languages: the defective kernel is reported with its place and a likely cause, the
mended one runs silently.
"""

from pathlib import Path

import pytest

from tests.support import defects_numba
from tests.support.defects import DEFECTS, Defect
from warplab import simulator

ALL = [*DEFECTS, *defects_numba.DEFECTS]


def language(defect) -> str:
    return "CUDA C++" if isinstance(defect, Defect) else "Numba"


def line_of(defect, text: str) -> int:
    """Number of the only line of the defective kernel's file with `text`."""
    source = defect.kernel(False).code if isinstance(defect, Defect) else Path(defects_numba.__file__).read_text()
    marks = (text + "\n",) if text.startswith("#") else (text,)  # a mark ends its line
    (number,) = [n for n, line in enumerate(source.splitlines(True), 1) if any(mark in line for mark in marks)]
    return number


@pytest.mark.parametrize("defect", ALL, ids=lambda d: f"{language(d)}: {d.name}")
def test_reported_and_mended(defect):
    with pytest.raises(defect.error) as caught:
        defect.run(right=False)
    error, want = caught.value, defect.report
    assert type(error) is defect.error
    assert "Numba" not in str(error) or language(defect) == "Numba"
    if want is not None:
        name = "kernel" if isinstance(defect, Defect) else defect.wrong.__name__
        assert f"in kernel {name}, block {want.block}, thread {want.thread}" in str(error)
        assert (error.block, error.thread) == (want.block, want.thread)
        assert error.line == line_of(defect, want.line)
        assert error.file == ("kernel.cu" if isinstance(defect, Defect) else "defects_numba.py")
        assert want.line in error.source
        assert want.cause in error.reason
        assert (error.array, error.index) == (want.array, want.index)
        if want.array is not None:
            assert f"`{want.array}`" in error.what
            assert f"element {want.index}" in error.what
    if want is not None and defect.error is simulator.DataRace:
        assert error.other_line == line_of(defect, want.other_line)
        assert error.other_thread == want.other_thread
        assert f"at line {error.other_line}" in error.what
    defect.run(right=True)


def test_every_class_is_there_in_both_languages():
    """The mistakes that a course on GPU computing must catch, without those that Numba cannot express."""
    classes = {
        *("access outside an array", "access outside shared memory", "misaligned access", "use after free"),
        *("read of an array that nobody wrote", "read of shared memory that nobody wrote"),
        *("race on shared memory, no __syncthreads", "race in a warp, no __syncwarp", "race on global memory"),
        *("barrier that only some threads reach", "endless loop", "deadlock: a lock that is never released"),
        "deadlock: spin lock with one program counter per warp",
    }
    in_c, in_numba = {d.name for d in DEFECTS}, {d.name for d in defects_numba.DEFECTS}
    assert classes <= in_numba < in_c
    assert in_c - in_numba == {
        "pointer of the host",
        "product with a fragment that was never filled",
        "store that TMA does not see",
        "block that ends while TMA may read its shared memory",
        "mbarrier used before all know that it is initialised",
        "copy that is read before its barrier",
        "copy over what others still read",
        "barrier that expects too many bytes",
        "race between blocks of a cluster",
        "shared memory of a block that may have ended",
        "sum of a wgmma read before its end",
        "wgmma without a fence",
        "wgmma that one warp of four does not reach",
        "tile written while a wgmma may read it",
        "race on shared memory, the other half has another barrier",
        "barrier that waits for more threads than come",
        "shuffle inside the guard, from a lane that has ended",
    }


def test_a_slice_counts_its_elements_from_its_own_start():
    """The name `a` stands for the slice, not for the array that it was cut from."""
    import numpy as np

    from warplab.dropin import numba_cuda as cuda

    whole = cuda.to_device(np.zeros(120, np.float32))
    with pytest.raises(
        simulator.IllegalAddress, match=r"past the end of array `a` \(480 bytes\), element 100 "
    ) as caught:
        simulate_no_guard(whole[20:], np.zeros(128, np.float32))
    assert caught.value.index == 100


def simulate_no_guard(a, c):
    from warplab.launch.simulate import simulate

    return simulate(defects_numba.no_guard, 2, 64, (a, c))
