"""`own_work` in this lab's exercise: what its cells import from the lab before and after it is called."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def cell():
    """A function that runs a cell and returns "" or "ErrorClass: message"."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    shell.reset(new_session=False)

    def run(source):
        result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return "" if error is None else f"{type(error).__name__}: {error}"

    yield run
    shell.reset(new_session=False)


def test_what_is_given_may_be_imported_again(cell):
    setup = "import sys\nfrom warplab import checks\nchecks.own_work('kernels.collectives.schedule')"
    assert cell(f"from kernels.collectives.schedule import Send\n{setup}") == ""
    assert cell(f"from kernels.collectives.schedule import Send\n{setup}\nSend(0, 0, 1, 0)") == ""


@pytest.mark.parametrize(
    "early",
    ["from kernels.collectives.ring import ring_broadcast as mine", "from kernels.collectives import ring as mine"],
)
def test_what_was_imported_before_is_removed(cell, early):
    assert cell(early) == ""
    failed = cell("from warplab import checks\nchecks.own_work('kernels.collectives.schedule')")
    assert "kernels.collectives.ring is the course's" in failed
    assert "mine, which is removed" in failed
    assert cell("mine") == "NameError: name 'mine' is not defined"


@pytest.mark.parametrize(
    "line",
    ["from kernels.collectives.ring import later", 'later = importlib.import_module("kernels.collectives.ring")'],
)
def test_a_function_from_before_that_would_import_is_removed(cell, line):
    assert cell(f"import importlib\ndef mine():\n    {line}\n    return later") == ""
    failed = cell("from warplab import checks\nchecks.own_work('kernels.collectives.schedule')")
    assert "kernels.collectives.ring is the course's" in failed
    assert cell("mine") == "NameError: name 'mine' is not defined"


def test_another_notebook_may_import_what_it_likes(cell):
    assert cell("from kernels.collectives.ring import ring_broadcast") == ""
