"""numba-cuda's own tests against the stand-in: what is changed in them, which do not apply, what the page says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tools import numba_tests, numba_tests_page, numba_tests_shim
from tools.numba_tests_rules import RULES, Rule, used_names
from warplab.dropin import numba_cuda
from warplab.paths import COURSE

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
    tree, imported = numba_tests_shim.rewritten(SOURCE)
    namespace: dict = {"__name__": "tests"}
    exec(compile(tree, "tests.py", "exec"), namespace)
    assert namespace["cuda"] is numba_cuda
    assert namespace["types"].__name__ == "numba.cuda.types"
    assert namespace["prange"].__module__.startswith("numba.")
    assert namespace["driver"].Event is not None
    assert namespace["__doc__"] == "A file of tests."
    assert ("numba", "cuda") in imported
    assert numba_tests_shim.replaces("numba", "cuda")
    assert numba_tests_shim.replaces("numba.cuda", "jit")
    assert not numba_tests_shim.replaces("numba.cuda", "types")
    assert not numba_tests_shim.replaces("numba.cuda.core.errors", "TypingError")


def test_a_name_that_nobody_has_is_an_import_error():
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'numba\.cuda'"):
        numba_tests_shim.member("numba.cuda", "nothing")


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
        ({"outcome": "failed", "error": "DataRace", "classes": ["DataRace", "SimulatorError"]}, None, "difference"),
        ({"outcome": "failed", "error": "AssertionError"}, numba_tests_page.NUMBA_ALONE, "alone"),
    ],
)
def test_what_a_test_counts_as(result, rule, expected):
    file = {"tests": {"test": result}, "uses": {rule: ["test"]} if rule else {}}
    assert numba_tests_page.kind(file, "test")[0] == expected


def test_the_page_is_made_from_the_results():
    results = json.loads(numba_tests.RESULTS.read_text())
    assert numba_tests.PAGE.read_text(encoding="utf-8") == numba_tests_page.page(results)
    figures = numba_tests_page.totals(results)
    parts = ("alone", "not_applying", "passed", "faults", "missing", "differences")
    assert figures["total"] == sum(figures[part] for part in parts) > 1000


def test_a_file_of_tests_runs():
    code = (
        "import json; from tools import numba_tests as t; t._warm_up(); "
        "print(json.dumps(t.run_file(t.tests_folder() / 'cudapy/test_array_args.py')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=COURSE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["error"] is None
    assert len(found["tests"]) == 11
    assert {test["outcome"] for test in found["tests"].values()} == {"passed"}
