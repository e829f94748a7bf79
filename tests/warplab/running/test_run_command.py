"""`python -m warplab run` on unmodified programs: their output and exit codes, the report, bad input."""

from __future__ import annotations

import importlib.util
import json
import re
import textwrap
from xml.etree import ElementTree

import pytest

from tests.warplab.running.programs import KERNELS, python, run
from warplab.running import run_command


def test_a_right_program_keeps_its_output_and_its_exit_code_and_ends_with_a_report(tmp_path) -> None:
    text = KERNELS + (
        "for _ in range(3):\n    scale[1, 128](x, out, 2.0)\n"
        "add((1,), (100,), (cp.asarray(x), cp.empty(100, np.float32), np.int32(100)))\n"
        "print(out.sum(), sys.argv[1:])\nsys.exit(3)\n"
    )
    ran = run(tmp_path, text, "--json=report.json", "--card=H100", "--card=A100", arguments=("-x", "--json"))
    assert (ran.returncode, ran.stdout) == (3, "9900.0 ['-x', '--json']\n"), ran.stderr
    assert "2 kernels, 4 launches, 0 defects" in ran.stderr
    assert "out[i] = x[i] * factor" in ran.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["exit_code"] == 3
    scale, add = report["kernels"]
    assert (scale["kernel"], scale["launches"], scale["threads"]) == ("scale", 3, 384)
    assert scale["counters"]["global_load_requests"] == 3 * 4
    assert scale["ratios"]["sectors_per_load_request"] == 3.25  # 13 in 4 requests
    assert [one["card"] for one in add["estimates"]] == ["H100", "A100"]
    assert all(one["seconds"] > 1e-6 and one["worth"] for one in add["estimates"])
    assert len(scale["lines"]) == 3
    first = add["lines"][0]
    code = text.splitlines()[first["line"] - 1].strip()  # the kernel's text, found in the script
    assert first["path"] == str(tmp_path / "script.py")
    assert first["code"] == code


def test_a_defect_ends_with_the_message_of_lessons_and_exit_code_1(tmp_path) -> None:
    text = KERNELS + "add((1,), (128,), (cp.asarray(x), cp.empty(128, np.float32), np.int32(100)))\nprint('on')\n"
    ran = run(tmp_path, text, "--junit=report.xml")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "4 bytes past the end of array `a` (400 bytes), element 100 (so do 27 other threads)" in ran.stderr
    assert "Is a guard missing (`if (i < n)`), or is the index or the size wrong?" in ran.stderr
    assert "Traceback" not in ran.stderr
    line = text.splitlines().index("    c[i] = a[i] + 1;") + 1
    assert f"script.py:{line}\n" in ran.stderr
    case = ElementTree.parse(tmp_path / "report.xml").find("testsuite/testcase")
    assert case is not None
    assert (case.get("name"), case.get("file"), case.get("line")) == ("add", "script.py", str(line))


def test_a_defect_is_suppressed_by_its_place_as_the_report_has_it(tmp_path) -> None:
    kernel = 'extern "C" __global__ void k(int* x) {\n  x[0] += threadIdx.x;\n}'
    text = f"import cupy as cp\nk = cp.RawKernel('''{kernel}''', 'k')\nk((1,), (64,), (cp.zeros(1, cp.int32),))\n"
    for place, code in (("script.py:3", 0), ("script.py:2", 1)):
        (tmp_path / "known.txt").write_text(f"k DataRace {place}")
        ran = run(tmp_path, text, "--suppress=known.txt")
        assert ran.returncode == code, ran.stderr
        assert "in script.py:3\n" in ran.stderr
        assert (f"No defect was suppressed by this line: k DataRace {place}" in ran.stderr) == code


def test_what_lessons_import_and_a_name_beyond_ascii_are_in_the_report(tmp_path) -> None:
    """A script may launch by `warplab.cuda` alone, and have a defect in what it gives to `warplab.simulate`."""
    (tmp_path / "é.py").write_text("from warplab import cuda\n\n@cuda.jit\ndef k(x):\n    x[cuda.grid(1)] += 1\n")
    ran = run(tmp_path, "import é, numpy as np\né.k[1, 32](np.zeros(31, np.int32))\n")
    assert ran.returncode == 1
    assert "1 kernel, 1 launch, 1 defect" in ran.stderr
    assert "at é.py, line 5: x[cuda.grid(1)] += 1" in ran.stderr
    ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\ttrap;\n}\n"
    ran = run(tmp_path, f"from warplab import PtxSource, simulate\nsimulate(PtxSource({ptx!r}), 1, 32, ())\n")
    assert (ran.returncode, "1 launch, 1 defect" in ran.stderr) == (1, True), ran.stderr


ONLY_CUPY = """
import atexit
import cupy as cp

def import_as_scipy_does():
    import concurrent.futures.thread
    print("imported")

cp.RawKernel('extern "C" __global__ void f() {}', "f")((1,), (32,), ())
atexit.register(import_as_scipy_does)
"""


def test_what_estimates_import_can_be_imported_when_python_ends(tmp_path) -> None:
    """SciPy 1.18 takes a module that asks threading for a call at its end, which is refused once that has begun."""
    ran = run(tmp_path, ONLY_CUPY)
    assert (ran.returncode, ran.stdout) == (0, "imported\n"), ran.stderr


SCALE = """
from numba import cuda

@cuda.jit
def scale(x):
    x[cuda.grid(1) * STRIDE] = 2
"""
ALIKE = """
import cupy as cp, numpy as np, one, two
from warplab import assert_counters

x = np.zeros(256, np.float32)
one.scale[1, 64](x)
two.scale[1, 64](x)
assert_counters(one.scale, sectors_per_store_request=4)
assert_counters(two.scale, sectors_per_store_request=16)
try:
    assert_counters("scale", sectors_per_store_request=16)
except LookupError as error:
    print(error)
fill = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x * %d] = 2; }'
kernels = [cp.RawKernel(fill % stride, "scale") for stride in (8, 2)]
for kernel in kernels:
    kernel((1,), (32,), (cp.zeros(256, np.float32),))
assert_counters(kernels[0], sectors_per_store_request=32)
two.scale[1, 65](x)
"""


def test_kernels_of_one_name_in_several_files_are_counted_apart(tmp_path) -> None:
    for name, stride in (("one", "1"), ("two", "4")):
        (tmp_path / f"{name}.py").write_text(SCALE.replace("STRIDE", stride))
    ran = run(tmp_path, ALIKE, "--json=report.json")
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert f"kernels of {tmp_path / 'one.py'}, {tmp_path / 'two.py'} are called scale: give the" in ran.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    files = [str(tmp_path / "one.py"), str(tmp_path / "two.py"), "kernel.cu"]
    assert [(row["file"], row["launches"]) for row in report["kernels"]] == list(zip(files, (1, 1, 2), strict=True))
    (defect,) = report["defects"]
    assert (defect["error"], defect["kernel_file"]) == ("IllegalAddress", files[1])


def test_a_defect_that_the_program_catches_counts(tmp_path) -> None:
    text = KERNELS + (
        "try:\n    add((1,), (128,), (cp.asarray(x), cp.empty(128, np.float32), np.int32(100)))\n"
        "except Exception:\n    pass\nscale[1, 128](x, out, 2.0)\nprint(out[1])\n"
    )
    ran = run(tmp_path, text)
    assert (ran.returncode, ran.stdout) == (1, "2.0\n")
    assert "2 kernels, 2 launches, 1 defect." in ran.stderr


def test_an_argument_that_a_gpu_would_take_for_something_else_is_a_defect(tmp_path) -> None:
    text = KERNELS + (
        "try:\n    add((1,), (100,), (cp.asarray(x), cp.zeros(100), np.int32(100)))\nexcept TypeError as error:\n"
        "    print(error)\n"
    )
    ran = run(tmp_path, text.partition("except")[0] + "finally:\n    pass\n")
    assert "Traceback" not in ran.stderr
    ran = run(tmp_path, text, "--json=report.json")
    assert ran.returncode == 1, ran.stderr
    assert "`float* c`, points to float32, but the array holds float64" in ran.stdout
    (defect,) = json.loads((tmp_path / "report.json").read_text())["defects"]
    line = text.splitlines().index("    add((1,), (100,), (cp.asarray(x), cp.zeros(100), np.int32(100)))") + 1
    assert (defect["error"], defect["kernel"]) == ("WrongArgument", "add")
    assert defect["launched_at"] == [str(tmp_path / "script.py"), line]
    assert "1 kernel, 1 launch, 1 defect." in ran.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("scale[1, 128](x, out)", "ArgumentError: kernel scale(x, out, factor) takes 3 arguments, 2 were given"),
        ("scale[1.5, 128](x, out, 2)", "ArgumentError: griddim must be a sequence of integers, got [1.5]"),
        ("add[1, 128](x)", "CallError: add is a kernel in CUDA C++, called with a grid, a block and a tuple"),
        ("add(1, (128,), (x,))", "ArgumentError: Argument 'grid' has incorrect type (expected tuple, got int)"),
    ],
)
def test_a_wrong_call_is_told_by_its_line_and_a_sentence(tmp_path, call: str, said: str) -> None:
    ran = run(tmp_path, f"{KERNELS}{call}\n")
    assert ran.returncode == 1
    line = len(KERNELS.splitlines()) + 1
    assert ran.stderr.startswith(f"script.py, line {line}:\n    {call}\n{said}"), ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_traceback_of_the_program_has_no_frame_of_the_engine(tmp_path) -> None:
    ran = run(tmp_path, "try:\n    1 / 0\nexcept ZeroDivisionError:\n    import not_there\n")
    assert ran.returncode == 1
    assert re.findall(r'File "(.*)", line (\d+)', ran.stderr) == [(str(tmp_path / "script.py"), n) for n in ("2", "4")]
    assert "ZeroDivisionError: division by zero\n\nDuring handling of the above" in ran.stderr
    assert "ModuleNotFoundError: No module named 'not_there'\n" in ran.stderr


CHILDREN = """
import multiprocessing, subprocess, sys
import numpy as np

def work(n):
    from numba import cuda

    @cuda.jit
    def in_child(x):
        x[cuda.grid(1)] += 1

    x = np.zeros(n, np.float32)
    in_child[1, n](x)
    return float(x.sum())

if __name__ == "__main__":
    code = "from script import work; print(work(64))"
    print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(work, [32]))
"""


def test_the_processes_that_a_program_starts_run_on_the_simulator_and_are_in_the_report(tmp_path) -> None:
    ran = run(tmp_path, CHILDREN, "--json=report.json")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["64.0", "[32.0]", "[32.0]"]
    (kernel,) = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert (kernel["launches"], kernel["threads"]) == (3, 128)
    assert kernel["estimates"]


RAW = """
import cupy as cp

code = r'''
extern "C" __global__ void one_more(int* x) {
    x[threadIdx.x] += 1;
}'''
x = cp.zeros(32, cp.int32)
cp.RawKernel(code, "one_more")((1,), (32,), (x,))
"""


def test_a_kernel_in_the_text_of_a_script_that_a_program_starts_has_its_line(tmp_path) -> None:
    (tmp_path / "raw.py").write_text(RAW)
    ran = run(tmp_path, "import subprocess, sys\nsubprocess.run([sys.executable, 'raw.py'])\n", "--json=report.json")
    assert ran.returncode == 0, ran.stderr
    (kernel,) = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert kernel["file"] == str(tmp_path / "raw.py")
    assert {line["line"] for line in kernel["lines"]} <= {4, 5, 6, 7}


def test_what_a_pool_has_launched_has_no_time_and_says_why(tmp_path) -> None:
    ran = run(tmp_path, CHILDREN.replace("    print(subprocess", "    0 and print(subprocess").replace(', "fork"', ","))
    assert ran.returncode == 0, ran.stderr
    assert "no time: the process that launched it was ended before it estimated any" in " ".join(ran.stderr.split())


def test_a_module_runs_as_by_python_m(tmp_path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("import sys; print(__name__, sys.argv[1:])")
    ran = python(tmp_path, "-m", "warplab", "run", "--strict=course", "-m", "package", "--strict=no")
    assert (ran.returncode, ran.stdout) == (0, "__main__ ['--strict=no']\n")
    assert "No kernel was launched" in ran.stderr
    assert python(tmp_path, "-m", "warplab", "run", "package", "a").stdout == "__main__ ['a']\n"


def test_an_error_of_the_program_itself_looks_as_always(tmp_path) -> None:
    ran = run(tmp_path, "def f():\n    raise ValueError('own')\nf()\n")
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        f'Traceback (most recent call last):\n  File "{tmp_path / "script.py"}", line 3, in <module>\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        KERNELS.replace("a[i] + 1;", "a[i] + ;") + "add((1,), (32,), (cp.asarray(x), cp.asarray(x), np.int32(1)))\n",
        KERNELS.replace("x[i] * factor", "x[i] * factr") + "scale[1, 128](x, out, 2.0)\n",
    ],
    ids=["cuda", "numba"],
)
def test_a_kernel_that_does_not_compile_is_said_in_a_sentence_with_exit_code_2(tmp_path, text: str) -> None:
    ran = run(tmp_path, text)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith("error: a kernel could not be compiled or run: ")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("add.code).get_function('ad')", "there is no kernel ad in kernel.cu; its __global__ functions: add"),
        ("add.code[12:]).get_function('add')", "no symbol add in the compiled code"),
    ],
)
def test_a_kernel_that_is_not_in_the_source_is_said_in_a_sentence_with_exit_code_2(tmp_path, text, said) -> None:
    ran = run(tmp_path, f"{KERNELS}cp.RawModule(code={text}")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(f"error: a kernel could not be compiled or run: NoKernel: {said}")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a script"),
        (["missing.py"], "there is no file missing.py"),
        (["lesson.ipynb"], "is a notebook: write `import warplab; warplab.install()` in its"),
        (["."], ". is a directory without a __main__.py"),
        (["-m"], "-m needs the name of a module"),
        (["--strict=lax", "x.py"], "argument --strict: invalid choice: 'lax'"),
        (["--max-seconds=-1", "README.md"], "--max-seconds=-1: give 0 or more, or inf for no limit"),
        (["--card=Voodoo2", "README.md"], "no card is named 'Voodoo2'"),
        (["--suppress=missing.txt", "README.md"], "missing.txt cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, tmp_path, arguments: list[str], said: str) -> None:
    lesson = tmp_path / "lesson.ipynb"
    lesson.write_text("{}")
    assert run_command.main([str(lesson) if one == lesson.name else one for one in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("missing.module", "No module named 'missing'"),
        ("json.missing", "No module named json.missing"),
        ("wsgiref", "'wsgiref' is a package and cannot be directly executed"),
        (".json", "Relative module names not supported"),
    ],
)
def test_what_is_no_module_to_run_is_one_sentence_and_exit_code_2(tmp_path, module: str, said: str) -> None:
    ran = python(tmp_path, "-m", "warplab", "run", "-m", module)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"x = 1\ndef f(:\n", "script.py, line 2: invalid syntax"), (b"\x7fELF\0", "null bytes"), (b'"\xff"', "utf-8")],
    ids=["syntax", "binary", "encoding"],
)
@pytest.mark.parametrize("how", [["script.py"], ["-m", "script"]], ids=["script", "module"])
def test_a_script_that_is_no_python_is_one_sentence_and_exit_code_2(tmp_path, text: bytes, said: str, how) -> None:
    (tmp_path / "script.py").write_bytes(text)
    ran = python(tmp_path, "-m", "warplab", "run", *how)
    assert (ran.returncode, ran.stderr.count("\n"), said in ran.stderr) == (2, 1, True), ran.stderr
    (tmp_path / "more.py").write_text("import script\n")
    ran = python(tmp_path, "-m", "warplab", "run", "more.py")  # that is the program's own error
    assert (ran.returncode, 'more.py", line 1, in <module>' in ran.stderr) == (1, True), ran.stderr


@pytest.mark.parametrize(("package", "extra"), [("triton", "triton"), ("numba_cuda_mlir", "mlir")])
def test_a_package_of_an_extra_that_is_missing_is_one_sentence_and_exit_code_2(tmp_path, package, extra) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    ran = run(tmp_path, f"try:\n    import {package}\nexcept ImportError:\n    import {package}.language")
    assert ran.returncode == 2
    sentence = f'error: script.py needs the package {package}, which is not installed: pip install "warplab[{extra}]"'
    assert ran.stderr.splitlines()[-1] == sentence
    assert "Traceback" not in ran.stderr


NOTHING = "from numba import cuda\n@cuda.jit\ndef k():\n    pass\nk[1, 1]()\n"


def test_a_script_that_is_called_as_a_package_that_numba_needs(tmp_path) -> None:
    (tmp_path / "numba_cuda.py").write_text(NOTHING)
    ran = python(tmp_path, "-m", "warplab", "run", "numba_cuda.py")
    assert ran.returncode == 0, ran.stderr
    assert "1 kernel, 1 launch, 0 defects" in ran.stderr


@pytest.mark.parametrize("name", ["argparse", "numpy", "queue"])
def test_a_script_that_is_called_as_a_module_that_warplab_needs(tmp_path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("import more")
    (tmp_path / "more.py").write_text(NOTHING)
    ran = python(tmp_path, "-m", "warplab", "run", f"{name}.py")
    assert ran.returncode == 0, ran.stderr
    assert "1 kernel, 1 launch, 0 defects" in ran.stderr


def test_modules_are_found_beside_a_script_and_not_beside_a_link_to_it(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "more.py").write_text("text = 'of the script'")
    (tmp_path / "more.py").write_text("text = 'of the link'")
    (tmp_path / "real" / "script.py").write_text("import more\nprint(more.text)")
    (tmp_path / "link.py").symlink_to("real/script.py")
    assert python(tmp_path, "-m", "warplab", "run", "link.py").stdout == "of the script\n"


def test_a_folder_that_is_gone_is_one_sentence_and_exit_code_2(tmp_path) -> None:
    gone = "import os, runpy, sys\nos.rmdir(os.getcwd())\nsys.argv = ['w', 'run', 'x.py']\n"
    (tmp_path / "empty").mkdir()
    ran = python(tmp_path / "empty", "-c", f"{gone}runpy.run_module('warplab', run_name='__main__')")
    assert (ran.returncode, ran.stderr) == (2, "error: the current folder cannot be used: No such file or directory\n")


def test_a_program_prints_its_errors_by_its_own_excepthook(tmp_path) -> None:
    hook = "import sys\nsys.excepthook = lambda kind, error, passed: print(kind.__name__, passed.tb_lineno)\n"
    ran = run(tmp_path, f"{hook}raise ValueError(1)")
    assert (ran.returncode, ran.stdout, "Traceback" in ran.stderr) == (1, "ValueError 3\n", False)
    ran = run(tmp_path, f"{hook.replace('print(', 'pint(')}raise ValueError(1)")
    assert (ran.returncode, "ValueError: 1" in ran.stderr) == (1, True)


def test_a_report_that_cannot_be_written_is_said(tmp_path) -> None:
    ran = run(tmp_path, "print(1)", "--sarif=.", "--json=new/folder/report.json")
    assert (ran.returncode, ran.stdout) == (2, "1\n")
    assert "cannot be written to .: Is a directory" in ran.stderr
    assert json.loads((tmp_path / "new/folder/report.json").read_text())["defects"] == []


RACY = """
import atexit, multiprocessing, os, signal, sys, tempfile, threading, time
import numpy as np
from numba import cuda


@cuda.jit
def bad(y):
    y[0] = y[0] + cuda.threadIdx.x


def go():
    time.sleep(0.5)
    try:
        bad[1, 64](np.zeros(1, np.int32))
    except Exception as error:
        print("caught", type(error).__name__, flush=True)


"""
CHDIR = "folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)\n"


@pytest.mark.parametrize(
    "text",
    [
        "threading.Thread(target=go).start()",
        "multiprocessing.get_context('fork').Process(target=go).start()",
        "atexit.register(go)",
        "go(); os._exit(0)",
        "if os.fork(): os.wait()\nelse: go()",
        "go(); sys.stdout.close()",
        "go(); sys.stdout = sys.stderr = None",
        f"go(); {CHDIR}",
        f"{CHDIR}go()",
        "import xml; assert xml.own; go()",
        "go(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    ],
    ids=[
        "thread",
        "process",
        "atexit",
        "_exit",
        "fork",
        "closed",
        "none",
        "no-folder",
        "no-folder-yet",
        "own-xml",
        "terminated",
    ],
)
def test_however_a_program_ends_its_defects_are_reported(tmp_path, text: str) -> None:
    (tmp_path / "xml.py").write_text("own = True")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "script.py").write_text(RACY + text)
    command = ("-m", "warplab", "run", "--junit=report.xml", "script.py")
    ran = python(tmp_path, *command, TMPDIR=str(tmp_path / "tmp"))
    assert (ran.returncode, ran.stdout) == (1, "caught DataRace\n"), ran.stderr
    assert ran.stderr.count("1 defect.") == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert f"in script.py:{RACY.splitlines().index('    y[0] = y[0] + cuda.threadIdx.x') + 1}\n" in ran.stderr
    assert ElementTree.parse(tmp_path / "report.xml").find("testsuite/testcase/failure") is not None
    assert not list((tmp_path / "tmp").iterdir())


def test_a_folder_that_a_killed_program_left_is_removed_by_the_next(tmp_path) -> None:
    (tmp_path / "tmp").mkdir()
    left = []
    for text in ("os.kill(os.getpid(), signal.SIGKILL)", "os.execv('/bin/true', ['true'])", "print(1)"):
        (tmp_path / "script.py").write_text(f"import os, signal\n{text}")
        python(tmp_path, "-m", "warplab", "run", "script.py", TMPDIR=str(tmp_path / "tmp"))
        left.append(len(list((tmp_path / "tmp").glob("warplab-run-*"))))
    assert left == [1, 1, 0]


def test_a_process_that_is_terminated_ends_by_the_signal(tmp_path) -> None:
    text = """
        import multiprocessing, time
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start(), child.terminate(), child.join()
        print(child.exitcode)
    """
    assert run(tmp_path, textwrap.dedent(text)).stdout == "-15\n"


def test_a_second_run_in_one_process_leaves_its_signals_as_they_were(tmp_path) -> None:
    text = """
        import os, signal
        from warplab.running import run_command
        open("program.py", "w").close()
        run_command.main(["program.py"]), run_command.main(["program.py"])
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    """
    ran = python(tmp_path, "-c", textwrap.dedent(text))
    assert ran.stdout.splitlines()[-1] == "set()", ran.stderr


def test_a_program_of_the_driver_is_refused_by_its_line_and_exit_code_2(tmp_path) -> None:
    ran = run(tmp_path, "from cuda.bindings import driver\n\ndriver.cuInit(0)\n")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: script.py:3 calls NVIDIA's driver (cuda.core, cuda.bindings), which has no")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import numpy\nimport cupy\ncupy.poly1d([1])", "script.py:3: cupy.poly1d is not on the simulator"),
        ("from numba.cuda import nvvm", "script.py:1: cannot import name 'nvvm' from 'numba.cuda'"),
    ],
)
def test_what_the_stand_ins_lack_is_refused_by_its_line_and_exit_code_2(tmp_path, text: str, said: str) -> None:
    ran = run(tmp_path, text)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert ran.stderr.startswith(f"error: {said}"), ran.stderr


def test_what_a_library_itself_does_not_have_is_the_programs_own_error(tmp_path) -> None:
    ran = run(tmp_path, "import cupy\ncupy.nothing")
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr


def test_assert_counters_without_a_kernel_takes_the_latest_launch(tmp_path) -> None:
    text = KERNELS + (
        "import warplab\n"
        "scale[1, 128](x, out, 2.0)\n"
        "add((1,), (100,), (cp.asarray(x), cp.empty(100, np.float32), np.int32(100)))\n"
        "scale[2, 64](x, out, 2.0)\nscale[1, 32](x, out, 2.0)\n"
        "warplab.assert_counters(global_load_requests=1)\nwarplab.assert_counters('add', global_load_requests=4)\n"
    )
    ran = run(tmp_path, text)
    assert ran.returncode == 0, ran.stderr
