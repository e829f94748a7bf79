"""A notebook with `%%cuda` cells, mistakes and profiles, run in a Jupyter kernel: what the learner sees."""

import os
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from warplab import profile, simulate
from warplab.compile.errors import CompileError
from warplab.dropin import choice, magic

COURSE = Path(__file__).parents[3]

CELLS = {
    "import": "import numpy as np\nfrom warplab import cp, cuda, profile, simulate",
    "kernel": """%%cuda -DFACTOR=2
__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; int unused;
  if (i <= n) x[i] *= by * FACTOR;
}
extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }
template <typename T> __global__ void any(T* x) {}""",
    "launch": "x = cp.empty(10, cp.float32)\nfill((1,), (10,), (x,))\n"
    "scale((1,), (32,), (x, np.float32(2), np.int32(9)))\nprint(x.get().tolist(), 'FACTOR' in scale.code)",
    "overrun": "def call(n):\n    scale((1,), (32,), (x, np.float32(2), np.int32(n)))\n\ncall(10)",
    "verbose": "%xmode Verbose\n%tb",
    "plain": "%xmode Context",
    "compile error": "%%cuda\n\n__global__ void broken(float* x) {\n  x[0] = y;\n}",
    "no kernel": "%%cuda\n__device__ int f() { return 1; }",
    "jit": "@cuda.jit\ndef add(a, b):\n    i = cuda.grid(1)\n    b[i] += a[i]",
    "jit overrun": "a = np.ones(30, np.float32)\nadd[1, 32](a, a.copy())",
    "arguments": "add[1, 32](a)",
    "typing": "@cuda.jit\ndef wrong(a):\n    a[0] = undefined_name\n\nwrong[1, 1](a)",
    "profile": "with profile() as p:\n    add[1, 30](a, a.copy())\np",
    "lines": "print(sorted(p[0].lines)[:2], p[0].sources['cell [9]'].splitlines()[1])",
    "compiled once": "from warplab.compile.nvrtc import compile_cuda_program\n"
    "print(compile_cuda_program.cache_info().misses)",
    "simulate": "print(simulate(scale, 1, 32, (a, np.float32(1), np.int32(29))).kernel, a[0])",
}


@pytest.fixture(scope="module")
def outputs():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS.values()])
    client = NotebookClient(notebook, allow_errors=True, timeout=600, resources={"metadata": {"path": str(COURSE)}})
    client.execute(env={**os.environ, "WARPLAB_BACKEND": "simulator"})
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def stream(outputs, name="stdout"):
    return "".join(o.text for o in outputs if o.output_type == "stream" and o.name == name)


def error(outputs):
    (found,) = [o for o in outputs if o.output_type == "error"]
    return found.ename, "\n".join(found.traceback)


def test_each_cell_is_compiled_once(outputs):
    assert stream(outputs["compiled once"]) == "2\n"  # the cell of three kernels, and the one that is broken


def test_the_backend_is_announced_once(outputs):
    everything = "".join(stream(cell) for cell in outputs.values())
    assert stream(outputs["import"]) == "Warp Lab runs kernels on the simulator: WARPLAB_BACKEND=simulator.\n"
    assert everything.count("Warp Lab runs kernels") == 1


def test_kernels_of_a_cell_become_variables_and_warnings_are_shown(outputs):
    assert "cell [2], line 3: warning" in stream(outputs["kernel"], "stderr")
    assert stream(outputs["launch"]) == f"{[4.0] * 10} True\n"


def test_an_error_of_a_launch_is_short_and_points_at_the_cells(outputs):
    name, text = error(outputs["overrun"])
    assert name == "IllegalAddress"
    lines = text.splitlines()
    assert lines[:4] == [
        "cell [4], line 4:",
        "    call(10)",
        "cell [4], line 2:",
        "    scale((1,), (32,), (x, np.float32(2), np.int32(n)))",
    ]
    assert lines[4].startswith("IllegalAddress: illegal address")
    assert "at cell [2], line 4: if (i <= n) x[i] *= by * FACTOR;" in text
    assert "warplab/" not in text


def test_the_whole_traceback_is_one_magic_away(outputs):
    _, text = error(outputs["verbose"])
    assert "simulate.py" in text


def test_a_compile_error_points_at_the_cell_s_own_line(outputs):
    name, text = error(outputs["compile error"])
    assert name == "CompileError"
    assert text.splitlines()[0] == 'CompileError: cell [7], line 4: error: identifier "y" is undefined'
    assert "x[0] = y;" in text
    assert "run_cell_magic" not in text


def test_a_cell_without_a_kernel_says_so(outputs):
    assert "the cell has no kernel" in stream(outputs["no kernel"], "stderr")


def test_errors_of_numba_kernels_point_at_the_cell(outputs):
    name, text = error(outputs["jit overrun"])
    assert name == "IllegalAddress"
    assert "at cell [9], line 4: b[i] += a[i]" in text
    assert text.splitlines()[0] == "cell [10], line 2:"
    name, text = error(outputs["arguments"])
    assert text == (
        "cell [11], line 1:\n    add[1, 32](a)\nArgumentError: kernel add(a, b) takes 2 arguments, 1 was given"
    )
    name, text = error(outputs["typing"])
    assert name == "TypingError"
    assert "undefined_name" in text
    assert len(text.splitlines()) < 10


def test_a_profile_shows_as_a_table_with_the_cell_s_lines(outputs):
    (shown,) = [o for o in outputs["profile"] if o.output_type == "execute_result"]
    assert "<table" in shown.data["text/html"]
    assert "global load requests" in shown.data["text/plain"]
    assert stream(outputs["lines"]) == "[('cell [9]', 2), ('cell [9]', 3)] def add(a, b):\n"


def test_simulate_takes_a_kernel_of_a_cell(outputs):
    assert stream(outputs["simulate"]) == "scale 2.0\n"


def test_a_cell_that_does_not_compile_leaves_no_old_kernel_behind():
    from IPython.core.interactiveshell import InteractiveShell

    from warplab.dropin import magic

    shell = InteractiveShell.instance(colors="nocolor")
    good = "__global__ void stale(int* a) { a[0] = 1; }"
    magic.run(shell, "", good)
    assert "stale" in shell.user_ns
    with pytest.raises(CompileError):
        magic.run(shell, "", good.replace("= 1;", "= ;"))
    assert "stale" not in shell.user_ns


def test_what_the_gpu_cannot_compile_is_left_to_the_simulator(monkeypatch, capsys):
    def refuse(self, name):
        raise RuntimeError("ptxas: 'wgmma' needs .target sm_90a\nand more")

    names = {}
    shell = SimpleNamespace(user_ns=names, drop_by_id=lambda old: None, push=lambda new, interactive: names.update(new))
    monkeypatch.setattr(choice.load("cp").RawModule, "get_function", refuse)
    magic.run(shell, "", CELLS["kernel"].partition("\n")[2].replace("FACTOR", "2"))
    said = capsys.readouterr().out  # after the line that names the simulator, in a process that has not said it yet
    assert said.endswith("Not on this card, in the simulator: ptxas: 'wgmma' needs .target sm_90a\n")
    x = np.zeros(32, np.float32)
    assert simulate(names["fill"], 1, 32, (x,)).kernel == "fill"
    assert x.all()
    cp = choice.load("cp")
    on_device = cp.zeros(32, np.float32)
    with profile() as launches:
        names["fill"]((1,), (32,), (on_device,))
    assert cp.asnumpy(on_device).all()
    assert launches.counts.global_store_bytes == 128
