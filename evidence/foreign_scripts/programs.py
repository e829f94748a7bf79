"""Which programs of others run, and how each becomes a script. None of them is kept here."""

from __future__ import annotations

import ast
import json
import random
from dataclasses import dataclass
from pathlib import Path

HUB = "NVIDIA/accelerated-computing-hub"
NUMBA = "NVIDIA/numba-cuda"
STUMPY = "stumpy-dev/stumpy"
CUPY = "cupy/cupy"
_KERNELS = "tutorials/accelerated-python/notebooks/kernels"
_FUNDAMENTALS = "tutorials/accelerated-python/notebooks/fundamentals"
_GUIDE = "Accelerated_Python_User_Guide/notebooks"
_EXAMPLES = "numba_cuda/numba/cuda/tests/doc_examples"
# Which defects a second look has excused, so that the other checks go on: what each is, README.md tells.
SEED = 0
KNOWN = "_compute_and_update_PI_kernel DataRace gpu_*.py:*\n"


@dataclass(frozen=True)
class Program:
    """`path`: of a file in the repository `source`. `cell`: the file that a `%%writefile` cell of a notebook writes.
    `body`: the first test's body is the script. `tests`: pytest runs it. `arguments`: of the script. `data`: a file
    that the notebook downloads; 64 KiB of random bytes take its place. `smaller`: the sizes in a notebook that runs as
    a whole, and those that take their place."""

    source: str
    path: str
    cell: str = ""
    body: bool = False
    tests: bool = False
    arguments: tuple[str, ...] = ()
    data: str = ""
    smaller: tuple[tuple[str, str], ...] = ()

    @property
    def notebook(self) -> bool:
        """Whether all its cells run, one after the other."""
        return self.path.endswith(".ipynb") and not self.cell

    @property
    def name(self) -> str:
        return self.cell or Path(self.path).name

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{self.source}/{self.path} {self.cell}".strip()

    def script(self, clone: Path, folder: Path) -> Path:
        """Return the script, in the clone or, where it is a part of a file, in `folder`."""
        file = clone / self.path
        if self.cell:
            cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
            texts = ["".join(cell["source"]) for cell in cells]
            text = next(t for t in texts if t.startswith(f"%%writefile {self.cell}\n")).partition("\n")[2]
        elif self.notebook:
            text = _all_cells(file.read_text(encoding="utf-8"), self.smaller)
        elif self.body:
            text = _first_body(file.read_text(encoding="utf-8"))
        else:
            return file
        script = (folder / self.name).with_suffix(".py")
        script.write_text(text, encoding="utf-8")
        if self.data:
            (folder / self.data).write_bytes(random.Random(SEED).randbytes(2**16))
        return script


def _all_cells(notebook: str, smaller: tuple[tuple[str, str], ...]) -> str:
    """Return a script that runs the cells of a notebook as Jupyter does, also after one that fails, and says how many
    do not fail; the exit code is 1 if one does."""
    cells = ["".join(cell["source"]) for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    for old, new in smaller:
        cells = [cell.replace(old, new) for cell in cells]
    return f"""import sys
from IPython.core.interactiveshell import InteractiveShell

ran = [InteractiveShell.instance().run_cell(cell) for cell in {cells!r}]
errors = [one.error_before_exec or one.error_in_exec for one in ran if not one.success]
for error in errors:
    print(f"{{type(error).__name__}}: {{error}}", file=sys.stderr)
print(len(ran) - len(errors), "of", len(ran), "cells", file=sys.stderr)
sys.exit(bool(errors))
"""


def _first_body(text: str) -> str:
    """Return the body of the first test without what only a test needs: statements that name `self` or
    what it captures."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    tests = [function for function in functions if function.name.startswith("test")]
    body = [part for s in tests[0].body for part in (s.body if isinstance(s, ast.With) else [s])]  # captured_stdout()
    kept = [s for s in body if not {n.id for n in ast.walk(s) if isinstance(n, ast.Name)} & {"self", "stdout"}]
    return "import numpy as np\n" + "\n".join(ast.unparse(statement) for statement in kept) + "\n"


_SMALL = ("check", "256", "64", str(2**18))  # threads per block, items per thread, items
_SOLVED = f"{_KERNELS}/solutions"
_BOOKS = "books__15m.txt"
_ARRAYS = (
    *(("(50, 500, 500)", "(5, 50, 50)"), ("(3000, 1000)", "(300, 100)"), ("(100000, 1000)", "(1000, 100)")),
    *((", 5_000_000, 50_000_000]", "]"), ("50_000_000", "50_000")),
)
_MATRIX = (("dim: int = 4096", "dim: int = 64"),)
# What takes longest comes last.
PROGRAMS = (
    Program(HUB, f"{_KERNELS}/40__kernel_authoring__copy.ipynb", "copy_blocked.py", arguments=_SMALL),
    Program(HUB, f"{_SOLVED}/40__kernel_authoring__copy__SOLUTION.ipynb", "copy_optimized.py", arguments=_SMALL),
    *(
        Program(HUB, notebook, cell, arguments=("output",), data=_BOOKS)
        for notebook, cell in (
            (f"{_KERNELS}/41__kernel_authoring__book_histogram.ipynb", "histogram_global.py"),
            (f"{_SOLVED}/41__kernel_authoring__book_histogram__SOLUTION.ipynb", "histogram_global.py"),
            (f"{_SOLVED}/41__kernel_authoring__book_histogram__SOLUTION.ipynb", "histogram_localized.py"),
        )
    ),
    Program(
        HUB, f"{_GUIDE}/Chapter_04_Scientific_Computing_with_CuPy.ipynb", smaller=(("(1000,500,500)", "(10,50,50)"),)
    ),
    Program(HUB, f"{_GUIDE}/Chapter_05_CUDA_Kernels_with_Numba.ipynb"),
    *(
        Program(HUB, f"{_FUNDAMENTALS}/{name}.ipynb", smaller=smaller)
        for name, smaller in (
            ("03__numpy_to_cupy__ndarray_basics", _ARRAYS),
            ("solutions/03__numpy_to_cupy__ndarray_basics__SOLUTION", _ARRAYS),
            ("05__memory_spaces__power_iteration", (("dim: int = 4096", "dim: int = 64"),)),
            ("solutions/05__memory_spaces__power_iteration__SOLUTION", (("dim: int = 4096", "dim: int = 64"),)),
        )
    ),
    Program(NUMBA, "examples/debugging/hello.py"),
    *(
        Program(NUMBA, f"{_EXAMPLES}/test_{name}.py", body=True)
        for name in (
            *("vecadd", "matmul", "reduction", "sessionize", "montecarlo"),
            *("cg", "cpointer", "globals", "ufunc"),
        )
    ),
    *(
        Program(CUPY, f"examples/{name}.py", arguments=arguments)
        for name, arguments in (
            ("custom_struct/builtin_vectors", ()),
            ("custom_struct/complex_struct", ()),
            ("custom_struct/packed_matrix", ()),
            ("gemm/sgemm", ("--m", "64", "--n", "64", "--k", "64")),
            ("finance/black_scholes", ("--n-options", "1000")),
            (
                "finance/monte_carlo",
                ("--n-options", "8", "--n-samples-per-thread", "8", "--n-threads-per-option", "64"),
            ),
            ("kmeans/kmeans", ("--num", "200", "--use-custom-kernel")),
            ("gmm/gmm", ("--num", "200")),
            ("stream/cupy_event", ()),
            ("stream/cupy_kernel", ()),
            ("stream/cupy_memcpy", ()),
            ("stream/map_reduce", ()),
            ("jit/elmentwise_op", ()),
            ("jit/reduction_simple", ()),
        )
    ),
    *(
        Program(STUMPY, f"tests/test_gpu_{name}.py", tests=True)
        for name in ["mpdist", "aampdist", "stump", "aamp", "stimp", "aamp_stimp", "ostinato", "aamp_ostinato"]
    ),
    Program(NUMBA, f"{_EXAMPLES}/test_laplace.py", body=True),
    Program(NUMBA, f"{_EXAMPLES}/test_random.py", body=True),
    Program(CUPY, "examples/cg/cg.py", arguments=("--max-iter", "50")),
)
# Those whose time is compared with that of Numba's own simulator, which knows Numba's kernels only.
TIMED = ("test_vecadd.py", "test_matmul.py", "test_reduction.py")
