"""Notebooks whose test cells run beside the judge: same verdicts as in a notebook, and nothing to patch or to read."""

from __future__ import annotations

import json
import os
import re
import textwrap
import time

import nbformat
import pytest
from exercise_harness import answers_and_tests, cells_by_id, mutants, source_notebook
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade, is_grade

from warplab.checks import release
from warplab.grading import verdicts
from warplab.grading.artefacts import clean_text
from warplab.grading.cells import Bench, OutOfTime, TrustedCell
from warplab.grading.execute import SEED_VARIABLE, TrustedExecute
from warplab.grading.kernel_manager import SandboxedKernelManager, Zygotes
from warplab.grading.limits import Limits
from warplab.grading.sandbox import find
from warplab.simulator import default_device

TOPIC = "01_vector_multiply"
CANARY = "canary_5f1c"  # in hidden tests only
SETUP = "import numpy as np\nfrom warplab import checks, cp, cuda"


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as zygotes:
        yield zygotes


class Cells:
    """A notebook in the making."""

    def __init__(self) -> None:
        self.notebook, self.tests, self.setup = new_notebook(), {}, {}
        self.locked("setup", SETUP)

    def locked(self, name: str, source: str) -> Cells:
        self.setup[name] = source
        return self._add(source, {"grade_id": name, "grade": False, "solution": False, "locked": True})

    def student(self, source: str) -> Cells:
        return self._add(source, None)

    def test(self, name: str, source: str, points: float = 2) -> Cells:
        self.tests[name] = source
        about = {"grade_id": name, "grade": True, "solution": False, "locked": True, "points": points}
        return self._add(source, about)

    def hidden(self, name: str, visible: str, hidden: str) -> Cells:
        return self.test(name, f"{visible}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS")

    def _add(self, source: str, about: dict | None) -> Cells:
        self.notebook.cells.append(new_code_cell(source, metadata={"nbgrader": about} if about else {}))
        return self

    def run(self, zygotes: Zygotes, limits: Limits | None = None, **options) -> Graded:
        limits = limits or Limits()
        settings = {"seed": b"secret", "assignment": "a", "timeout": 20} | options
        execute = TrustedExecute(tests=self.tests, setup=self.setup, limits=limits, **settings)
        with SandboxedKernelManager(zygotes, {"data.txt": b"the student's"}, limits) as manager:
            execute.preprocess(self.notebook, {"metadata": {"path": "."}}, km=manager)
        nbformat.validate(self.notebook)
        json.dumps(self.notebook).encode()
        return Graded(execute, self.notebook)


class Graded:
    """A notebook that was run. `failed`: messages of the test cells that lost points."""

    def __init__(self, execute: TrustedExecute, notebook: NotebookNode) -> None:
        self.execute, self.notebook = execute, notebook
        self.verdicts, self.ended = execute.verdicts, execute.ended
        self.failed = {name: verdict.message for name, verdict in self.verdicts.items() if verdict.kind}
        self.points = {c.metadata.nbgrader.grade_id: determine_grade(c)[0] for c in notebook.cells if is_grade(c)}
        for name, points in self.points.items():
            assert points == 0 or name not in self.failed
            assert points > 0 or name in self.failed

    def text(self, number: int) -> str:
        """What a cell printed, its results and errors."""
        parts = []
        for output in self.notebook.cells[number].outputs:
            parts.append(output.get("text", "") + str(output.get("data", "")) + output.get("evalue", ""))
        return "".join(parts)

    def everything(self) -> str:
        """All that a student can get to see: outputs of all cells, and the text of those that are not hidden."""
        return json.dumps([[cell.outputs, cell.source if not is_grade(cell) else ""] for cell in self.notebook.cells])


# -- an exercise -----------------------------------------------------------------------------------------------


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
    graded = trusted(source_notebook(TOPIC)).run(zygotes)
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
    cells = trusted(source_notebook(TOPIC))
    given = cells_by_id(release.release_notebook(TOPIC))
    for cell in cells.notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution"):
            cell.source = given[about.grade_id].source
    graded = cells.run(zygotes)
    assert graded.failed.keys() == cells.tests.keys()
    assert sum("not written yet" in message for message in graded.failed.values()) >= 9


def test_mutants_are_rejected_for_their_reasons(zygotes):
    """All of them in one notebook, one after the other."""
    source = source_notebook(TOPIC)
    by_id, tests = cells_by_id(source), answers_and_tests(source)
    cells = Cells()
    cells.locked("their setup", by_id["setup"].source)
    names = re.findall(r"(?:def|void) (\w+)\(", "".join(by_id[problem].source for problem in tests))
    table = mutants(TOPIC)
    for mutant in table:
        cells.student(f"for name in {names}:\n    globals().pop(name, None)")
        cells.student(mutant.cell)
        for test in tests[mutant.problem]:
            cells.test(f"{mutant.path.stem} {test}", by_id[test].source)
    graded = cells.run(zygotes, Limits(wall_seconds=600, cpu_seconds=600), timeout=60)
    assert graded.ended is None
    for mutant in table:
        own = [f"{mutant.path.stem} {test}" for test in tests[mutant.problem]]
        failed = [name for name in own if name in graded.failed]
        assert {name.partition(" ")[2] for name in failed} == mutant.loses, mutant.path.stem
        assert re.search(mutant.reason, graded.verdicts[failed[0]].detail), graded.verdicts[failed[0]].detail
    assert len(table) >= 80


# -- ordinary test cells -----------------------------------------------------------------------------------------

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


def test_zero_is_partial_credit(zygotes):
    cells = Cells().test("nothing", "0.0")
    execute = TrustedExecute(tests=cells.tests, setup=cells.setup, seed=b"s", timeout=20)
    with SandboxedKernelManager(zygotes, {}, Limits()) as manager:
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


# -- what a student may patch ------------------------------------------------------------------------------------

PATCHES = """
import ast, builtins, sys, unittest.mock, warnings
import warplab.checks.kernels, warplab.checks.functions, warplab.grading.artefacts, warplab.simulator
np.testing.assert_allclose = np.allclose = np.array_equal = lambda *a, **k: True
np.isclose = lambda a, b, **k: np.ones(np.shape(a), bool)
builtins.abs = builtins.round = builtins.sum = lambda *a: 1
len = isinstance = all = lambda *a: 1
checks.kernel = checks.examples = checks.function = checks.array = lambda *a, **k: None
warplab.checks.kernels._check_output = lambda *a: None
warplab.simulator.Device.launch = lambda *a, **k: None
def assert_allclose(*a, **k):
    pass
def print(*a, **k):
    pass
class Equal:
    __array_priority__ = 1e9
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __float__(self): return 1.0
    def __sub__(self, other): return 0
    __rsub__ = __sub__
    __hash__ = None
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Drop())
get_ipython().events.register("pre_run_cell", lambda info: None)
number = result = Equal()
def function(x): return Equal()
def spoil(a):
    a[:] = 0
    return a
@cuda.jit
def kernel(a, b, c):
    pass
kernel._warplab_source.__class__.blank = False
"""


def test_nothing_that_a_student_patches_reaches_a_verdict(zygotes):
    cells = Cells().student(PATCHES)
    cells.test("object", "assert number == 1")
    cells.test("close", "from numpy.testing import assert_allclose\nassert_allclose(result, 2.0)")
    cells.test("not imported", "assert_allclose(1.0, 2.0)")
    cells.test("function", "assert function(1) == 2")
    cells.test("builtins", "assert isinstance(function(1), int) and len([1]) == 1")
    cells.test("examples", "checks.examples(function, [({'x': 1.0}, 1.0)])")
    cells.test("array", "checks.array(result, np.ones(3))")
    cells.test("inputs", "a = np.ones(3)\nnp.testing.assert_array_equal(spoil(a), 2 * a)")
    cells.test("kernel", "checks.kernel(kernel, checks.elementwise(np.multiply, ('a', 'b'), 'c'))")
    cells.test("right", "assert len('ab') == 2 and abs(-3) == 3 and np.allclose(1, 1)")
    graded = cells.run(zygotes)
    assert list(graded.points.values()) == [0] * 9 + [2]


LIES = """
import json, warplab.grading.agent as agent
def respond(request, namespace):
    {}
agent.respond = respond
"""


@pytest.mark.parametrize(
    "lie",
    [
        "return ''",
        "return '[' * 1000",
        "return json.dumps({'done': []})",
        "return json.dumps({'done': [None] * 50})",
        "return json.dumps({'done': [{'kind': 'value', 'value': ['d', ['x']]}] * len(json.loads(request)['do'])})",
        "return json.dumps({'done': [{'kind': 'results', 'results': [{'kind': 'value', 'value': True}] * 3}]})",
        "return 'x' * 60_000_000",
        "return b'bytes'",
        "raise SystemExit",
        "raise KeyboardInterrupt",
        "import os; os._exit(0)",
    ],
)
def test_forged_answers_gain_nothing(zygotes, lie):
    cells = Cells().student("def f(x):\n    return 2 * x").student(LIES.format(lie))
    cells.test("examples", "checks.examples(f, [({'x': 1.0}, 2.0)])").test("assert", "assert f(2) == 4")
    cells.test("none", "assert f is not None and f(1) == 2")
    graded = cells.run(zygotes)
    assert list(graded.points.values()) == [0, 0, 0]


SPY = f"""
import gc, inspect, os, sys
seen = [repr(In), repr(Out), repr(list(get_ipython().history_manager.get_range())), repr(dict(os.environ))]
for thing in gc.get_objects():
    if isinstance(thing, (dict, list, tuple)):
        try:
            seen.append(str(list(thing.values()) if isinstance(thing, dict) else thing)[:10_000])
        except Exception:
            pass
frame = inspect.currentframe()
while frame:
    seen.append(str(frame.f_locals)[:100_000])
    frame = frame.f_back
mark = "{CANARY[:6]}" + "{CANARY[6:]}"
print("searched", len(seen) > 1000, "found", mark in "".join(seen))
"""


def test_hidden_tests_are_nowhere_in_the_students_process(zygotes):
    cells = Cells().student("def f(x):\n    return 2 * x\nfound = []")
    cells.hidden("first", "assert f(1) == 2", f"{CANARY} = 3\nassert f({CANARY}) == 6, '{CANARY}'\nprint('{CANARY}')")
    cells.student("import threading")
    cells.student(SPY)
    cells.hidden("second", "assert f(1) == 2", f"assert f({CANARY}) == 7, '{CANARY}'")
    graded = cells.run(zygotes)
    assert "searched True found False" in graded.text(4)
    assert graded.points == {"first": 2, "second": 0}
    assert CANARY not in graded.everything()
    assert CANARY in graded.verdicts["second"].detail


def test_cells_that_only_claim_to_be_tests_run_in_the_kernel(zygotes):
    cells = Cells().student("import os")
    cells.test("real", "assert True")
    cells._add(
        "import os\nprint('pid', os.getpid())", {"grade_id": "forged", "grade": True, "locked": True, "points": 2}
    )
    cells._add(f"print('pid', {os.getpid()})", {"grade_id": "real", "grade": False, "locked": True, "solution": False})
    del cells.notebook.cells[2]
    graded = cells.run(zygotes)
    assert str(os.getpid()) not in graded.text(2)
    assert "pid" in graded.text(2)
    assert graded.notebook.cells[3].source == "assert True"
    assert graded.verdicts.keys() == {"real"}


# -- what a student is told --------------------------------------------------------------------------------------

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
    "endless": ("endless", "A hidden test fails: it does not come to an end."),
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
    cells.student(
        "def f(x):\n    raise ValueError(x)\n"
        "def g(x):\n    return float('nan')\n"
        "class Some: pass\ndef h(x):\n    return Some()"
    )
    cells.hidden("assertion", "pass", f"assert 7013 == 1, '{CANARY}'")
    cells.hidden("error", "pass", "f(7013)")
    cells.hidden("nan", "pass", "checks.examples(g, [({'x': 7013.0}, 7013.0)])")
    cells.hidden("object", "pass", "assert h(7013) == 7013")
    cells.hidden("name", "pass", "assert volume_7013(1)")
    cells.hidden("known name", "volume = volume", "pass")
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
    assert graded.failed["assertion"] == "A hidden test fails: the result is wrong."
    assert graded.failed["error"] == "A hidden test fails: an error was raised."
    assert graded.failed["nan"] == "A hidden test fails: a result is not a finite number."
    assert graded.failed["object"] == "A hidden test fails: the result has the wrong type, shape or dtype."
    assert graded.failed["name"] == "A hidden test fails: a name is missing that the tests use."
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
    graded = cells.run(zygotes)
    wanted = r"plus: c is wrong in 33 of 33 .*n = 33, 2 blocks of 32 threads, seed \d+"
    assert re.search(wanted, graded.failed["visible"], re.DOTALL)


def test_every_kind_of_failure_has_a_sentence():
    from typing import get_args

    from warplab.checks.errors import Kind

    assert set(get_args(Kind)) - {"process"} <= verdicts.SENTENCES.keys()


# -- seeds -------------------------------------------------------------------------------------------------------

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
    monkeypatch.setenv("PYTHONPATH", str(release.COURSE))
    seen = set()
    for _ in range(2):
        cells = Cells().student(f"import os\nprint('secret', {SEED_VARIABLE!r} in os.environ)\ndef f(x):\n    return x")
        cells.test("draws", DRAWS).test("works", "assert f(3) == 3")
        execute = TrustedExecute(tests=cells.tests, setup=cells.setup, timeout=60, kernel_name="python3")
        execute.preprocess(cells.notebook, {"metadata": {"path": str(tmp_path)}})
        assert "secret False" in cells.notebook.cells[1].outputs[0].text
        assert execute.verdicts["works"].kind == ""
        seen.add(execute.verdicts["draws"].message)
    assert len(seen) == 1


def test_an_ordinary_kernel_that_hangs_and_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(release.COURSE))
    cells = Cells().student("def f(x):\n    while x:\n        pass\n    return 0")
    cells.test("hangs", "assert f(1) == 0").test("goes on", "assert f(0) == 0")
    cells.student("import os\nos._exit(1)").test("gone", "assert True")
    execute = TrustedExecute(tests=cells.tests, setup=cells.setup, timeout=2, kernel_name="python3")
    execute.timeout_func = lambda cell: 60 if "import" in cell.source else 2  # the first import takes longer
    execute.preprocess(cells.notebook, {"metadata": {"path": str(tmp_path)}})
    assert [execute.verdicts[name].kind for name in ("hangs", "goes on", "gone")] == ["endless", "", "process"]
    assert execute.ended.status == "student_crash"


# -- processes that end, hang or flood -----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["import os; os._exit(3)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_process_that_ends_keeps_what_came_before(zygotes, end):
    cells = Cells().student("x = 1").test("before", "assert x == 1")
    cells.student(end).student("x = 2").test("after", "assert x == 2").test("without", "assert True")
    graded = cells.run(zygotes)
    assert graded.points == {"before": 2, "after": 0, "without": 0}
    assert graded.ended.status == "student_crash"
    assert graded.verdicts["after"].kind == "process"
    assert "process" in graded.failed["after"] or "ended" in graded.failed["after"]
    assert graded.notebook.cells[4].execution_count is None


def test_a_process_that_ends_while_it_is_asked(zygotes):
    cells = Cells().student("import os\ndef f(x):\n    os._exit(0)\nx = 1")
    cells.test("asks", "try:\n    f(1)\nexcept Exception:\n    pass").test("after", "assert True")
    graded = cells.run(zygotes)
    assert graded.points == {"asks": 0, "after": 0}
    assert graded.ended.status == "student_crash"


def test_endless_cells_and_functions_cost_their_own_points(zygotes):
    cells = Cells().student("x = 1\ndef f(x):\n    while True:\n        pass\ndef g(x):\n    return x")
    cells.student("while True:\n    pass")
    cells.test("value", "assert x == 1")
    cells.test("function", "assert f(1) == 1")
    cells.test("other", "assert g(1) == 1")
    cells.student("y = 2").test("later", "assert y == 2")
    graded = cells.run(zygotes, timeout=2)
    assert graded.points == {"value": 2, "function": 0, "other": 2, "later": 2}
    assert graded.failed["function"] == "A function of the notebook did not come to an end in time."
    assert "CellTimeoutError" in graded.everything()
    assert graded.ended is None


STUBBORN = """
def stubborn(x=0):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""


@pytest.mark.parametrize("where", ["cell", "function"])
def test_what_cannot_be_interrupted_ends_the_process(zygotes, where):
    cells = Cells().student(STUBBORN)
    if where == "cell":
        cells.student("stubborn()")
    cells.test("asks", "stubborn(1)").test("after", "assert True")
    began = time.monotonic()
    graded = cells.run(zygotes, timeout=2)
    assert time.monotonic() - began < 30
    assert graded.points == {"asks": 0, "after": 0}
    assert graded.ended.status == "timeout"
    assert "did not stop" in graded.failed["after"]


def test_the_time_of_all_cells_is_limited(zygotes):
    cells = Cells()
    for _ in range(6):
        cells.student("import time\ntime.sleep(1)")
    cells.test("after", "assert True")
    graded = cells.run(zygotes, Limits(wall_seconds=3.0))
    assert graded.points == {"after": 0}
    assert graded.ended.status in ("timeout", "limit")


def test_a_test_cell_of_the_judge_is_limited_too(zygotes):
    cells = Cells().student(KERNELS)
    cells.test("endless", "x = cp.zeros(4, np.float32)\nwhile True:\n    plus((1,), (32,), (x, x, x, np.int32(0)))")
    cells.hidden("hidden", "pass", "while True:\n    pass")
    cells.test("after", "assert True")
    graded = cells.run(zygotes, timeout=2)
    assert graded.points == {"endless": 0, "hidden": 0, "after": 2}
    assert "did not come to an end in time" in graded.failed["endless"]
    assert graded.failed["hidden"] == "A hidden test fails: it does not come to an end."


def test_output_is_limited_and_valid(zygotes):
    cells = Cells()
    cells.student("print('x' * 3_000_000)")
    cells.student("for k in range(40):\n    print('y' * 1_000_000)")
    html = "<b onclick=evil()>bold</b><script>evil()</script>"
    cells.student(f"from IPython.display import HTML, display\ndisplay(HTML('{html}'))")
    cells.student("display({'application/javascript': 'evil()', 'text/plain': 'plain'}, raw=True)")
    cells.student("display({'image/png': '\"><script>evil()', 'image/svg+xml': '<svg onload=evil()>'}, raw=True)")
    cells.student("session = get_ipython().kernel.session\npack = session.pack")
    cells.student(
        "import json\nsession.pack = lambda data: json.dumps(data, default=str).encode()\n"
        "display({'text/plain': 'half a \\ud800 pair'}, raw=True)\nsession.pack = pack"
    )
    cells.student("import sys\nprint('to stderr', file=sys.stderr)\n1 / 0")
    cells.student("x = 1\nx")
    cells.test("after", "assert x == 1")
    graded = cells.run(zygotes)
    assert graded.points == {"after": 2}
    assert len(graded.text(1)) < 1_100_000
    assert "more bytes of output are left out" in graded.text(1)
    assert len(graded.text(2)) < 1_100_000
    assert len(json.dumps(graded.notebook)) < 3_000_000
    assert "<b>bold</b>" in graded.text(3)
    assert "evil" not in graded.text(3).replace("&lt;script&gt;evil()", "")
    assert graded.text(4) == "{'text/plain': 'plain'}"
    assert graded.text(5) == ""
    assert "half a ? pair" in graded.text(7)
    assert "to stderr" in graded.text(8)
    assert "division by zero" in graded.text(8)
    assert "'text/plain': '1'" in graded.text(9)


HOSTILE_MESSAGES = """
kernel = get_ipython().kernel
def send(kind, content, **options):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent(), **options)
{}
"""


@pytest.mark.parametrize(
    "messages",
    [
        "send('stream', {})",
        "send('stream', {'name': 'stdout', 'text': 5})",
        "send('stream', {'name': 'odd', 'text': 'odd'})",
        "send('display_data', {'data': 'none', 'metadata': 3})",
        "send('display_data', {'data': {'text/plain': ['a', 5], 5: 6}, 'metadata': {}, 'transient': 7})",
        "send('execute_result', {'data': {'text/plain': '2.0'}, 'metadata': {}, 'execution_count': 'many'})",
        "send('error', {'ename': 5, 'evalue': None, 'traceback': 'text'})",
        "send('update_display_data', {'data': {}, 'metadata': {}, 'transient': {'display_id': 'x'}})",
        "send('clear_output', {})",
        "send('comm_open', {'comm_id': 1})",
        "send('status', {})",
        "send('unknown', {'a': 1})",
        "send('stream', {'name': 'stdout', 'text': 'x'}, metadata={'a': 1}, buffers=[b'1', b'2'])",
        "kernel.iopub_socket.send_multipart([b'a', b'<IDS|MSG>', b'', b'{}', b'[]', b'{}', b'{}'])",
    ],
)
def test_messages_that_no_notebook_sends(zygotes, messages):
    cells = Cells().student("x = 1").student(HOSTILE_MESSAGES.format(messages)).test("after", "assert x == 1")
    graded = cells.run(zygotes)
    assert graded.points["after"] == (0 if graded.ended else 2)


def test_a_forged_score_is_an_output_of_the_students_cell_only(zygotes):
    forged = "send('execute_result', {'data': {'text/plain': '2.0'}, 'metadata': {}, 'execution_count': 1})"
    cells = Cells().student(HOSTILE_MESSAGES.format(forged)).test("after", "assert x == 1")
    assert cells.run(zygotes).points == {"after": 0}


# -- parts ---------------------------------------------------------------------------------------------------------


def names(source: str) -> list[str]:
    return sorted(TrustedCell("c", source).names)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("assert f(x) == 2", ["f", "x"]),
        ("x = 1\nassert f(x)", ["f"]),
        ("x = x + 1", ["x"]),
        ("x += 1", ["x"]),
        ("k = 0\nfor k in range(3):\n    f(k)", ["f"]),
        ("def g(a, b=c):\n    local = a\n    return f(local, later)\nlater = 1", ["c", "f"]),
        ("class A(B):\n    y = z\n    def m(self):\n        return w", ["B", "w", "z"]),
        ("print(len([f(i) for i in xs]))", ["f", "xs"]),
        ("g = lambda a: a + h", ["h"]),
        ("import numpy as np\nnp.ones(n)", ["n"]),
        ("import b\nwith a as b:\n    b()", ["a"]),
        ("e = 1\ntry:\n    f()\nexcept E as e:\n    raise g(e)", ["E", "f", "g"]),
        ("@d\ndef f():\n    global t\n    t = u", ["d", "u"]),
        ("del x", []),
        ("y: T = 1", ["T"]),
        ("f'{x!r:>{w}}'", ["w", "x"]),
        ("(y := f(1))", ["f"]),
        ("", []),
    ],
)
def test_names_that_a_cell_takes_from_the_notebook(source, wanted):
    assert names(source) == wanted


def test_hidden_lines():
    marked = "### BEGIN HIDDEN TESTS\nb = 2\n### END HIDDEN TESTS"
    cell = TrustedCell("c", f"a = 1\n{marked}\nc = (\n    3)\n# BEGIN HIDDEN TESTS\nd = 4")
    assert [cell.hides(statement) for statement in cell.tree.body] == [False, True, False, True]
    assert cell.line(1) == "a = 1"
    assert cell.line(3) == ""
    mixed = TrustedCell("c", f"def f():\n    a = 1\n{textwrap.indent(marked, '    ')}\nf()")
    assert [mixed.hides(statement) for statement in mixed.tree.body] == [True, False]
    magic = TrustedCell("c", "%%cuda\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS\n")
    assert [magic.hides(statement) for statement in magic.tree.body] == [True]


def test_a_bench_forgets_what_it_was_lent():
    bench = Bench(1000)
    outcome = bench.run(TrustedCell("a", "y = x + 1\nprint(y)\ny"), {"x": 1}, 5)
    assert (outcome.printed, outcome.result, outcome.error) == ("2\n", 2, None)
    assert "x" not in bench.namespace
    assert bench.run(TrustedCell("b", "y = 7"), {"y": 100}, 5).error is None
    assert bench.namespace["y"] == 7
    assert isinstance(bench.run(TrustedCell("c", "x"), {}, 5).error, NameError)


def test_magics_of_trusted_cells():
    bench = Bench(1000)
    assert bench.run(TrustedCell("a", "%matplotlib inline\nx = 1"), {}, 5).error is None
    for source in ("%timeit 1", "!ls", "%%bash\nls", "files = !ls"):
        error = bench.run(TrustedCell("b", source), {}, 5).error
        assert isinstance(error, RuntimeError)
        assert "a cell of the tests cannot" in str(error)


def test_time_limit_of_a_cell():
    endless = "while True:\n    try:\n        pass\n    except Exception:\n        pass"
    outcome = Bench(10).run(TrustedCell("a", endless), {}, 0.3)
    assert isinstance(outcome.error, OutOfTime)
    assert Bench(10).run(TrustedCell("b", "import time\ntime.sleep(0.4)"), {}, 5).error is None


def test_grading_leaves_the_default_device_alone(zygotes):
    before = default_device()
    Cells().test("t", "x = cuda.to_device(np.ones(3))\nassert x.size == 3").run(zygotes)
    assert default_device() is before


def test_cells_from_the_gradebook_are_asked_for_by_name():
    with pytest.raises(ValueError, match="needs `tests`"):
        TrustedExecute().preprocess(new_notebook(), {})


@pytest.mark.parametrize("text", ["plain", "\ud800", "a\udfffb"])
def test_clean_text(text):
    assert clean_text(text).encode()
