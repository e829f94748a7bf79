"""What a student may patch, forge or read, and processes that end, hang or flood: none gains a point."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.support.grading_harness import CANARY, WIDE, Cells
from warpcourse.grading.judge import outputs
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager
from warpcourse.grading.sandbox.limits import SubmissionLimits

# -- what a student may patch ----------------------------------------------------------------------------------------


PATCHES = """
import ast, builtins, sys, unittest.mock, warnings, warplab.checks.outputs
import warplab.checks.kernels, warplab.checks.functions, warpcourse.grading.exchange.artefacts, warplab.simulator
np.testing.assert_allclose = np.allclose = np.array_equal = lambda *a, **k: True
np.isclose = lambda a, b, **k: np.ones(np.shape(a), bool)
builtins.abs = builtins.round = builtins.sum = lambda *a: 1
len = isinstance = all = lambda *a: 1
checks.kernel = checks.examples = checks.function = checks.array = lambda *a, **k: None
warplab.checks.outputs.check = warplab.checks.outputs._check_output = lambda *a: None
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
import json, warpcourse.grading.student.agent as agent
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
searched, found = len(seen) > 1000, mark in "".join(seen)
"""


def test_hidden_tests_are_nowhere_in_the_students_process(zygotes):
    cells = Cells().student("def f(x):\n    return 2 * x\nfound = []")
    cells.hidden("first", "assert f(1) == 2", f"{CANARY} = 3\nassert f({CANARY}) == 6, '{CANARY}'\nprint('{CANARY}')")
    cells.student("import threading")
    cells.student(SPY)
    cells.test("spied", "assert searched and not found")
    cells.hidden("second", "assert f(1) == 2", f"assert f({CANARY}) == 7, '{CANARY}'")
    graded = cells.run(zygotes)
    assert graded.points == {"first": 2, "spied": 2, "second": 0}
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


# -- processes that end, hang or flood -------------------------------------------------------------------------------


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


ENDLESS = "while True:\n        __import__('time').sleep(0.01)"


def test_endless_cells_and_functions_cost_their_own_points(zygotes):
    cells = Cells().student(f"x = 1\ndef f(x):\n    {ENDLESS}\ndef g(x):\n    return x")
    cells.student("while True:  # endless\n    pass")
    cells.test("value", "assert x == 1")
    cells.test("function", "assert f(1) == 1  # endless")
    cells.test("other", "assert g(1) == 1")
    cells.student("y = 2").test("later", "assert y == 2")
    graded = cells.run(zygotes, seconds=2)
    assert graded.points == {"value": 2, "function": 0, "other": 2, "later": 2}
    assert graded.failed["function"] == "f did not end in time: does a loop in it never end?"
    assert "CellTimeoutError" in graded.everything()
    assert graded.ended is None


STUBBORN = """
import time
def stubborn(x=0):
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            pass
"""


@pytest.mark.parametrize("where", ["cell", "function"])
def test_what_cannot_be_interrupted_ends_the_process(zygotes, where):
    cells = Cells().student(STUBBORN)
    if where == "cell":
        cells.student("stubborn()  # endless")
    cells.test("asks", "stubborn(1)  # endless").test("after", "assert True")
    graded = cells.run(zygotes, seconds=2)
    assert graded.points == {"asks": 0, "after": 0}
    assert graded.ended.status == "timeout"
    assert "did not stop" in graded.failed["after"]


def test_the_time_of_all_cells_is_limited(zygotes):
    cells = Cells()
    for _ in range(6):
        cells.student("import time\ntime.sleep(2)")
    cells.test("after", "assert True")
    graded = cells.run(zygotes, SubmissionLimits(wall_seconds=8.0))
    assert graded.points == {"after": 0}
    assert graded.ended.status in ("timeout", "limit")


def test_cells_and_functions_that_wait_for_a_processor_are_not_out_of_time(zygotes, monkeypatch):
    began = time.monotonic()
    monkeypatch.setattr(SandboxedKernelManager, "waited", lambda self: time.monotonic() - began)
    cells = Cells().student("import time\ndef late():\n    time.sleep(2.5)\nlate(); ready = True")
    cells.test("asks", "assert ready\nlate()").test("after", "assert True")
    graded = cells.run(zygotes, WIDE, seconds=1)
    assert graded.points == {"asks": 2, "after": 2}


def test_a_test_cell_of_the_judge_is_limited_too(zygotes):
    cells = Cells().student('%%cuda\nextern "C" __global__ void put(float* x) { x[0] = 1; }')
    cells.test("endless", "x = cp.zeros(4, np.float32)\nwhile True:  # endless\n    put((1,), (1,), (x,))")
    cells.hidden("hidden", "import time", "while True:  # endless\n    time.sleep(0.01)")
    cells.test("after", "assert True")
    graded = cells.run(zygotes, seconds=1)
    assert graded.points == {"endless": 0, "hidden": 0, "after": 2}
    assert "did not end in time" in graded.failed["endless"]
    assert graded.failed["hidden"] == "A hidden test fails: it does not end."


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


def test_inputs_of_hidden_tests_stay_where_they_are(zygotes):
    """A function must be told what it is called with; from then on what its process says is shown to nobody."""
    cells = Cells().student("heard = []\ndef f(x):\n    heard.append(x)\n    return x\ndef g(x):\n    return heard")
    cells.student("print('shown')")
    cells.hidden("first", "assert f(1) == 1", "assert f(7013) == 7013")
    cells.student("print(heard)").student("str(heard)").student("raise KeyError(heard)")
    cells.student("raise type(f'E{heard[-1]}', (Exception,), {})(heard)").student("heard")
    cells.student("g.__name__ = f.__name__ = str(heard)")
    cells.hidden("second", "assert g(3) == 3, g(4)", "pass")
    cells.test("third", "checks.examples(g, [({'x': 3.0}, 5.0)])")
    cells.test("fourth", "print(g(1))\nimport json\njson.loads(str(g(1)))")
    graded = cells.run(zygotes)
    assert "shown" in graded.text(2)
    assert "7013" not in graded.everything()
    assert graded.points == {"first": 2, "second": 0, "third": 0, "fourth": 2}
    assert graded.text(4).startswith("[Not shown: this comes after hidden tests")
    assert [graded.text(number) for number in (5, 6, 7, 8, 9)] == [graded.text(4)] * 5
    assert "A test fails: the result is wrong.\n  line 1: assert g(3) == 3, g(4)" in graded.failed["second"]
    assert "input g(x=3.0)" in graded.failed["third"]
    assert "7013" in graded.verdicts["second"].detail


KERNEL = """@cuda.jit
def add(x, y):
    i = cuda.grid(1)
    if i < y.size and {}:
        y[i] = x[i] + 1
"""
ADD = 'checks.kernel(add, checks.elementwise(lambda x: x + 1, ("x",), "y"), sizes=({},), launches=[checks.cover(32)])'
SMALL, LARGE = KERNEL.format("y.size < 50"), KERNEL.format("y.size > 50")


def test_both_tests_of_an_answer_judge_the_same_kernel(zygotes):
    graded = (
        Cells()
        .answer("add", SMALL, "def add(x, y):\n    pass")
        .test("small", ADD.format(40))
        .student(LARGE)
        .test("large", ADD.format(60))
        .test("small again", ADD.format(30))
        .run(zygotes)
    )
    assert graded.failed.keys() == {"large"}
    assert graded.execute.notes == [
        "add was defined again after a test had taken it; all tests of one answer judge the same kernel."
    ]


def test_what_is_defined_again_has_no_other_types(zygotes):
    """The process could compile only what the name stands for now."""
    doubles = ADD.replace('"y")', '"y", dtype=np.float64)')
    graded = (
        Cells().student(SMALL).test("one", ADD.format(40)).student(LARGE).test("two", doubles.format(60)).run(zygotes)
    )
    assert "was defined again after a test had taken it" in graded.failed["two"]


def test_an_experiment_without_another_definition_is_none(zygotes):
    experiment = "add[1, 32](np.zeros(4, np.float32), np.zeros(4, np.float32))\nother = add"
    whole = KERNEL.format("True")
    graded = (
        Cells().student(whole).test("one", ADD.format(40)).student(experiment).test("two", ADD.format(60)).run(zygotes)
    )
    assert graded.failed == {}
    assert graded.execute.notes == []


def test_another_answer_cell_defines_its_names_again(zygotes):
    given = "def add(x, y):\n    pass"
    cells = Cells().answer("first", SMALL, given).test("small", ADD.format(40))
    graded = cells.answer("second", LARGE, given).test("large", ADD.format(60)).run(zygotes)
    assert graded.failed == {}
    assert graded.execute.notes == []


def test_after_hidden_inputs_every_cell_looks_the_same(zygotes):
    """Whatever it does: print, fail in some way, end the process, or run after that."""
    double = "seen = []\n\ndef double(x):\n    seen.append(x)\n    return 2 * x"
    cells = (
        Cells()
        .student("print('before')")
        .student(double)
        .hidden("double", "assert double(1) == 2", "assert double(5) == 10")
    )
    later = ("1", "print(seen)", "raise KeyError(seen)", "x = 1", "import os; os._exit(seen[-1])", "print(1)", "2")
    for text in later:
        cells.student(text)
    graded = cells.run(zygotes)
    assert graded.ended.status == "student_crash"
    assert graded.text(1) == "before\n"
    shown = graded.notebook.cells[-len(later) :]
    assert {json.dumps(cell.outputs) for cell in shown} == {json.dumps(outputs.withheld())}
    assert [cell.execution_count for cell in shown] == list(range(5, 5 + len(later)))
