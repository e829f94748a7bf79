"""What a notebook says of kernels that are not there, or are launched with the other language's syntax."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from warplab import cp, cuda
from warplab.dropin import missing_names
from warplab.dropin.missing_names import explanation

COURSE = Path(__file__).parents[3]


def test_a_kernel_of_a_cell_that_did_not_compile(monkeypatch):
    monkeypatch.setattr(missing_names, "not_compiled", {"scale"})
    assert "its cell" not in explanation("scale", "scale((1,), (32,), (x,))", [])
    assert "did" not in explanation("other", "y = other + 1", [])
    assert "scale was not compiled" in explanation("scale", "scale((1,), (32,), (x,))", [])


def test_the_error_says_in_a_few_lines_what_to_do():
    """And no more: of Python's traceback only the learner's own line, and the advice at its end."""
    import nbformat
    from nbclient import NotebookClient

    cells = (
        "from warplab import attempt, cp, cuda",
        "%%cuda\n__global__ void scale(float* x) { x[0] = y; }",
        "def run(kernel):\n    kernel((1,), (32,), ())\n\nwith attempt():\n    run(\n        scale)",
        "print(other + 1)",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, allow_errors=True, timeout=600, resources={"metadata": {"path": str(COURSE)}})
    client.execute(env={**os.environ, "WARPLAB_BACKEND": "simulator"})
    missing, ordinary = (
        "\n".join(line for o in cell.outputs if o.output_type == "error" for line in o.traceback)
        for cell in notebook.cells[2:]
    )
    lines = missing.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("cell [3], line ")
    assert lines[2] == "NameError: name 'scale' is not defined"
    assert lines[3].startswith("scale was not compiled: the cell that defines it ended with an error. Mend")
    assert "Traceback (most recent call last)" in ordinary
    assert not [o for cell in notebook.cells[2:] for o in cell.outputs if o.output_type == "stream"]


def test_a_renamed_kernel():
    said = explanation("multiply_cuda", "checks.kernel(multiply_cuda, product)", ["multiply", "multiply_cud"])
    assert "but a kernel multiply_cud. Has the cell that defines multiply_cuda been run" in said
    assert "If renamed: here it is called multiply_cuda" in said


def test_a_kernel_whose_cell_has_given_it_another_name_is_not_judged(monkeypatch):
    monkeypatch.setattr(missing_names, "_defined", {})
    monkeypatch.setattr(missing_names, "_renamed", {})
    monkeypatch.setattr(missing_names, "not_compiled", set())
    shell = InteractiveShell()
    missing_names.register(shell)
    for source, cell in (("def add(x): pass", "a"), ("def other(x): pass", "b"), ("def plus(x): pass", "a")):
        shell.run_cell(source, cell_id=cell)
    assert "add" not in shell.user_ns
    assert {"other", "plus"} <= shell.user_ns.keys()
    assert explanation("add", "add[1, 32](x)", []).startswith("The cell that defined add defines plus now.")
    for source, cell in (("def add(x): pass", "c"), ("def times(x): pass", "a"), ("def add(x): pass", "a")):
        shell.run_cell(source, cell_id=cell)
    shell.run_cell("def minus(x): pass", cell_id="a")
    assert "add" in shell.user_ns, "another cell defines it, too"


def test_a_cell_that_was_not_run():
    assert explanation("pack", "pack[1, 32](x)", ["meet"]).startswith("There is no pack yet. Run the cell")
    assert explanation("pack", "checks.examples(pack, [])", []).startswith("There is no pack yet.")


def test_ordinary_names_are_python_s_business():
    assert explanation("n", "print(n + 1)", ["multiply"]) == ""


def test_numba_s_kernel_called_like_a_kernel_of_cupy():
    @cuda.jit
    def scale(x, factor):
        x[0] *= factor

    for arguments in (((1,), (32,), (np.ones(1), 2.0)), (np.ones(1), 2.0)):
        with pytest.raises(ValueError, match=r"scale is a Numba kernel.*scale\[blocks, threads\]\(x, factor\)"):
            scale(*arguments)


def test_a_kernel_of_cuda_called_like_numba_s():
    kernel = cp.RawKernel('extern "C" __global__ void scale(float* x) { x[0] = 2; }', "scale")
    x = cp.zeros(1, dtype=np.float32)
    for launch in (
        lambda: kernel[1, 32](x),
        lambda: kernel((1,), (32,)),
        lambda: kernel((1,), (32,), x, 2),
    ):
        with pytest.raises(TypeError, match=r"scale is a kernel in CUDA C\+\+, .*scale\(\(blocks,\), \(threads,\), "):
            launch()
    kernel((1,), (1,), (x,))
    assert x.get()[0] == 2


@pytest.fixture
def shell(monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    monkeypatch.setattr(missing_names, "not_compiled", set())
    shell = InteractiveShell(config=config, colors="nocolor")
    missing_names.register(shell)
    missing_names.register(shell)  # as a second import does
    return shell


@pytest.mark.parametrize(
    "broken",
    [
        "def half(x)\n    return x / 2",
        "1 / 0\ndef half(x):\n    return x / 3",
        "// mine\n%%cuda\n__global__ void half(float* x) {}",
    ],
)
def test_a_cell_that_failed_leaves_no_older_version(shell, broken):
    shell.run_cell("def half(x):\n    return x / 2\n\ndef other(x):\n    return x")
    shell.run_cell(broken)
    assert "half" not in shell.user_ns
    assert "other" in shell.user_ns
    assert "half was not compiled: the cell" in explanation("half", "half(4)", [])
    shell.run_cell("def half(x):\n    return x / 2")
    assert shell.user_ns["half"](4) == 2
    assert missing_names.not_compiled == set()


def test_an_error_after_the_definition_takes_nothing_away(shell):
    shell.run_cell("def half(x):\n    return x / 3")
    shell.run_cell("def half(x):\n    return x / 2\n\n1 / 0")
    assert shell.user_ns["half"](4) == 2


@pytest.mark.parametrize("first", ["// mine\n%%cuda", "%cuda", "# mine\n%%cuda", ""])
def test_cuda_without_its_magic_is_named(shell, capsys, first):
    shell.run_cell(first + "\n__global__ void scale(float* x) { x[0] = 1; }")
    assert "%%cuda, with two per cent signs, must be the first line of the cell" in capsys.readouterr().out
