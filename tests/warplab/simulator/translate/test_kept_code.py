"""Machine code is kept from process to process, where nobody else can write."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from warpcourse.grading.sandbox.isolation import _environment
from warplab import CudaSource, simulate
from warplab.simulator.run import machine_runs
from warplab.simulator.translate import kept_code, machine_blocks, machine_compiler
from warplab.simulator.translate.machine_blocks import MachineBlocks
from warplab.simulator.translate.machine_compiler import Compiled, Source

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")
TEXT = "def f(a):\n    return call(OTHER, a + MORE) + 1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("WARPLAB_KEEP_CODE", raising=False)
    kept_code._folder.cache_clear()
    kept_code._tidy.cache_clear()
    yield tmp_path / "warplab" / "code"
    kept_code._folder.cache_clear()


def source(text: str = TEXT, more: int = 10) -> Source:
    return Source(text, {"MORE": more}, ["OTHER"])


def result(code: Source, factor: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    other = function(lambda x: factor * x)
    compiled = Compiled(code, {"OTHER": ctypes.cast(other, ctypes.c_void_p).value})
    return function(compiled.address("f"))(5)


def test_a_later_process_only_links(folder, monkeypatch):
    assert source().kept is None
    assert result(source(), 2) == 31
    assert [file.name for file in folder.iterdir()] == [source().key]
    monkeypatch.setattr(Source, "code", lambda _: pytest.fail("compiled again"))
    assert result(source(), 3) == 46  # another address of what it calls


def test_code_is_kept_for_what_it_was_made_from(folder, monkeypatch):
    keys = {source().key, source(more=11).key, source(TEXT + "\n").key, Source(TEXT, {"MORE": 10}, ["OTHER", "A"]).key}
    monkeypatch.setattr(machine_compiler, "_made_by", lambda: "another processor")
    assert len(keys | {source().key}) == 5


def test_a_process_that_goes_elsewhere_takes_no_code_from_there(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPLAB_KEEP_CODE", "own")
    result(source(), 2)
    monkeypatch.chdir("/")
    assert source().kept is not None


def test_a_file_that_cannot_be_kept_leaves_nothing(folder):
    (folder / source().key / "in the way").mkdir(parents=True)
    folder.chmod(0o700)
    assert result(source(), 2) == 31
    assert [file.name for file in folder.iterdir()] == [source().key]


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + b"?"])
def test_a_damaged_file_is_no_code(folder, change):
    result(source(), 2)
    file = folder / source().key
    file.write_bytes(change(file.read_bytes()))
    assert source().kept is None
    assert result(source(), 2) == 31
    assert source().kept


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_nothing_is_kept_where_others_can_write(folder, mode):
    folder.mkdir(parents=True)
    folder.chmod(mode)
    result(source(), 2)
    assert not list(folder.iterdir())
    assert source().kept is None


def test_nothing_is_kept_in_a_folder_elsewhere_or_where_there_can_be_none(folder, tmp_path):
    folder.parent.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert result(source(), 2) == 31
    assert not list((tmp_path / "elsewhere").iterdir())
    kept_code._folder.cache_clear()
    folder.unlink()
    folder.write_text("no folder")
    assert result(source(), 2) == 31


def test_nothing_is_kept_where_submissions_run(folder, monkeypatch):
    monkeypatch.setenv("WARPLAB_KEEP_CODE", _environment(folder, "home", "tmp")["WARPLAB_KEEP_CODE"])
    assert result(source(), 2) == 31
    assert source().kept is None


def test_the_older_half_goes(folder, monkeypatch):
    monkeypatch.setattr(kept_code, "_MOST", 6)
    folder.mkdir(parents=True, mode=0o700)
    for k in range(7):
        (folder / str(k)).touch()
        os.utime(folder / str(k), (k, k))
    assert result(source(), 2) == 31
    assert {file.name for file in folder.iterdir()} == {"3", "4", "5", "6", source().key}


@pytest.fixture
def launch(folder, monkeypatch):
    """What launches a kernel so many times, as a process of its own would: for each, was it machine code?"""
    monkeypatch.setattr(machine_runs, "FEWEST", 1)
    monkeypatch.setattr(machine_blocks, "_WRITE", 1e4)
    monkeypatch.setattr(machine_blocks, "_FIRST", 0)
    ran, runs = machine_runs.MachineRuns._ran, []
    monkeypatch.setattr(machine_runs.MachineRuns, "_ran", lambda *of: runs.append(ran(*of)) or runs[-1])

    def launch(comment: str, times: int, launches: int = 200) -> list[bool]:
        text = f'extern "C" __global__ void k(float* a) {{ int i = threadIdx.x; a[i] = a[i] * 3.25f; }} // {comment}'
        monkeypatch.setattr(MachineBlocks, "times", times)
        runs.clear()
        a = np.ones(64, np.float32)
        for _ in range(launches):
            simulate(CudaSource(text, "k"), 1, 64, (a,), checks=False)
        return runs[:]

    return launch


def test_a_block_that_an_earlier_process_compiled_is_machine_code_sooner(launch, monkeypatch):
    monkeypatch.setattr(machine_blocks, "_BLOCK", 1e18)
    assert launch("never", 1) == []
    assert launch("at once", 0)
    kept = launch("later", 1)
    assert all(kept)
    assert 0 < len(kept) < 200


def test_processes_that_are_too_short_compile_a_block_together(launch, folder, monkeypatch):
    monkeypatch.setattr(machine_blocks, "_BLOCK", 1e5)
    monkeypatch.setattr(machine_blocks, "_OF_INSTRUCTION", 1e3)
    monkeypatch.setattr(machine_blocks, "_WRITE_INSTRUCTION", 0)
    alone = 60 - len(launch("alone", 10, 60))
    assert 20 < alone < 60  # launches until it is compiled
    for file in folder.iterdir():
        file.unlink()
    assert launch("first", 10, alone * 2 // 3) == []
    assert 0 < len(launch("second", 10, alone * 2 // 3)) < alone * 2 // 3
    assert len(launch("third", 10, 10)) == 10
    for file in folder.iterdir():
        file.unlink()
    assert launch("elsewhere", 10, alone * 2 // 3) == []
