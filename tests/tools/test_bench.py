"""`make bench` and `make record`: every lab's benchmark, what fails, what is left out, one line of JSON in the end."""

import json
import sys

import pytest

from tools import bench
from warpcourse.bench import timing
from warpcourse.bench.lab import Lab
from warplab.hardware import backend

ABOUT = {"device": "Some GPU", "date": "2001-02-03"}
LABS = [
    Lab("kernels.made_a", "01_made_a", "A", benchmark="benchmark"),
    Lab("kernels.made_b", "02_made_b", "B", benchmark="benchmark"),
    Lab("kernels.made_c", "03_made_c", "C", benchmark="benchmark", gpus=4),
    Lab("kernels.made_d", "04_made_d", "D"),
]


@pytest.fixture
def ran(monkeypatch):
    """Labs whose benchmark ran, with its arguments. That of 02 ends with 1."""
    found = []

    def run(lab, arguments):
        found.append((lab.slug, *arguments))
        return int(lab.number == 2), {"correct": lab.number != 2}

    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(timing, "gpu_count", lambda: 1)
    monkeypatch.setattr(timing, "machine", lambda: ABOUT)
    monkeypatch.setattr(bench, "labs", lambda: LABS)
    monkeypatch.setattr(bench, "find", lambda name: next(lab for lab in LABS if name in lab.slug))
    monkeypatch.setattr(bench, "run", run)
    return found


def last(capsys):
    out, err = capsys.readouterr()
    return json.loads(out.splitlines()[-1]), err


def test_a_failing_lab_keeps_no_other_from_being_measured(ran, capsys):
    assert bench.main([]) == 1
    assert ran == [("01_made_a",), ("02_made_b",)]
    line, err = last(capsys)
    assert line == {
        "benchmark": "bench",
        **ABOUT,
        "figures": {"01_made_a": {"correct": True}, "02_made_b": {"correct": False}},
    }
    assert "03_made_c is left out: it needs 4 GPUs; this machine has 1." in err
    assert "error: failed, or with wrong outputs (see above): 02_made_b" in err


def test_one_key_of_one_lab_is_recorded(ran, capsys):
    assert bench.main(["made_a", "--record", "--only", "x", "--only", "y"]) == 0
    assert ran == [("01_made_a", "--record", "--only", "x", "--only", "y")]
    assert last(capsys)[0]["benchmark"] == "record"


def test_a_key_without_its_lab_is_refused(ran, capsys):
    with pytest.raises(SystemExit) as end:
        bench.main(["--only", "x"])
    assert end.value.code == 2
    assert "name that lab, too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print('a table'); print('{\"figures\": {\"gbps\": 1}}')", (0, {"gbps": 1})),
        ("print('a table'); raise SystemExit(3)", (3, {})),
        ("print('[1]')", (0, {})),
        ("", (0, {})),
    ],
)
def test_figures_are_those_of_the_last_line(tmp_path, monkeypatch, capsys, program, expected):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "benchmark.py").write_text(program)
    monkeypatch.setattr(bench, "COURSE", tmp_path)
    assert bench.run(Lab("made", "01_made", "A", benchmark="benchmark"), []) == expected
    assert ("a table" in capsys.readouterr().out) == ("a table" in program)


def test_without_a_gpu_it_says_so_and_ends_with_code_2(monkeypatch, capsys):
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    monkeypatch.setattr(sys, "argv", ["bench"])
    with pytest.raises(SystemExit) as end:
        bench.main()
    assert end.value.code == timing.NO_GPU
    assert "needs an NVIDIA GPU" in capsys.readouterr().err
