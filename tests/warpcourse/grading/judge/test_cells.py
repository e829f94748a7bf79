"""Cells that the judge runs: their names, their hidden lines, their limits."""

from __future__ import annotations

import resource
import signal
import textwrap

import pytest
from nbformat.v4 import new_notebook

from tests.support.grading_harness import Cells
from tests.support.waiting import HANG
from warpcourse.grading.exchange.artefacts import clean_text
from warpcourse.grading.judge import verdicts
from warpcourse.grading.judge.cells import CellRunner, OutOfTime, TrustedCell
from warpcourse.grading.judge.execute import TrustedExecute
from warplab.simulator import default_device

# -- parts -----------------------------------------------------------------------------------------------------------


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
    bench = CellRunner(1000, 1 << 30)
    outcome = bench.run(TrustedCell("a", "y = x + 1\nprint(y)\ny"), {"x": 1}, HANG)
    assert (outcome.printed, outcome.result, outcome.error) == ("2\n", 2, None)
    assert "x" not in bench.namespace
    assert bench.run(TrustedCell("b", "y = 7"), {"y": 100}, HANG).error is None
    assert bench.namespace["y"] == 7
    assert isinstance(bench.run(TrustedCell("c", "x"), {}, HANG).error, NameError)


def test_magics_of_trusted_cells():
    bench = CellRunner(1000, 1 << 30)
    assert bench.run(TrustedCell("a", "%matplotlib inline\nx = 1"), {}, HANG).error is None
    for source in ("%timeit 1", "!ls", "%%bash\nls", "files = !ls"):
        error = bench.run(TrustedCell("b", source), {}, HANG).error
        assert isinstance(error, RuntimeError)
        assert "a cell of the tests cannot" in str(error)


def test_time_limit_of_a_cell():
    endless = "while True:\n    try:\n        pass\n    except Exception:\n        pass"
    outcome = CellRunner(10, 1 << 30).run(TrustedCell("a", endless), {}, 0.3)
    assert isinstance(outcome.error, OutOfTime)
    assert CellRunner(10, 1 << 30).run(TrustedCell("b", "import time\ntime.sleep(0.4)"), {}, HANG).error is None


def test_a_cell_has_its_limit_in_processor_time_and_a_wider_one_of_wall_clock():
    busy = "import time\nend = time.process_time() + 60\nwhile time.process_time() < end: pass"
    outcome = CellRunner(10, 1 << 30).run(TrustedCell("a", busy), {}, HANG, 0.2)
    assert str(outcome.error) == "more than 0.2 s of processor time"
    waits = "import time\ntime.sleep(60)"  # as where others have the processors
    assert str(CellRunner(10, 1 << 30).run(TrustedCell("a", waits), {}, 0.2, HANG).error) == "more than 0.2 s"
    before = signal.getsignal(signal.SIGPROF)
    assert CellRunner(10, 1 << 30).run(TrustedCell("b", "1"), {}, HANG, 0.2).result == 1
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


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


def test_what_a_cell_makes_of_an_answer_is_limited():
    before = resource.getrlimit(resource.RLIMIT_AS)
    bench = CellRunner(1000, 1 << 28)
    cell = TrustedCell("a", "small = answer * 10\nassert answer * 10_000_000 == 0")
    outcome = bench.run(cell, {"answer": "x" * 100}, HANG)
    assert isinstance(outcome.error, MemoryError)
    assert bench.namespace["small"] == "x" * 1000
    assert verdicts.verdict(outcome, cell.source).kind == "memory"
    assert resource.getrlimit(resource.RLIMIT_AS) == before
