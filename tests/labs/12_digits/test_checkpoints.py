"""Checkpoints: read as written, damaged ones passed over, killed writers leaving none or a whole one."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from digits.files import DigitsError, read_json
from digits.training import checkpoints

ARRAYS = {"conv/0": np.linspace(0, 1, 1000, dtype=np.float32), "optimizer/0": np.array(7, np.int64)}
EXACT = {"sums": {"loss": 0.1 + 0.2, "count": 3.0}, "validated": -1, "best": None}


class Killed(BaseException):
    """Stands for a process's end: nothing in the code under test may catch it."""


def killed(*_args, **_keywords):
    raise Killed


def steps(run):
    return [stored.step for stored in checkpoints.listed(run)]


def test_what_is_written_is_read_bit_by_bit(tmp_path):
    checkpoints.write(tmp_path, 12, ARRAYS, EXACT)
    arrays, about, problems = checkpoints.latest(tmp_path)
    assert problems == []
    assert {name: array.dtype for name, array in arrays.items()} == {"conv/0": np.float32, "optimizer/0": np.int64}
    assert all((arrays[name] == ARRAYS[name]).all() for name in ARRAYS)
    assert about["sums"] == EXACT["sums"]
    assert (about["step"], about["validated"], about["best"]) == (12, -1, None)


def test_a_run_without_any_has_none(tmp_path):
    assert checkpoints.latest(tmp_path) == (None, None, [])


def test_the_last_two_are_kept_and_those_kept_for_good(tmp_path):
    for step in range(0, 60, 10):
        checkpoints.write(tmp_path, step, ARRAYS, {}, keep=step == 20)
        checkpoints.write(tmp_path, step, ARRAYS, {})  # written again, by a pause
    assert steps(tmp_path) == [20, 40, 50]
    assert sorted(path.suffix for path in (tmp_path / "checkpoints").iterdir()) == [".json"] * 3 + [".npz"] * 3


@pytest.mark.parametrize("damage", ["a bit", "cut", "empty", "gone", "about gone", "about torn", "about of another"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, damage):
    checkpoints.write(tmp_path, 10, ARRAYS, EXACT)
    checkpoints.write(tmp_path, 20, {"conv/0": np.zeros(5)}, EXACT)
    newest = checkpoints.listed(tmp_path)[-1]
    data = newest.arrays.read_bytes()
    if damage == "a bit":
        newest.arrays.write_bytes(data[:300] + bytes([data[300] ^ 1]) + data[301:])
    elif damage == "cut":
        newest.arrays.write_bytes(data[:-1])
    elif damage == "empty":
        newest.arrays.write_bytes(b"")
    elif damage == "gone":
        newest.arrays.unlink()
    elif damage == "about gone":
        newest.about.unlink()
    elif damage == "about torn":
        newest.about.write_text(newest.about.read_text()[:40])
    else:
        newest.about.write_bytes(checkpoints.listed(tmp_path)[0].about.read_bytes())
    arrays, about, problems = checkpoints.latest(tmp_path)
    assert about["step"] == 10
    assert len(arrays["conv/0"]) == 1000
    assert len(problems) == (damage != "about gone")  # without its second file it never was a checkpoint
    assert all(problem.endswith(".") for problem in problems)


def test_if_all_are_damaged_the_reasons_are_told(tmp_path):
    for step in (10, 20):
        checkpoints.write(tmp_path, step, ARRAYS, EXACT)
        checkpoints.listed(tmp_path)[-1].arrays.write_bytes(b"nonsense")
    arrays, about, problems = checkpoints.latest(tmp_path)
    assert arrays is None
    assert about is None
    assert ["step 20" in problems[0], "step 10" in problems[1]] == [True, True]


def test_arrays_that_hold_python_objects_are_refused(tmp_path):
    checkpoints.write(tmp_path, 10, ARRAYS, EXACT)
    stored = checkpoints.listed(tmp_path)[0]
    np.savez(stored.arrays.open("wb"), evil=np.array([{"a": 1}], dtype=object))
    about = read_json(stored.about) | {"sha256": checkpoints.checksum(stored.arrays)}
    checkpoints.write_json(stored.about, about)
    with pytest.raises(DigitsError, match="cannot be read"):
        checkpoints.read(stored)


@pytest.mark.parametrize("at", ["write_file", "checksum", "write_json", "_prune"])
@pytest.mark.parametrize("step", [20, 30])
def test_a_writer_that_is_killed_leaves_a_whole_checkpoint(tmp_path, monkeypatch, at, step):
    for before in (10, 20):
        checkpoints.write(tmp_path, before, ARRAYS, EXACT)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, at, killed)
        with pytest.raises(Killed):  # step 20: one that is written again
            checkpoints.write(tmp_path, step, {"conv/0": np.ones(1000, np.float32)}, EXACT)
    arrays, about, _ = checkpoints.latest(tmp_path)
    assert about["step"] == (step if at == "_prune" else 20)
    assert (arrays["conv/0"] == 1).all() == (at == "_prune")
    checkpoints.tidy(tmp_path)
    arrays_left = set((tmp_path / "checkpoints").glob("*.npz"))
    assert arrays_left == {stored.arrays for stored in checkpoints.listed(tmp_path)}
    checkpoints.write(tmp_path, step, ARRAYS, EXACT)  # and again, whatever was there
    arrays, about, problems = checkpoints.latest(tmp_path)
    assert (about["step"], arrays["conv/0"][-1], problems) == (step, 1, [])
    assert len(list((tmp_path / "checkpoints").glob("*.npz"))) == len(checkpoints.listed(tmp_path)) == 2


def test_a_full_disk_leaves_the_checkpoints_before(tmp_path, monkeypatch):
    checkpoints.write(tmp_path, 10, ARRAYS, EXACT)

    def full(stream, **_arrays):
        stream.write(b"PK begin")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(DigitsError, match="the disk is full"):
            checkpoints.write(tmp_path, 20, ARRAYS, EXACT)
    assert steps(tmp_path) == [10]
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2  # nothing unfinished stays


def test_what_a_killed_writer_left_is_tidied(tmp_path):
    checkpoints.write(tmp_path, 10, ARRAYS, EXACT)
    (tmp_path / ".unfinished-state.json-abc").write_text("half")
    (tmp_path / "checkpoints" / ".unfinished-step-000000020.npz-abc").write_text("half")
    (tmp_path / "checkpoints" / "step-000000020.npz").write_text("without a checksum")
    (tmp_path / "checkpoints" / "notes.txt").write_text("somebody's")
    checkpoints.tidy(tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "notes.txt",
        "step-000000010.json",
        "step-000000010.npz",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]
