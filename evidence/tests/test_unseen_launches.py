"""The unseen launches: each kernel computes what NumPy does; each launch has its time, in the half of its kernel."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from evidence.unseen_launches import record, recordings
from evidence.unseen_launches.catalogue import KERNELS, launches
from evidence.unseen_launches.recordings import half_of
from evidence.unseen_launches.unseen import equal
from warplab.launch.simulate import simulate


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_what_numpy_does(name: str) -> None:
    kernel = KERNELS[name]
    case = kernel.case(**kernel.tested)
    arguments = case.arguments()
    before = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    simulate(kernel.function(), case.grid, case.block, arguments, shared_bytes=case.shared_bytes)
    expected = case.expected(*before)
    assert expected
    for number, values in expected.items():
        assert equal(arguments[number], np.asarray(values), kernel.tolerance), f"argument {number}"


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_the_same_on_a_gpu(name: str) -> None:
    assert not record.difference(KERNELS[name])


def test_names_of_launches_are_unique() -> None:
    names = [name for name, *_ in launches()]
    assert len(set(names)) == len(names)
    assert len(names) >= 100
    assert len(KERNELS) >= 30


def test_a_name_decides_about_its_half() -> None:
    """By the first bit of its hash, which nobody can choose: sha256 of "a" begins with ca, of "b" with 3e."""
    assert not recordings.is_open("a")
    assert recordings.is_open("b")


def test_recordings_are_of_these_launches_as_they_are() -> None:
    """In the file of the kernel's half, with the grid, block and sharing of the case. No time is looked at."""
    known = {name: (kernel, one) for name, kernel, one in launches()}
    for half in recordings.HALVES:
        for card in ("H100", "H200"):
            path = recordings.file_of(half, card)
            for name, values in json.loads(path.read_text()).items() if path.exists() else ():
                kernel, one = known[name]
                case = kernel.case(**one.timed)
                assert half_of(kernel) == half
                assert recordings.name_of(values["device"]) == card
                assert values["kernel"] == kernel.name
                assert values["warm"] == kernel.warm
                assert values["parameters"] == dict(one.timed)
                for key in ("grid", "block"):
                    size = getattr(case, key)
                    assert values[key] == (list(size) if isinstance(size, tuple) else size), name
                assert values["shared_bytes"] == case.shared_bytes
                assert 0 < values["fastest_seconds"] <= values["seconds"] <= values["slowest_seconds"], name


@pytest.mark.parametrize("card", ["H100", "H200"])
@pytest.mark.parametrize("half", recordings.HALVES)
def test_a_half_is_recorded_as_a_whole(half: str, card: str) -> None:
    those = [(kernel, name) for name, kernel, _ in launches() if half_of(kernel) == half]
    assert {recordings.is_recorded(kernel, name, card) for kernel, name in those} == {True}


def test_a_recording_is_written_to_its_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    machine = {"device": "NVIDIA H100", "date": "2026-11-23"}
    first, second = (next(k for k in KERNELS.values() if k.of_set == which) for which in (1, 2))
    recordings.add(second, "unseen, b, n = 1", {"seconds": 1.23456e-6}, machine)
    assert recordings.read(second, "unseen, b, n = 1") == {"seconds": 1.235e-6, **machine}
    other = machine | {"device": "NVIDIA H200"}
    recordings.add(second, "unseen, b, n = 1", {"seconds": 1e-6}, other)
    assert recordings.read(second, "unseen, b, n = 1", "H200")["seconds"] == 1e-6
    assert {path.name for path in tmp_path.iterdir()} == {"recordings_second.json", "recordings_second_h200.json"}
    with pytest.raises(LookupError, match="never recorded on an H100"):
        recordings.read(first, "unseen, a, n = 1")
    with pytest.raises(ValueError, match=r"is no card of cards\.toml"):
        recordings.name_of("Some GPU")


@pytest.mark.parametrize("name", KERNELS)
def test_a_smaller_launch_stands_for_the_timed_one(name: str) -> None:
    """Threads per block and shared memory are the same, or `blocks` would not say how many times the work there is."""
    kernel = KERNELS[name]
    for one in kernel.launches:
        case, part = kernel.case(**one.timed), kernel.part(dataclasses.replace(one, footprint=None))
        assert part.block == case.block
        assert part.shared_bytes == case.shared_bytes
        blocks = part.grid if isinstance(part.grid, int) else math.prod(part.grid)
        assert blocks * part.blocks == pytest.approx(case.blocks)
