"""`own_names`: what a learner's cell takes of the exercise's own names, its own cells get back."""

import sys
from types import ModuleType

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets.config import Config

from warpcourse.exercises import own_names, score

SETUP = (
    "import math\nfrom kernels.given import NEAR, case\n"
    "def matrix(n): return [n] * n\nTILE, SIZES = 16, [3]"
)
TEST = "assert matrix(3) == [3, 3, 3] and TILE == 16 and answer == 7\nsteps = 4"
LATER = "assert steps == 4"
GIVEN = """
from warplab import checks
NEAR = {"rtol": 1e-5, "atol": 1e-4}
def softmax(s): return s
def case(): return softmax(NEAR), checks
"""


@pytest.fixture(autouse=True)
def given(monkeypatch):
    """A module of a lab's kernels that an exercise gives."""
    module = ModuleType("kernels.given")
    exec(GIVEN, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def run(capsys):
    """A function that runs a cell and returns what it prints, or its error."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    shell.reset(new_session=False)
    before = {event: list(callbacks) for event, callbacks in shell.events.callbacks.items()}
    own_names.guard(shell, {own_names.key(source) for source in (SETUP, TEST, LATER)})

    def run(source):
        capsys.readouterr()
        result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return repr(error) if error else capsys.readouterr().out

    yield run
    shell.events.callbacks.update(before)
    shell.reset(new_session=False)


def test_tests_have_the_names_of_the_setup_and_of_earlier_tests(run):
    assert run(SETUP) == ""
    assert run("answer = 7\ndef matrix(n): return 0") == ""
    told = run(TEST)
    assert told.startswith(f"{own_names.NOTE}matrix, not what a cell of yours calls so.") and told.count("\n") == 1
    assert run("steps, TILE = 5, 17") == ""
    assert run("steps") != "" and run("TILE") != ""
    assert run(LATER).startswith(f"{own_names.NOTE}")
    assert run(TEST) == ""


def test_answers_and_other_names_are_the_learner_s(run):
    assert run(SETUP) == run("answer = 6") == ""
    assert "AssertionError" in run(TEST)
    assert run("answer = 7\nmine = 1") == run(TEST) == run(LATER) == run("assert mine == 1") == ""


def test_tests_have_the_functions_of_their_modules(run):
    from warplab import checks

    kernel, case = checks.kernel, checks.Case
    assert run("from warplab import checks") == ""
    assert run(SETUP) == run("answer = 7\nchecks.kernel = checks.Case = lambda *a, **k: None") == ""
    assert checks.kernel is not kernel
    told = run(TEST)
    assert told.startswith(f"{own_names.NOTE}warplab.checks.") and "warplab.checks.kernel" in told
    assert (checks.kernel, checks.Case) == (kernel, case)
    assert run("import warplab.checks.outputs as o\no.check = None") == "" != run(LATER)
    assert run("import math\nmath.ceil = round") == "" and "math.ceil" in run(TEST)


def test_tests_have_what_given_modules_and_lists_hold(run, given):
    softmax, near = given.softmax, dict(given.NEAR)
    assert run(SETUP) == ""
    assert run("answer = 7\nNEAR['atol'] = 1e9\ndel NEAR['rtol']\nSIZES += [4]") == run(TEST) == ""
    assert given.NEAR == near and run("assert SIZES == [3]") == ""
    assert run("names = case.__globals__\nnames['softmax'] = names['checks'] = None") == ""
    told = run(TEST)
    assert "given.softmax" in told and "given.checks" in told
    assert given.softmax is softmax


def test_what_was_told_is_found_once():
    cells = [new_code_cell(outputs=[new_output("stream", text=f"x\n{own_names.NOTE}a.\n")]) for _ in range(2)]
    assert score.notes(new_notebook(cells=[*cells, new_code_cell()])) == [f"{own_names.NOTE}a."]
