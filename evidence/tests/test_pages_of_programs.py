"""Pages of programs that others wrote say what was recorded; nothing here needs the programs."""

from __future__ import annotations

import json

import pytest

from evidence.cuda_programs import libraries, suites
from evidence.cuda_programs import run as cuda_programs
from evidence.foreign_scripts import run as foreign_scripts
from evidence.front_ends import page as front_ends_page
from evidence.front_ends import run as front_ends

PAGES = {
    "cuda_programs": (cuda_programs.RECORD, cuda_programs.PAGE, cuda_programs.page),
    "cuda_programs.suites": (suites.RECORD, suites.PAGE, suites.page),
    "foreign_scripts": (foreign_scripts.RECORD, foreign_scripts.PAGE, foreign_scripts.page),
    "front_ends": (front_ends.RESULTS, front_ends.PAGE, front_ends_page.page),
}


@pytest.mark.parametrize("part", PAGES)
def test_the_page_is_up_to_date(part):
    record, page, written = PAGES[part]
    expected = written(json.loads(record.read_text(encoding="utf-8")))
    module = part if "." in part else f"{part}.run"
    assert page.read_text(encoding="utf-8") == expected, f"run: python -m evidence.{module} --page"


def test_each_defect_of_a_program_was_read_in_its_code():
    programs = json.loads(cuda_programs.RECORD.read_text(encoding="utf-8"))["programs"]
    defects = [name for name, program in programs.items() if program["verdict"] == "defect"]
    assert [name for name in defects if name not in cuda_programs.READ] == []
    assert all(program["date"] for program in programs.values())


def test_each_defect_of_the_suites_was_read_in_its_code():
    programs = json.loads(suites.RECORD.read_text(encoding="utf-8"))["programs"]
    told = [name for name, program in programs.items() if program["verdict"] in ("defect", "fails")]
    assert [name for name in told if name not in suites.READ_SUITES] == []
    assert {program.suite for program in suites.PROGRAMS} == {*suites.SOURCES}


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        ("Beyond Error Threshold of 0.05 Percent: 0\n", "passes"),
        ("Beyond Error Threshold of 0.05 Percent: 1024\n", "fails"),
        ("Number of misses: 10\n", "fails"),
        ("Test Passed\n", "passes"),
        ("done\n", "ends"),
    ],
)
def test_how_programs_of_the_suites_say_that_they_are_right(printed, verdict):
    known = {"kernels": [{"launches": 1}], "defects": []}
    found = cuda_programs._verdict(0, printed, known, (suites._RIGHT, suites._WRONG))
    assert found["verdict"] == verdict


@pytest.mark.parametrize(("order", "verdict"), [((True, False), "refused"), ((False, True), "defect")])
def test_a_defect_behind_what_was_refused_is_none_of_the_programs(order, verdict):
    defects = [
        {"refused": refused, "error": "E", "path": "", "file": "a.cu", "line": 1, "what": "w", "kernel": "k"}
        for refused in order
    ]
    found = cuda_programs._verdict(1, "", {"kernels": [], "defects": defects}, cuda_programs.SAYS)
    assert found["verdict"] == verdict


def test_a_run_that_was_broken_off_goes_on_where_it_was(monkeypatch, tmp_path):
    results = tmp_path / "results.json"
    results.write_text('{"versions": {}, "groups": {"own": {"rows": {"first": {"outcome": "ran"}}}}}')
    monkeypatch.setattr(front_ends, "RESULTS", results)
    monkeypatch.setattr(front_ends, "PAGE", tmp_path / "README.md")
    monkeypatch.setattr(front_ends, "GROUPS", {"own": ("on_mlir", (), None)})
    both = [front_ends.Program("own", name, ()) for name in ("first", "second")]
    monkeypatch.setattr(front_ends, "programs", lambda group, clone: iter(both))
    monkeypatch.setattr(front_ends, "run", lambda program: {"outcome": "failed"})
    for options, outcome in ((["--rest"], "ran"), ([], "failed")):
        assert front_ends.main(["--only", "own", *options]) == 0
        rows = json.loads(results.read_text())["groups"]["own"]["rows"]
        assert rows == {"first": {"outcome": outcome}, "second": {"outcome": "failed"}}


def test_programs_that_run_again_are_compared_with_their_last_verdicts(monkeypatch, tmp_path, capsys):
    """One ends as it did, one shows another defect, one no longer passes, one is cut off at its time."""
    results = tmp_path / "results.json"
    own = {"date": "2026-11-01", "seconds": 7, "arguments": "", "launches": 1, "kernels": 1}
    before = {
        "same": ("ends", ""),
        "moved": ("defect", "DataRace at a.cu:1"),
        "lost": ("passes", ""),
        "late": ("ends", ""),
    }
    now = {
        "same": ("ends", ""),
        "moved": ("defect", "DataRace at a.cu:2"),
        "lost": ("fails", "exit code 1"),
        "late": ("time", ""),
    }
    recorded = {name: own | {"verdict": verdict, "why": why} for name, (verdict, why) in before.items()}
    results.write_text(json.dumps({"programs": recorded}))
    for name in before:
        (tmp_path / "src" / f"{name}-cuda").mkdir(parents=True)
        (tmp_path / "src" / f"{name}-cuda" / "main.cu").touch()
    (tmp_path / "COMMIT").write_text("f27000a518")
    monkeypatch.setattr(cuda_programs, "RECORD", results)
    monkeypatch.setattr(cuda_programs, "PAGE", tmp_path / "README.md")
    given = []

    def run(folder, name, seconds):
        given.append(seconds)
        return {"arguments": "", "launches": 2, "kernels": 1} | dict(zip(("verdict", "why"), now[name], strict=True))

    monkeypatch.setattr(cuda_programs, "_run", run)
    assert cuda_programs.main([f"HeCBench={tmp_path}", "--again"]) == 1
    assert "no longer what they were: lost" in capsys.readouterr().out
    assert given == [7] * 4
    programs = json.loads(results.read_text())["programs"]
    assert {name: program.get("was") for name, program in programs.items()} == {
        "late": "ends, 2026-11-01",
        "lost": "passes, 2026-11-01",
        "moved": "defect, 2026-11-01: DataRace at a.cu:1",
        "same": None,
    }
    assert "- **lost**: fails; was passes, 2026-11-01" in (tmp_path / "README.md").read_text()
    now["lost"] = ("passes", "")
    assert cuda_programs.main([f"HeCBench={tmp_path}", "--again"]) == 0


@pytest.mark.parametrize(
    ("files", "needed"),
    [
        ({"a.cu": "#include <cublas_v2.h>\n"}, ["cuBLAS"]),
        ({"a.cu": "#ifdef MPI\n#include <mpi.h>\n#endif\n# include <cub/cub.cuh>\n"}, []),
        ({"a.h": "#ifndef A_H\n\n#define A_H\n#include <mpi.h>\n#endif\n"}, ["MPI"]),
        ({"a.h": "#ifndef A_H\n#define A_H\n#if B\n#endif\n#include <gsl/gsl_rng.h>\n#endif\n"}, ["GSL"]),
        ({"a.cu": '#include "boost/x.hpp"\n', "boost/x.hpp": "#include <boost/y.hpp>\n"}, []),
    ],
)
def test_which_library_a_program_of_hecbench_needs(tmp_path, files, needed):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert libraries.needed(tmp_path) == needed


def test_of_a_makefile_what_its_conditions_leave():
    text = "D = no\nA = -DA\nifeq ($(D),yes)\nA += -g \\\n -DD\nelse\nA += -O\nendif\n"
    text += "ifeq ($(VERIFY),yes)\nB = -DB\nendif\n"
    assert cuda_programs._expanded(text).split("\n") == ["D = no", "A = -DA", "A += -O", "B = -DB", ""]
