"""Notebooks whose test cells run beside the judge: the same verdicts, scores and messages as in a notebook."""

from __future__ import annotations

import dataclasses
import re
import textwrap

import pytest
from nbconvert.filters import strip_ansi
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import determine_grade

from tests.support.exercise_answers import answers_and_tests, cells_by_id
from tests.support.grading_harness import CANARY, WIDE, Cells
from tests.support.sample import sample_release, sample_source, sample_wrong
from tests.support.waiting import HANG
from warpcourse.grading.judge import verdicts
from warpcourse.grading.judge.cells import Outcome
from warpcourse.grading.judge.execute import TrustedExecute
from warpcourse.grading.judge.jobs import SEED_VARIABLE
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE
from warplab import simulator

# -- an exercise -----------------------------------------------------------------------------------------------------


def trusted(notebook: NotebookNode) -> Cells:
    """The cells of an exercise with its hidden tests."""
    cells = Cells()
    cells.notebook, cells.setup = notebook, {}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("locked"):
            (cells.tests if about.grade else cells.setup)[about.grade_id] = cell.source
    return cells


def test_the_solution_of_an_exercise_gets_every_point(zygotes):
    graded = trusted(sample_source()).run(zygotes)
    assert graded.failed == {}
    assert sum(graded.points.values()) == 25
    assert graded.ended is None
    assert sorted(name.split("(")[0] for name in graded.execute.kernels) == [
        "multiply",
        "multiply_any_grid",
        "multiply_cuda",
        "multiply_float4",
        "multiply_reversed",
    ]
    cells = cells_by_id(graded.notebook)
    assert cells["multiply-fits"].outputs[0].text == "multiply: right for 4 sizes and 1 launch shape.\n"
    counts = [cell.execution_count for cell in graded.notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_the_release_of_an_exercise_gets_no_point(zygotes):
    cells = trusted(sample_source())
    given = cells_by_id(sample_release())
    for cell in cells.notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution"):
            cell.source = given[about.grade_id].source
    graded = cells.run(zygotes)
    assert graded.failed.keys() == cells.tests.keys()
    assert sum("not written yet" in message for message in graded.failed.values()) >= 9


def test_wrong_answers_are_rejected_for_their_reasons(zygotes):
    """In one notebook, one after the other; the labs' own tests run theirs as a learner does."""
    source = sample_source()
    by_id, tests = cells_by_id(source), answers_and_tests(source)
    cells = Cells()
    cells.locked("their setup", by_id["setup"].source)
    names = re.findall(r"(?:def|void) (\w+)\(", "".join(by_id[problem].source for problem in tests))
    table = sample_wrong()
    for one in table:
        cells.student(f"for name in {names}:\n    globals().pop(name, None)")
        cells.answer(f"answer {one.id}", one.cell, by_id[one.problem].source)
        for test in tests[one.problem]:
            cells.test(f"{one.id} {test}", by_id[test].source)
    graded = cells.run(zygotes)
    assert graded.ended is None
    for one in table:
        own = [f"{one.id} {test}" for test in tests[one.problem]]
        failed = [name for name in own if name in graded.failed]
        assert {name.partition(" ")[2] for name in failed} == one.loses, one.id
        assert re.search(one.reason, graded.verdicts[failed[0]].detail), graded.verdicts[failed[0]].detail
    assert len(table) >= 30


# -- ordinary test cells ---------------------------------------------------------------------------------------------


STUDENT = """
import math
from dataclasses import dataclass
PI = 3.0
table = {"a": [1, 2], "b": (None, True)}
grid = np.arange(6.0).reshape(2, 3)

def area(r):
    print("in the notebook")
    return math.pi * r * r

def halves(xs, factor=0.5):
    return [factor * x for x in xs]

def strict(x):
    if x < 0:
        raise ValueError("negative")

def roots(x):
    return np.sqrt(x)

@dataclass
class Point:
    x: int

point = Point(1)

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2
"""


ASSERTS = {
    "values": """
        assert abs(PI - 3) < 1
        assert table == {"a": [1, 2], "b": (None, True)}
        assert grid.sum() == 15
    """,
    "functions": """
        assert round(area(1), 3) == 3.142
        assert halves([2, 4]) == [1, 2]
        assert halves([1], factor=2) == [2]
    """,
    "errors": """
        try:
            strict(-1)
        except ValueError as error:
            assert str(error) == "negative"
        else:
            raise AssertionError
    """,
    "numpy": """
        np.testing.assert_allclose(roots(np.array([4.0, 9.0])), [2, 3])
        assert roots(4.0).dtype == np.float64
    """,
    "kernel": """
        x = cuda.to_device(np.ones(5))
        double[1, 32](x)
        assert (x.copy_to_host() == 2).all()
    """,
    "helpers": """
        def close(a, b):
            return abs(a - b) < 1e-9
        def area_of_two():
            return area(2)
        assert close(PI, 3)
    """,
    "later": "assert close(area_of_two(), 4 * area(1))",
    "in functions": """
        assert all(area(k) > 0 for k in range(1, 4))
        assert [area(k) for k in [0]] == [0]
    """,
    "data": "assert open('data.txt').read() == \"the course's\"",
    "false": "assert area(1) == 3, 'not even close'",
    "undefined": "assert volume(1) == 1",
    "object": "assert point.x == 1",
    "class": "assert Point(1).x == 1",
    "raises": "1 / 0",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.txt").write_text("the course's")
    return str(tmp_path)


def test_assert_style_cells_work_unchanged(zygotes, folder):
    cells = Cells().student(STUDENT)
    for name, source in ASSERTS.items():
        cells.test(name, textwrap.dedent(source).strip())
    graded = cells.run(zygotes, folder=folder)
    assert list(graded.failed) == ["false", "undefined", "object", "class", "raises"]
    assert graded.failed["false"] == "not even close"
    assert graded.failed["undefined"] == "name 'volume' is not defined"
    assert "point is a Point, which a test cannot take from the notebook" in graded.failed["object"]
    outputs = {name: cell.outputs[-1] for name, cell in cells_by_id(graded.notebook).items() if name in graded.failed}
    assert [outputs[name].ename for name in graded.failed] == [
        "AssertionError",
        "NameError",
        "CheckFailed",
        "CheckFailed",
        "ZeroDivisionError",
    ]
    assert outputs["false"].traceback == [
        "line 1: assert area(1) == 3, 'not even close'",
        "AssertionError: not even close",
    ]


def test_partial_credit_and_output(zygotes):
    cells = Cells().student("share = 0.25")
    cells.test("half", "1.0")
    cells.test("share", "2 * share")
    cells.test("numpy", "np.float32(0.5)")
    cells.test("too much", "5.0")
    cells.test("negative", "-1")
    cells.test("text", "'well done'")
    cells.test("quiet", "1.0;")
    cells.test("not last", "0.0\nprint('said')")
    cells.test("warns", "import sys\nprint('careful', file=sys.stderr)")
    cells.test("prints a lot", "print('x' * 3_000_000)")
    graded = cells.run(zygotes)
    assert graded.points == {
        "half": 1,
        "share": 0.5,
        "numpy": 0.5,
        "too much": 2,
        "negative": 2,
        "text": 2,
        "quiet": 2,
        "not last": 2,
        "warns": 2,
        "prints a lot": 2,
    }
    texts = {name: cell.outputs for name, cell in cells_by_id(graded.notebook).items()}
    assert texts["not last"][0].text == "said\n"
    assert "careful" in texts["warns"][0].text
    assert len(texts["prints a lot"][0].text) < 1_100_000
    assert "more characters are left out" in texts["prints a lot"][0].text


def test_a_wrong_magic_says_what_is_wrong(zygotes):
    graded = Cells().student("%%cuda\nwhat is this").student("%%cude\nint x;").run(zygotes)
    no_kernel, unknown = (str(cell.outputs) for cell in graded.notebook.cells[1:])
    assert "the cell has no kernel; write extern" in no_kernel
    assert "%%cude` not found" in unknown
    assert "showtraceback" not in graded.everything()


def test_zero_is_partial_credit(zygotes):
    cells = Cells().test("nothing", "0.0")
    execute = TrustedExecute(tests=cells.tests, setup=cells.setup, seed=b"s", timeout=int(HANG))
    with SandboxedKernelManager(zygotes, {}, SubmissionLimits()) as manager:
        execute.preprocess(cells.notebook, {"metadata": {"path": "."}}, km=manager)
    assert determine_grade(cells.notebook.cells[-1]) == (0, 2)
    assert execute.verdicts["nothing"].kind == ""


def test_a_cell_that_both_need_runs_in_both(zygotes):
    cells = Cells().locked("helper", "%precision 3\nSCALE = 3\ndef scaled(x):\n    return SCALE * x")
    cells.locked("a kernel", '%%cuda\nextern "C" __global__ void ones(float* x) { x[threadIdx.x] = 1; }')
    cells.student("SCALE_SEEN = SCALE + scaled(0)\nones((1,), (4,), (cp.zeros(4, np.float32),))")
    cells.student("SCALE = 1\nscaled = None")
    cells.test("ours", "assert SCALE == 3\nassert scaled(2) == 6\nassert SCALE_SEEN == 3")
    cells.test("kernel", "x = cp.zeros(4, np.float32)\nones((1,), (4,), (x,))\nassert cp.asnumpy(x).sum() == 4")
    graded = cells.run(zygotes)
    assert graded.failed == {}
    failing = Cells().locked("broken", "1 / 0")
    with pytest.raises(RuntimeError, match="the locked cell 'broken' fails: division by zero"):
        failing.run(zygotes)


# -- what a student is told ------------------------------------------------------------------------------------------


KERNELS = """
%%cuda
extern "C" __global__ void unguarded(const float* a, const float* b, float* c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = a[i] * b[i]; }
extern "C" __global__ void half_of_it(const float* a, const float* b, float* c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n / 2) c[i] = a[i] * b[i]; }
extern "C" __global__ void plus(const float* a, const float* b, float* c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }
extern "C" __global__ void twice(const float* a, const float* b, float* c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { c[i] = a[i]; __threadfence(); c[i] = a[i] * b[i]; } }
extern "C" __global__ void endless(const float* a, const float* b, float* c, int n)
{ while (n) if (n > 1000000) n = 0; c[0] = a[0]; }
extern "C" __global__ void talks(const float* a, const float* b, float* c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; printf("input %f\\n", a[0]); if (i < n) c[i] = a[i] * b[i]; }
""".strip()
HIDDEN = {
    "unguarded": ("outside", "A hidden test fails: an access outside an array.\n  at cell [3], line 3: "),
    "half_of_it": ("not written", "A hidden test fails: a result, or a part of it, is missing."),
    "plus": ("wrong result", "A hidden test fails: the result is wrong."),
    "twice": ("limit", "A hidden test fails: too many global store bytes"),
    "endless": ("endless", "A hidden test fails: it does not end."),
}


def test_hidden_tests_say_what_kind_of_failure_and_where_in_the_kernel(zygotes):
    cells = Cells().student("import numpy").student(KERNELS)
    for name in [*HIDDEN, "talks"]:
        hidden = (
            "product = checks.elementwise(np.multiply, ('a', 'b'), 'c', length='n')\n"
            f"checks.kernel({name}, product, sizes=(7013,), launches=[checks.cover(96)],"
            " limits={'global_store_bytes': lambda n: 4 * n})"
        )
        cells.hidden(name, "pass", hidden)
    cells.hidden("few", "pass", hidden.replace(" limits=", " least={'atomics': 1}, limits="))
    cells.student(
        "def f(x):\n    raise ValueError(x)\n"
        "def g(x):\n    return float('nan')\n"
        "class Some: pass\ndef h(x):\n    return Some()"
    )
    cells.hidden("known name", "volume = volume", "pass")  # before its process knows an input of a hidden test
    cells.hidden("assertion", "pass", f"assert 7013 == 1, '{CANARY}'")
    cells.hidden("error", "pass", "f(7013)")
    cells.hidden("nan", "pass", "checks.examples(g, [({'x': 7013.0}, 7013.0)])")
    cells.hidden("object", "pass", "assert h(7013) == 7013")
    cells.hidden("name", "pass", "assert volume_7013(1)")
    cells.hidden("in a function", "pass", "def check_7013():\n    assert f(1) == 7013")
    cells.test("calls it", "check_7013()")
    cells.hidden("result", "pass", "7013")
    graded = cells.run(zygotes)
    for name, (kind, message) in HIDDEN.items():
        assert graded.verdicts[name].kind == kind
        assert graded.verdicts[name].hidden
        assert graded.failed[name].startswith(message)
        assert "7013" in graded.verdicts[name].detail
    assert "c[i] = a[i] * b[i]" in graded.failed["unguarded"]
    assert graded.failed["few"].startswith("A hidden test fails: too few atomics")
    assert graded.failed["assertion"] == "A hidden test fails: the result is wrong."
    assert graded.failed["error"] == "A hidden test fails: an error was raised."
    assert graded.failed["nan"] == "A hidden test fails: a result is not a finite number."
    assert graded.failed["object"] == "A hidden test fails: the result has the wrong type, shape or dtype."
    assert graded.failed["name"] == "A hidden test fails: a name that the tests use is missing."
    assert graded.failed["known name"] == "name 'volume' is not defined"
    assert "calls it" in graded.failed
    assert {"talks", "in a function", "result"}.isdisjoint(graded.failed)
    shown = graded.everything()
    assert "7013" not in shown
    assert CANARY not in shown
    assert "input" not in graded.text(8)
    assert all(v.kind in verdicts.SENTENCES for v in graded.verdicts.values() if v.kind)


def test_visible_tests_show_the_whole_message_and_their_line(zygotes):
    cells = Cells().student(KERNELS)
    product = "product = checks.elementwise(np.multiply, ('a', 'b'), 'c', length='n')\n"
    cells.test("visible", product + "checks.kernel(plus, product, sizes=(33,), launches=[(2, 32)])")
    cells.test("endless", product + "checks.kernel(endless, product, sizes=(1, 2), launches=[(1, 32)])")
    graded = cells.run(zygotes)
    wanted = r"plus: c is wrong in 33 of 33 .*n = 33, 2 blocks of 32 threads, seed \d+"
    assert re.search(wanted, graded.failed["visible"], re.DOTALL)
    assert "the kernel does not end: stopped after 10," in graded.failed["endless"]
    assert "path_limit" not in graded.failed["endless"]  # nobody who reads a graded page can choose it


def test_a_launch_that_does_not_end_is_told_without_the_simulators_options():
    error = simulator.InstructionLimit("it does not end", reason="Is the step 0? simulate(..., path_limit=7)")
    error.advice = "simulate(..., path_limit=7)"
    assert verdicts.verdict(Outcome(error=error), "").message == "it does not end\n  Is the step 0?"


def test_every_kind_of_failure_has_a_sentence():
    from typing import get_args

    from warplab.checks.errors import Kind

    assert set(get_args(Kind)) - {"process"} <= verdicts.SENTENCES.keys()


BROKEN = {
    "cuda": ("%%cuda\n__global__ void times(float* x) {\n  x[0] = y;\n}", "times[1, 1]()", "compile"),
    "python": ("def half(x):\n    return x /", "assert half(2) == 1", "compile"),
    "raises": ("limit = 1 / 0", "assert limit", "name"),
    "nothing": ("other = 1", "assert another", "name"),
}


def test_cells_are_numbered_as_on_the_page_and_a_broken_one_is_named(zygotes):
    """Test cells count on the page, and do not run in the notebook's kernel."""
    cells = Cells()
    for name, (answer, test, _) in BROKEN.items():
        cells.test(f"before {name}", "pass").student(answer).hidden(name, "pass", "pass").test(f"{name} again", test)
        cells.tests[name] = cells.tests[name].replace("pass", test, 1)
    cells.student("half(1)").test("user", "assert half(2) == 1")
    cells.student("def f():\n    raise ValueError('here')\nf()")
    cells.hidden("hidden name", "half", "half(2)")
    graded = cells.run(zygotes)
    numbers = [cell.execution_count for cell in graded.notebook.cells]
    assert numbers == list(range(1, len(numbers) + 1))
    for name, (answer, _, kind) in BROKEN.items():
        assert graded.verdicts[name].kind == graded.verdicts[f"{name} again"].kind == kind, name
        (cell,) = (cell for cell in graded.notebook.cells if cell.source == answer)
        told = graded.failed[name]
        assert (f"its cell [{cell.execution_count}]" in told) == (name != "nothing"), told
    assert graded.failed["cuda"] == (
        'There is no times: its cell [3] did not compile: line 3: error: identifier "y" is undefined'
    )
    assert graded.failed["python"] == (
        "There is no half: its cell [7] did not compile: SyntaxError: invalid syntax (line 2)"
    )
    assert graded.failed["raises"].endswith("its cell [11] ended with an error: ZeroDivisionError: division by zero")
    assert graded.failed["nothing"] == "name 'another' is not defined"
    assert "its cell [7] did not compile" in graded.failed["user"]  # not the one that misses it, too
    (error,) = graded.notebook.cells[19].outputs
    assert "Cell In[20], line 3" in strip_ansi("\n".join(error.traceback))
    assert graded.verdicts["cuda"].detail.splitlines()[0].endswith('identifier "y" is undefined')


def test_a_hidden_test_tells_of_a_broken_cell_only_where_the_visible_one_has_the_name(zygotes):
    cells = Cells().student("def half(x):\n    return x /")
    cells.hidden("named", "# half of x", "half(2)").hidden("not named", "pass", "half(2)")
    failed = cells.run(zygotes).failed
    assert failed["named"].startswith("A hidden test fails. There is no half: its cell [2] did not compile: Syntax")
    assert failed["not named"] == "A hidden test fails: a name that the tests use is missing."


def test_what_is_not_shown_is_said(zygotes):
    cells = Cells().student("def area(r):\n    print('radius', r)\n    return r * r\ndef quiet(r):\n    return r * r")
    cells.test("aloud", "print('area')\nassert area(2) == 4").test("quiet", "assert quiet(2) == 4")
    cells.hidden("hidden", "print('before')", "assert area(3) == 9\nprint('hidden')")
    cells.test("after", "print('after', area(2))").test("nothing", "assert quiet(2) == 4")
    graded = cells.run(zygotes)
    assert graded.failed == {}
    assert graded.text(2) == "area\n[Not shown: what functions of the notebook print while a test calls them.]\n"
    assert graded.text(3) == graded.text(6) == ""
    assert graded.text(4) == "before\n"
    assert graded.text(5).startswith("[Not shown: this comes after hidden tests")


def test_no_output_is_lost_to_questions_between_the_cells(zygotes):
    """However many requests were put to the notebook's process in between, each cell's output is its own."""
    cells = Cells().student("def f(x):\n    return 2 * x")
    for number in range(8):
        cells.test(f"test {number}", f"assert all(f(x) == 2 * x for x in range({number % 4}))")
        cells.student(f"print('cell', {number})\n{number}")
    graded = cells.run(zygotes)
    assert graded.failed == {}
    found = [graded.text(number) for number in range(3, len(graded.notebook.cells), 2)]
    assert found == [f"cell {number}\n{{'text/plain': '{number}'}}" for number in range(8)]


def test_a_failure_of_the_simulator_loses_its_own_test(zygotes, monkeypatch):
    """The student is told that an instruction is refused; the trace is the instructor's."""
    cells = Cells().student("@cuda.jit\ndef f(x):\n    x[0] = 1\ndef g(x):\n    return 1")
    launch = "f[1, 1](cuda.to_device(np.zeros(1)))"
    check = "checks.kernel(f, checks.elementwise(lambda x: 3 * x, ('x',), 'y'), sizes=(1,))"
    cells.test("launch", launch).hidden("hidden", "pass", launch).test("check", check.replace("f,", "f2,"))
    cells.test("others", "assert g(2) == 1").hidden("knows", "pass", "assert g(3) == 1").test("later", launch)
    cells.notebook.cells[1].source += "\n@cuda.jit\ndef f2(x, y):\n    y[0] = x[0]"

    def fail(*arguments, **options):
        raise KeyError("warp 7\x1b[2J")

    monkeypatch.setattr(simulator.Device, "launch", fail)
    graded = cells.run(zygotes)
    assert graded.ended is None
    assert graded.points == {"launch": 0, "hidden": 0, "check": 0, "others": 2, "knows": 2, "later": 0}
    assert graded.failed["launch"].startswith("Your kernel holds an instruction that the simulator refuses.")
    assert graded.failed["check"] == graded.failed["launch"]
    refused = "an instruction that the simulator does not know or refuses."
    assert graded.failed["hidden"] == f"A hidden test fails: {refused}"
    assert graded.failed["later"].startswith(f"A test fails: {refused}")
    assert "KeyError" not in graded.everything()
    for name in graded.failed:
        verdict = graded.verdicts[name]
        assert verdict.detail.startswith("the course's simulator failed on f")
        assert "in fail\n" in verdict.trace
        assert "KeyError: 'warp 7" in verdict.trace


BUSY = "import time\nend = time.process_time() + 60\nwhile time.process_time() < end: pass"


def test_all_tests_together_have_a_budget_of_the_judges_time(zygotes):
    """The student's own time does not count."""
    cells = Cells().student("import time\ndef f(x):\n    time.sleep(1)\n    return x\ndef g(x):\n    return x")
    cells.test("waits", "assert f(1) == 1").test("works", BUSY).test("later", "assert g(1) == 1").student("print('on')")
    graded = cells.run(zygotes, dataclasses.replace(WIDE, judge_seconds=5.0))
    assert graded.failed == {
        "works": graded.failed["works"],
        "later": "The tests of this notebook took 5 s of processor time in all; no more of them were run.",
    }
    assert "s of processor time" in graded.failed["works"]
    assert graded.text(5) == "on\n"


def test_what_took_too_long_to_read_is_not_read_again(zygotes, monkeypatch):
    calls = []

    def endless(entry):
        calls.append(entry)
        while True:
            pass

    launch = "f[1, 1](cuda.to_device(np.zeros(1)))  # endless"
    cells = Cells().student("@cuda.jit\ndef f(x):\n    x[0] = 1\n@cuda.jit\ndef g(x):\n    x[0] = 2")
    cells.test("first", launch).test("second", launch).test("another", launch.replace("f[", "g["))
    monkeypatch.setattr("warplab.simulator.run.device.translate", endless)
    monkeypatch.setattr("warpcourse.grading.judge.execute._SLOW", 0.0)
    graded = cells.run(zygotes, seconds=1)
    assert len(calls) == 2
    assert "too much PTX in f, or too entangled: an earlier test took too long to read it" in graded.failed["second"]
    assert "s of processor time" in graded.failed["first"]
    assert "s of processor time" in graded.failed["another"]


# -- seeds -----------------------------------------------------------------------------------------------------------


DRAWS = """
import random
from warplab.checks.session import fresh_seed
drawn = [fresh_seed(), fresh_seed(), random.random(), np.random.rand(), np.random.default_rng(fresh_seed()).random()]
raise ValueError(drawn)
"""


def test_the_same_seed_gives_the_same_inputs_and_nothing_else_does(zygotes):
    def draws(name: str = "t", **options) -> str:
        return Cells().test(name, DRAWS).run(zygotes, **options).failed[name]

    first = draws()
    assert draws() == first
    others = {
        first,
        draws(seed=b"another"),
        draws(assignment="b"),
        draws(submission="other"),
        draws(name="other"),
    }
    assert len(others) == 5
    two = Cells().test("a", DRAWS).test("b", DRAWS).run(zygotes).failed
    assert two["a"] != two["b"]


def test_the_course_secret_comes_from_the_environment_and_not_into_the_kernel(tmp_path, monkeypatch):
    """Without a sandbox: nbclient's ordinary kernel."""
    monkeypatch.setenv(SEED_VARIABLE, "the course's secret")
    monkeypatch.setenv("PYTHONPATH", str(COURSE))
    seen = set()
    for _ in range(2):
        cells = Cells().student(f"import os\nprint('secret', {SEED_VARIABLE!r} in os.environ)\ndef f(x):\n    return x")
        cells.test("draws", DRAWS).test("works", "assert f(3) == 3")
        execute = TrustedExecute(tests=cells.tests, setup=cells.setup, timeout=int(HANG), kernel_name="python3")
        execute.preprocess(cells.notebook, {"metadata": {"path": str(tmp_path)}})
        assert "secret False" in cells.notebook.cells[1].outputs[0].text
        assert execute.verdicts["works"].kind == ""
        seen.add(execute.verdicts["draws"].message)
    assert len(seen) == 1


def test_an_ordinary_kernel_that_hangs_and_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(COURSE))
    cells = Cells().student("def f(x):\n    import time\n    while x:\n        time.sleep(0.01)\n    return 0")
    cells.test("hangs", "assert f(1) == 0  # endless").test("goes on", "assert f(0) == 0")
    cells.student("import os\nos._exit(1)").test("gone", "assert True")
    execute = TrustedExecute(tests=cells.tests, setup=cells.setup, kernel_name="python3")
    execute.timeout_func = lambda cell: 2 if "# endless" in cell.source else int(HANG)
    execute.preprocess(cells.notebook, {"metadata": {"path": str(tmp_path)}})
    assert [execute.verdicts[name].kind for name in ("hangs", "goes on", "gone")] == ["endless", "", "process"]
    assert execute.ended.status == "student_crash"
