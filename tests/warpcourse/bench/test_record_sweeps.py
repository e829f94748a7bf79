"""The file that sweeps are recorded in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from warpcourse.bench.sweeps.record import SWEEPS, file_of, write
from warpcourse.paths import COURSE

MACHINE = {"device": "a GPU", "date": "2026-11-23"}


def test_a_sweep_replaces_its_own_rows_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "sweeps.json"
    write(path, "first", [{"n": 1, "seconds": 1.23456789e-6}], MACHINE)
    write(path, "second", [{"n": 2}], MACHINE)
    write(path, "first", [{"n": 3}, {"n": 4}], MACHINE)
    found = json.loads(path.read_text())
    assert found["first"]["rows"] == [{"n": 3}, {"n": 4}]
    assert found["second"] == {"machine": MACHINE, "rows": [{"n": 2}]}
    assert not list(tmp_path.glob("*.tmp"))


def test_all_sweeps_are_recorded() -> None:
    """On an H100, whose sweeps of lab 02 are the lab's own."""
    found = json.loads(file_of("NVIDIA H100 80GB HBM3").read_text())
    assert set(found) == {name for name in SWEEPS if not name.startswith("lab 02, ")}
    assert all(entry["rows"] for entry in found.values())


def test_an_h200s_are_in_a_file_of_its_own() -> None:
    found = json.loads(file_of("NVIDIA H200").read_text())
    assert set(found) >= set(SWEEPS) - {"streams"}
    assert {entry["machine"]["device"] for entry in found.values()} == {"NVIDIA H200"}


def test_it_needs_a_gpu() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "warpcourse.bench.sweeps.record"],
        cwd=COURSE,
        env={"WARPLAB_BACKEND": "simulator", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "needs an NVIDIA GPU" in ran.stderr
