"""numba-cuda's own tests against the stand-in: what is changed in them, which do not apply, what the page says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from evidence.numba_tests import page, run, shim
from evidence.numba_tests.rules import RULES, Rule, used_names
from warpcourse.paths import COURSE

SOURCE = '''
"""A file of tests."""
from __future__ import annotations
import numba
from numba import cuda, prange
from numba.cuda import types, config
from numba.cuda.cudadrv import driver

def helper(a):
    driver.device_memset(a, 0, 1)

class Base:
    def setUp(self):
        self.event = cuda.event()

    def check(self):
        helper(1)

class TestOne(Base):
    def test_plain(self):
        assert cuda.grid and numba.cuda.jit

    def test_helped(self):
        self.check()

    def test_cached(self):
        cuda.jit(cache=True)
'''


def test_only_names_of_numba_cuda_are_changed():
    assert ("numba", "cuda") in shim.imported(SOURCE)
    assert shim.replaces("numba", "cuda")
    assert shim.replaces("numba.cuda", "jit")
    assert not shim.replaces("numba.cuda", "types")
    assert not shim.replaces("numba.cuda.core.errors", "TypingError")


def test_names_are_followed_through_helpers_and_bases():
    used = used_names(SOURCE)
    assert set(used) == {"TestOne::test_plain", "TestOne::test_helped", "TestOne::test_cached"}
    called = "numba.cuda.cudadrv.driver.device_memset"
    assert called in used["TestOne::test_helped"]
    assert called not in used["TestOne::test_plain"]
    assert all("numba.cuda.event" in names for names in used.values())  # of setUp
    assert "numba.cuda.jit(cache=True)" in used["TestOne::test_cached"]


def test_rules_look_at_names_alone():
    rule = Rule("both", "", ("numba.cuda.jit(debug=True)",), (".inspect_asm",))
    assert rule.applies_to({"numba.cuda.jit(debug=True)", ".inspect_asm"})
    assert not rule.applies_to({"numba.cuda.jit(debug=True)"})
    names = {rule.name for rule in RULES}
    assert len(names) == len(RULES)
    assert not any("::" in name for rule in RULES for name in rule.names)  # no test is named


@pytest.mark.parametrize(
    ("result", "rule", "expected"),
    [
        ({"outcome": "passed"}, None, "passed"),
        ({"outcome": "xfailed", "reason": ""}, None, "passed"),
        ({"outcome": "passed"}, "the driver", "no"),
        ({"outcome": "skipped", "reason": "no"}, None, "no"),
        ({"outcome": "crashed", "message": ""}, None, "fault"),
        ({"outcome": "hung", "message": ""}, None, "fault"),
        ({"outcome": "failed", "error": "AssertionError", "raised_in": "/warplab/x.py"}, None, "fault"),
        ({"outcome": "failed", "error": "AttributeError", "raised_in": "/warplab/x.py"}, None, "missing"),
        ({"outcome": "failed", "error": "AttributeError", "raised_in": "/numba/x.py"}, None, "fault"),
        ({"outcome": "failed", "error": "DataRace", "reported": True}, None, "difference"),
        ({"outcome": "failed", "error": "AssertionError"}, page.NUMBA_ALONE, "alone"),
    ],
)
def test_what_a_test_counts_as(result, rule, expected):
    file = {"tests": {"test": result}, "uses": {rule: ["test"]} if rule else {}}
    assert page.kind(file, "test")[0] == expected


def test_the_page_is_made_from_the_results():
    results = run.load()
    assert run.PAGE.read_text(encoding="utf-8") == page.page(results)
    figures = page.totals(results)
    parts = ("alone", "not_applying", "passed", "faults", "missing", "differences")
    assert figures["total"] == sum(figures[part] for part in parts) > 1000


def test_results_are_written_in_short_and_read_again(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    long = {
        "outcome": "failed",
        "error": "DataRace",
        "classes": ["DataRace", "SimulatorError"],
        "message": "a\n b" * 999,
    }
    short = run._compact(long | {"seconds": 1.0})
    assert short == {"outcome": "failed", "error": "DataRace", "reported": True, "message": ("a b" * 999)[:300]}
    file = {"date": "2026-11-23", "error": None, "uses": {}, "tests": {"A::b": {"outcome": "passed"}, "A::c": short}}
    results = {"version": "0", "device": "none", "left": [], "files": {"test_a.py": file}}
    run._write(results)
    assert run.load() == results
    assert len(run.RESULTS.read_text().splitlines()) < 10


def test_a_run_that_was_broken_off_goes_on(monkeypatch, tmp_path):
    ran = []

    def run_file(path) -> dict:
        ran.append(path.name)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return {"error": None, "tests": {}}

    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "_every", lambda: ["test_a.py", "test_b.py", "test_c.py"])
    monkeypatch.setattr(run, "_warm_up", lambda: None)
    monkeypatch.setattr(run, "run_file", run_file)
    with pytest.raises(KeyboardInterrupt):
        run._run(None, resume=False)
    run._run(None, resume=True)
    assert ran == ["test_a.py", "test_b.py", "test_b.py", "test_c.py"]


def test_a_file_of_tests_runs():
    code = (
        "import json; from evidence.numba_tests import run as t; t._warm_up(); "
        "print(json.dumps(t.run_file(t.tests_folder() / 'cudapy/test_array_args.py')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=COURSE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["error"] is None
    assert len(found["tests"]) == 11
    assert {test["outcome"] for test in found["tests"].values()} == {"passed"}
