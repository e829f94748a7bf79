"""Files that are whole or not there, lines that survive a torn one, locks that end with their owner."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from digits import files
from digits.files import DigitsError

HOLD = """
import sys, time
from digits.files import Lock
assert Lock(sys.argv[1]).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_json_is_read_as_it_was_written(tmp_path):
    value = {"name": "Zahlen – 数", "loss": 0.1 + 0.2, "classes": ["<b>", '"']}
    files.write_json(tmp_path / "a.json", value)
    files.write_json(tmp_path / "a.json", {**value, "step": 2})
    assert files.read_json(tmp_path / "a.json") == {**value, "step": 2}
    assert os.listdir(tmp_path) == ["a.json"]


def test_loss_that_is_not_a_number_comes_back(tmp_path):
    files.write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert np.isnan(files.read_json(tmp_path / "a.json")["loss"])


def test_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, {"old": 1})

    def half(stream):
        stream.write(b'{"new"')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_file(path, half)
    assert files.read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_full_disk_is_said_and_nothing_is_lost(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    files.write_json(path, {"old": 1})

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DigitsError, match=r"Cannot write a\.json: the disk is full\. Delete"):
        files.write_json(path, {"new": 2})
    assert files.read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_damaged_json_names_file_and_folder(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(DigitsError, match=rf"state\.json of {tmp_path.name} is damaged"):
        files.read_json(path)


def test_missing_json_names_file_and_folder(tmp_path):
    with pytest.raises(DigitsError, match=r"Cannot read state\.json of"):
        files.read_json(tmp_path / "state.json")


def test_torn_line_is_skipped_and_stays_alone(tmp_path):
    path = tmp_path / "curves.jsonl"
    assert files.read_lines(path) == []
    files.append_line(path, {"step": 1})
    with open(path, "ab") as stream:
        stream.write(b'{"step": 2, "lo')
    assert files.read_lines(path) == [{"step": 1}]
    files.append_line(path, {"step": 3})
    assert files.read_lines(path) == [{"step": 1}, {"step": 3}]


def test_line_that_does_not_fit_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "curves.jsonl"
    files.append_line(path, {"step": 1})
    real_write = os.write
    left = [5]

    def nearly_full(descriptor, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real_write(descriptor, data[: left[0]])
        left[0] = 0
        return written

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(DigitsError, match="the disk is full"):
        files.append_line(path, {"step": 2})
    monkeypatch.undo()
    files.append_line(path, {"step": 3})
    assert path.read_text() == '{"step": 1}\n{"step": 3}\n'


def test_array_is_mapped_and_cannot_be_written_to(tmp_path):
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    files.save_array(tmp_path / "a.npy", array)
    loaded = files.load_array(tmp_path / "a.npy")
    assert np.array_equal(loaded, array)
    assert loaded.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        loaded[0, 0] = 1


def test_empty_array_comes_back(tmp_path):
    files.save_array(tmp_path / "a.npy", np.zeros((0, 8, 8, 1), np.uint8))
    assert files.load_array(tmp_path / "a.npy").shape == (0, 8, 8, 1)


def test_damaged_array_is_named(tmp_path):
    path = tmp_path / "train_images.npy"
    files.save_array(path, np.arange(1000))
    whole = path.read_bytes()
    for content in (b"", whole[:5], whole[:60], whole[:500], b"PK\x03\x04" + whole):
        path.write_bytes(content)
        with pytest.raises(DigitsError, match=r"train_images\.npy"):
            files.load_array(path)


def test_pickles_are_neither_written_nor_read(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle"):
        files.save_array(tmp_path / "a.npy", objects)
    np.save(tmp_path / "b.npy", objects, allow_pickle=True)
    with pytest.raises(DigitsError, match="damaged"):
        files.load_array(tmp_path / "b.npy")


def test_folder_is_deleted_with_all_in_it(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    files.write_json(folder / "checkpoints" / "a.json", {})
    files.delete_folder(folder)
    assert os.listdir(tmp_path) == []
    with pytest.raises(DigitsError, match="Cannot delete run"):
        files.delete_folder(folder)


def test_lock_is_held_by_one_and_ends_with_release(tmp_path):
    path = tmp_path / "lock"
    assert not files.is_locked(path)
    with files.Lock(path):
        assert files.is_locked(path)
        assert not files.Lock(path).acquire(patience=0)
        with pytest.raises(DigitsError, match="Another process works on"), files.Lock(path):
            pass
    assert not files.is_locked(path)


def test_lock_ends_with_a_killed_process(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        assert files.is_locked(path)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert not files.is_locked(path)
    assert files.Lock(path).acquire(patience=0)


def test_checksum_is_that_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert files.checksum(tmp_path / "a").startswith("ba7816bf")  # FIPS 180-2, appendix B.1


def test_nothing_is_written_through_a_link(tmp_path):
    """A workspace that was copied from somebody else may hold links to the user's own files."""
    own = tmp_path / "own.txt"
    own.write_text("kept\n")
    for name in ("lines.jsonl", "log.txt", "lock"):
        (tmp_path / name).symlink_to(own)
    with pytest.raises(DigitsError, match="link"):
        files.append_line(tmp_path / "lines.jsonl", {"step": 1})
    for anew in (False, True):
        with pytest.raises(DigitsError, match="link"):
            files.open_log(tmp_path / "log.txt", anew)
    with pytest.raises(DigitsError, match="link"):
        files.Lock(tmp_path / "lock").acquire()
    files.write_json(tmp_path / "lines.jsonl", {"step": 2})  # takes the link's place
    assert own.read_text() == "kept\n"
    assert not (tmp_path / "lines.jsonl").is_symlink()


def test_pipe_is_not_waited_for(tmp_path):
    for name in ("run.json", "curves.jsonl", "images.npy", "lock", "log.txt"):
        os.mkfifo(tmp_path / name)
    for ask in (
        lambda: files.read_json(tmp_path / "run.json"),
        lambda: files.read_lines(tmp_path / "curves.jsonl"),
        lambda: files.load_array(tmp_path / "images.npy"),
        lambda: files.checksum(tmp_path / "images.npy"),
        lambda: files.append_line(tmp_path / "curves.jsonl", {}),
        lambda: files.open_log(tmp_path / "log.txt"),
        lambda: files.Lock(tmp_path / "lock").acquire(),
    ):
        with pytest.raises(DigitsError):
            ask()
    assert not files.is_locked(tmp_path / "lock")


def test_log_is_appended_to_or_begun_anew(tmp_path):
    for line, anew in ((b"a", False), (b"b", False)):
        with files.open_log(tmp_path / "log.txt", anew) as log:
            log.write(line)
    assert (tmp_path / "log.txt").read_bytes() == b"ab"
    with files.open_log(tmp_path / "log.txt", anew=True) as log:
        log.write(b"c")
    assert (tmp_path / "log.txt").read_bytes() == b"c"


def test_lock_of_a_folder_that_may_only_be_read_is_asked(tmp_path, monkeypatch):
    with files.Lock(tmp_path / "lock"):
        opened = os.open

        def read_only(path, flags, *more):
            if flags & (os.O_RDWR | os.O_WRONLY):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return opened(path, flags, *more)

        monkeypatch.setattr(os, "open", read_only)
        assert files.is_locked(tmp_path / "lock")


LIMITED = """
import resource, sys
import numpy as np
from digits import files
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    files.save_array(sys.argv[1], np.arange(10_000))
except files.DigitsError as error:
    print(error)
"""


def test_why_an_array_cannot_be_written_is_said(tmp_path):
    """NumPy's own `tofile` says "80000 requested and 19872 written", on a full disk, too."""
    files.save_array(tmp_path / "a.npy", np.arange(3))
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "a.npy")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("Cannot write a.npy: the file would be larger than this account may write")
    assert files.load_array(tmp_path / "a.npy").tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["a.npy"]


def test_array_is_written_as_numpy_writes_it(tmp_path):
    for array in (np.arange(24.0).reshape(2, 3, 4).T, np.zeros((0, 3), np.uint8), np.array(["a", "é"])):
        files.save_array(tmp_path / "a.npy", array)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array)
