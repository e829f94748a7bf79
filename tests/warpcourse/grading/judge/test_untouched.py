"""`checks.untouched`: a function that works in its caller's arrays is told so, here and in another process."""

import numpy as np
import pytest

from tests.support.grading_harness import Cells
from warplab import checks

TEST = """
given = [np.arange(3.0), np.ones(2)]
{call}
checks.untouched(work, given, [np.arange(3.0), np.ones(2)], where="two arrays")
"""


def test_arrays_as_they_were_pass_and_others_are_told():
    before = [np.arange(3.0), np.ones(2)]
    checks.untouched(sum, [array.copy() for array in before], before)
    with pytest.raises(checks.CheckFailed, match=r"sum changes the arrays of the caller\.[\s\S]*three calls") as failed:
        checks.untouched(sum, [before[0] + 1, before[1]], before, where="three calls")
    assert failed.value.kind == "input modified"


@pytest.mark.parametrize(
    ("body", "call", "lost"),
    [
        ("arrays[0][1] = 7", "work(given)", True),
        ("arrays[0][1] = 7", "work(arrays=given)", True),
        ("arrays['all'][1].sort()\n    arrays['all'][1][:] = 0", "work({'all': tuple(given)})", True),
        ("arrays.clear()", "work(list(given))", False),  # the list is its own, and the arrays are as they were
        ("arrays[0] = arrays[0] + 1", "work(list(given))", False),
        ("arrays[0][1] = 7", "work(given)\nwork([np.full(2, 7.0)])", False),  # the latest call
    ],
)
def test_what_a_function_of_a_notebook_did_to_its_copies_counts(body, call, lost, zygotes):
    cells = Cells()
    cells.answer("work", f"def work(arrays):\n    {body}", "def work(arrays):\n    pass")
    cells.test("untouched", TEST.format(call=call))
    failed = cells.run(zygotes).failed
    assert ("changes the arrays of the caller" in failed.get("untouched", "")) == lost, failed
    assert bool(failed) == lost
