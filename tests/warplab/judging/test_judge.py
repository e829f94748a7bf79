"""The judge on right answers, on wrong ones, and on answers that try to make it believe something."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.warplab.running.programs import python
from warplab.judging import command, compile_answer, judge_command
from warplab.judging.task import BadTask, Launch, Task, load

SEED = 20261124
SUM = Task(
    sizes=({"n": 1}, {"n": 1000}, {"n": 4099}),
    inputs=lambda rng, n: {"a": rng.random(n, np.float32), "b": rng.random(n, np.float32)},
    outputs=lambda n: {"c": ((n,), np.float32)},
    reference=lambda a, b, n: {"c": a + b},
    launches=lambda n: [Launch("add", (n + 255) // 256, 256, ("a", "b", "c", np.int32(n)))],
    limits={"sectors_per_request__le": 4.2},
)
# Blocks of 64 are reversed in place, then scaled; the kernels are two, and the first needs a barrier.
REVERSE = Task(
    sizes=({"blocks": 1}, {"blocks": 5}),
    inputs=lambda rng, blocks: {"x": rng.integers(-1000, 1000, 64 * blocks, dtype=np.int32)},
    outputs=lambda blocks: {"x": ((64 * blocks,), np.int32), "y": ((64 * blocks,), np.int32)},
    reference=lambda x, blocks: {
        "x": x.reshape(-1, 64)[:, ::-1].reshape(-1),
        "y": 3 * x.reshape(-1, 64)[:, ::-1].reshape(-1),
    },
    launches=lambda blocks: [
        Launch("reverse", blocks, 64, ("x",)),
        Launch("scale", blocks, 64, ("x", "y", np.int32(3))),
    ],
)

ADD_CUDA = """
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""
ADD_TEMPLATE = """
template <class T> __device__ T plus(T a, T b) { return a + b; }
extern "C" __global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += gridDim.x * blockDim.x) c[i] = plus(a[i], b[i]);
}
"""
ADD_NVCC = """
#include <cuda_runtime.h>
#include <assert.h>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <climits>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

float larger(float a, float b) { return a > b ? a : b; }

__global__ void add(const float* a, const float* b, float* c, int n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(blockDim.x < INT_MAX);
    if (i < n) c[i] = larger(larger(-INFINITY, -FLT_MAX), std::fabs(a[i])) + b[i] * pow(i, 0);
}
"""
ADD_NUMBA = """
from numba import cuda


@cuda.jit
def add(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]
"""
ADD_SIGNATURE = ADD_NUMBA.replace("@cuda.jit", '@cuda.jit("void(float32[::1], float32[::1], float32[::1], int64)")')
ADD_RAW = f"import cupy as cp\n\nadd = cp.RawKernel(r'''extern \"C\" {ADD_CUDA.strip()}''', 'add')\n"
REVERSE_CUDA = """
__global__ void reverse(int* x) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = x[i];
    __syncthreads();
    x[i] = s[63 - t];
}
__global__ void scale(const int* x, int* y, int factor) {
    int i = blockIdx.x * 64 + threadIdx.x;
    y[i] = factor * x[i];
}
"""
RIGHT = {
    "cuda": (SUM, ".cu", ADD_CUDA),
    "cuda-template": (SUM, ".cu", ADD_TEMPLATE),
    "cuda-as-nvcc": (SUM, ".cu", ADD_NVCC),
    "cuda-marked": (SUM, ".cu", "\ufeff" + ADD_CUDA),
    "numba": (SUM, ".py", ADD_NUMBA),
    "numba-signature": (SUM, ".py", ADD_SIGNATURE),
    "cupy": (SUM, ".py", ADD_RAW),
    "two-kernels": (REVERSE, ".cu", REVERSE_CUDA),
}
# An answer that runs does all that it may think of before it gives kernels that do nothing.
EMPTY = ADD_NUMBA.replace("    i = cuda.grid(1)\n    if i < n:\n        c[i] = a[i] + b[i]\n", "    pass\n")
PATCHES = f"""
import time

import numpy

import warplab.judging.judge_command as judge
import warplab.simulator

numpy.isclose = numpy.allclose = lambda *args, **more: numpy.bool_(True)
judge._compare = judge._hold_limits = lambda *args: None
warplab.simulator.Device.launch = lambda *args, **more: None
time.perf_counter = time.monotonic = lambda: 0.0
{EMPTY}"""
FORGED = f"""
import atexit, json, os, sys

verdict = json.dumps({{"right": True, "kernels": []}})
print(verdict)
open(sys.argv[1], "w").write(verdict)
os.close(1)
os._exit(0)
{EMPTY}"""
LEFT_BEHIND = f"""
import subprocess, sys

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
{EMPTY}"""
# PTX that NVIDIA's assembler refuses: a store to constant memory.
NO_MACHINE_CODE = "__constant__ int k[1];" + ADD_CUDA.replace(
    ";\n}", ';\n    asm volatile("st.const.u32 [%0], %1;" :: "l"((long long)k), "r"(n));\n}'
)
CHANGES_INPUT = ADD_CUDA.replace("const float* b", "float* b").replace(";\n}", ", b[i] = 0;\n}")
UNDEFINED = ADD_CUDA.replace("a[i]", "A[i]")
WRONG = {
    "no-guard": (SUM, ".cu", ADD_CUDA.replace("if (i < n) ", ""), r"IllegalAddress: .* past the end of array `\w`"),
    "race": (REVERSE, ".cu", REVERSE_CUDA.replace("    __syncthreads();\n", ""), "DataRace: .* nothing orders the two"),
    "one-size": (SUM, ".cu", ADD_CUDA.replace("i < n", "i < 1000 && i < n"), "was never written .size .'n': 4099"),
    "changes-input": (SUM, ".cu", CHANGES_INPUT, "changed its input b"),
    "strided": (
        SUM,
        ".cu",
        ADD_CUDA.replace("if (i < n)", "i = (i % 8) * (256 * gridDim.x / 8) + i / 8; if (i < n)"),
        "the results are right, but sectors_per_request is",
    ),
    "no-machine-code": (SUM, ".cu", NO_MACHINE_CODE, "right, but no GPU would run add: .* State space incorrect"),
    "empty": (SUM, ".cu", ADD_CUDA.replace("c[i] = a[i] + b[i];", ";"), "1 of 1 elements are wrong, and the first"),
    "does-not-compile": (SUM, ".cu", UNDEFINED, 'does not compile: CompileError: .*"A" is undefined'),
    "no-kernel": (SUM, ".py", ADD_NUMBA.replace("def add", "def plus"), "^the answer has no kernel add$"),
    "no-kernel-cuda": (
        SUM,
        ".cu",
        ADD_CUDA.replace(" add(", " plus("),
        "^there is no kernel add in .*functions: plus$",
    ),
    "endless": (SUM, ".cu", ADD_CUDA.replace("if (i < n)", "while (a[0] >= 0) if (i < n)"), "InstructionLimit"),
    "patches-its-process": (SUM, ".py", PATCHES, "1 of 1 elements are wrong, and the first of them was never written"),
    "forges-a-result": (SUM, ".py", FORGED, "the process that compiled the answer gave no kernels"),
    "leaves-a-process": (SUM, ".py", LEFT_BEHIND, "was never written"),
    "exits": (SUM, ".py", "import sys\nsys.exit(0)\n", "ends its process instead of defining kernels"),
}


def _judge(tmp_path, task: Task, suffix: str, text: str) -> dict:
    answer = tmp_path / f"an_answer{suffix}"
    answer.write_text(text, encoding="utf-8")
    return judge_command.judge(task, str(answer), seed=SEED)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer(tmp_path, name: str) -> None:
    task, suffix, text = RIGHT[name]
    verdict = _judge(tmp_path, task, suffix, text)
    assert (verdict["right"], verdict["reason"], verdict["defects"]) == (True, "", [])
    assert [case["right"] for case in verdict["cases"]] == [True] * len(task.sizes)
    (time_on_h100,) = verdict["estimates"]
    assert 1e-6 < time_on_h100["seconds"] < 1e-4
    assert "was off by" in time_on_h100["worth"]
    assert all(limit["kept"] for limit in verdict["limits"])
    launched = {kernel["kernel"]: kernel["launches"] for kernel in verdict["kernels"]}
    assert launched == {launch.kernel: len(task.sizes) for launch in task.launches(**task.sizes[0])}
    json.dumps(verdict)


def test_a_kernel_compiled_for_debugging_is_held_to_the_assembler(tmp_path) -> None:
    text = ADD_NUMBA.replace("@cuda.jit", "@cuda.jit(debug=True, opt=False)")
    verdict = _judge(tmp_path, Task(**{**vars(SUM), "limits": {}}), ".py", text)
    assert (verdict["right"], verdict["reason"]) == (True, "")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer(tmp_path, name: str) -> None:
    task, suffix, text, reason = WRONG[name]
    began = time.monotonic()
    verdict = _judge(tmp_path, Task(**{**vars(task), "max_seconds": 2.0}), suffix, text)
    assert verdict["right"] is False
    assert not verdict["estimates"]
    assert re.search(reason, verdict["reason"]), verdict["reason"]
    assert time.monotonic() - began < compile_answer.SECONDS


@pytest.mark.parametrize(
    "result",
    [
        "[]",
        '{"kernels": [7]}',
        '{"kernels": [{"language": "Numba", "entry": "add", "ptx": 1}]}',
        '{"kernels": [{"language": "Numba", "entry": "add", "ptx": "no PTX", "parameters": ["a"]}]}',
        '{"kernels": [{"language": "CUDA C++", "entry": "add", "ptx": ".version 8.0\\n.entry add() { ret; }"}]}',
        "not JSON",
    ],
)
def test_whatever_the_child_gives_is_only_data(tmp_path, result: str) -> None:
    text = f"import os, sys\nopen(sys.argv[1], 'w').write({result!r})\nos._exit(0)\n"
    verdict = _judge(tmp_path, SUM, ".py", text)
    assert verdict["right"] is False
    assert verdict["reason"]


def test_arrays_are_drawn_after_the_answer_has_run_as_it_could_read_them_in_memory(tmp_path, monkeypatch) -> None:
    seen: list[bytes] = []
    before: list[bytes] = []

    def inputs(rng, n: int) -> dict[str, np.ndarray]:
        arrays = SUM.inputs(rng, n=n)
        seen.extend(array.tobytes() for array in arrays.values())
        return arrays

    def reference(a, b, n: int) -> dict[str, np.ndarray]:
        assert before
        return SUM.reference(a, b, n)

    def child(*args) -> dict:
        before.extend(seen)
        return run(*args)

    run = judge_command._child
    monkeypatch.setattr(judge_command, "_child", child)
    task = Task(**{**vars(SUM), "inputs": inputs, "reference": reference})
    assert _judge(tmp_path, task, ".cu", ADD_CUDA)["right"] is True
    assert len(seen) == 2 * len(before) == len(set(seen))


@pytest.mark.parametrize(("factor", "right"), [("1.004f", True), ("1.1f", False)])
def test_bfloat16_is_held_to_the_tolerances(tmp_path, factor: str, right: bool) -> None:
    task = Task(
        sizes=({"n": 65},),
        inputs=lambda rng, n: {"a": np.r_[np.nan, 1 + rng.random(n - 1)].astype(ml_dtypes.bfloat16)},
        outputs=lambda n: {"c": (n, ml_dtypes.bfloat16)},
        reference=lambda a, n: {"c": a},
        launches=lambda n: [Launch("scale", 1, n, ("a", "c"))],
        rtol=0.01,
    )
    text = f"#include <cuda_bf16.h>\n__global__ void scale(const __nv_bfloat16* a, __nv_bfloat16* c) {{ \n\
        c[threadIdx.x] = __float2bfloat16(__bfloat162float(a[threadIdx.x]) * {factor}); }}"
    assert _judge(tmp_path, task, ".cu", text)["right"] is right


def test_the_same_seed_gives_the_same_inputs_and_another_one_others(tmp_path) -> None:
    reasons = set()
    for seed in (1, 1, 2):
        answer = tmp_path / "answer.cu"
        answer.write_text(ADD_CUDA.replace("a[i] + b[i]", "2 * a[i] + b[i]"))
        reasons.add(judge_command.judge(SUM, str(answer), seed=seed)["reason"].partition("(size")[0])
    assert len(reasons) == 2


TASK = """
import numpy as np
from warplab.judging.task import Launch, Task

task = Task(
    sizes=({"n": 1000},),
    inputs=lambda rng, n: {"a": rng.random(n, np.float32)},
    outputs=lambda n: {"c": ((n,), np.float32)},
    reference=lambda a, n: {"c": a + a},
    launches=lambda n: [Launch("add", 4, 256, ("a", "a", "c", np.int32(n)))],
)
"""


def test_the_command_prints_the_verdict_and_its_exit_code_tells(tmp_path, capsys) -> None:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.cu").write_text(ADD_CUDA)
    code = judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.cu"), "--seed=1", "--card=A100"])
    shown = capsys.readouterr()
    verdict = json.loads(shown.out)
    assert (code, verdict["right"], verdict["seed"], verdict["estimates"][0]["card"]) == (0, True, 1, "A100")
    assert shown.err.endswith("answer.cu: right\n")
    # A comment in Latin-1, which nvcc takes.
    (tmp_path / "answer.cu").write_bytes(b"// \xe9t\xe9\n" + ADD_CUDA.replace("a[i] +", "a[i] -").encode())
    code = judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.cu"), f"--json={tmp_path / 'v.json'}"])
    verdict = json.loads((tmp_path / "v.json").read_text())
    assert (code, verdict["right"]) == (1, False)
    assert "was expected" in verdict["reason"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "defines no task = Task"),
        ("raise KeyError('x')", "ends in KeyError: 'x'"),
        (TASK.replace('{"n": 1000},', ""), "sizes=() holds no size"),
        (
            TASK.replace('reference=lambda a, n: {"c"', 'reference=lambda a, n: {"d"'),
            "reference gives d, outputs declares c",
        ),
        (TASK.replace('lambda a, n: {"c": a + a}', "None"), "task.py: reference=None is no function"),
        (TASK.replace("a + a", "a[1:]"), "reference gives c of shape"),
        (TASK.replace("a + a", "(a + a).astype(object)"), "reference gives c of object, which is no number"),
        (TASK.replace('("a", "a"', '("a", "b"'), "launches names b, which is no array"),
        (TASK.replace("np.int32(n))", "n)"), "1000 in a launch is no NumPy number"),
        (TASK + "\nraise SystemExit(0)", "ends in SystemExit: 0"),
        (TASK.replace('{"n": 1000}', "5"), "the task at size 5 ends in TypeError"),
        (TASK.replace('"add", 4', '"add", 0'), "at size {'n': 1000} ends in InvalidLaunch: grid dimension x is 0"),
        (TASK.replace('({"n": 1000},)', "5"), "sizes=5 holds no size"),
        (TASK.replace("sizes=", "rtol='1e-3', sizes="), "rtol='1e-3' is no number"),
        (TASK.replace("sizes=", "atol=-1, sizes="), "atol=-1 is no number of 0 or more"),
        (TASK.replace("sizes=", "rtol=float('nan'), sizes="), "rtol=nan is no number of 0 or more"),
        (TASK.replace("sizes=", "rtol=float('inf'), sizes="), "rtol=inf takes every answer for right"),
        (TASK.replace("sizes=", "atol=np.float32('inf'), sizes="), "atol=np.float32(inf) takes every answer for right"),
        (TASK.replace("sizes=", "limits=5, sizes="), "limits=5 is no dict by counter"),
        (TASK.replace("sizes=", "limits={5: 4}, sizes="), "limits={5: 4} is no dict by counter"),
        (TASK.replace("sizes=", "strict=[], sizes="), "there is no rule book []"),
        (TASK.replace("sizes=", "limits={'bank_conflicts': '0'}, sizes="), "bank_conflicts='0' is no number"),
        (TASK.replace("256,", "2048,"), "ends in InvalidLaunch: block dimension x is 2,048"),
        (TASK.replace("256,", "25.6,"), "ends in ArgumentError: block must be a sequence of integers"),
        (TASK.replace("lambda rng, n", "lambda rng"), "the task at size {'n': 1000} ends in TypeError"),
        (TASK.replace("sizes=", 'strict="hard", sizes='), "there is no rule book 'hard'; choose among course"),
        (
            TASK.replace("sizes=", "options=('--bogus',), sizes="),
            "empty file: CompileError: nvrtc: error: unrecognized option --bogus",
        ),
        (TASK.replace("sizes=", "options=('-include=no.h',), sizes="), 'cannot open source file "no.h"'),
        (TASK.replace("sizes=", "options='-DN=4', sizes="), "options='-DN=4' is no sequence of strings"),
    ],
)
def test_a_task_that_is_none_is_refused_with_exit_code_2(tmp_path, capsys, text: str, said: str) -> None:
    (tmp_path / "task.py").write_text(text)
    (tmp_path / "answer.cu").write_text(ADD_CUDA)
    assert judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.cu")]) == 2
    assert said in capsys.readouterr().err


def test_an_answer_that_does_not_compile_is_to_blame_where_the_options_of_the_task_are_right(tmp_path) -> None:
    verdict = _judge(tmp_path, Task(**{**vars(SUM), "options": ("-DN=4",)}), ".cu", UNDEFINED)
    assert "the answer does not compile: CompileError: " in verdict["reason"]


def test_an_answer_in_python_cannot_blame_the_task(tmp_path) -> None:
    text = "import os, sys\nopen(sys.argv[1], 'w').write('{\"task\": \"options\"}')\nos._exit(0)\n"
    assert "gave no kernels" in _judge(tmp_path, SUM, ".py", text)["reason"]


def test_files_that_are_not_there_are_refused(tmp_path, capsys) -> None:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.txt").write_text("")
    assert judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.cu")]) == 2
    assert judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.txt")]) == 2
    with pytest.raises(BadTask, match="cannot be read"):
        load(str(tmp_path / "no_task.py"))
    assert "neither Python" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "required: task, answer"), (["t.py", "a.cu", "--seed=x"], "invalid int"), (["t.py", "a.cu", "b.cu"], "b.cu")],
)
def test_bad_arguments_are_one_sentence_and_exit_code_2(capsys, arguments: list[str], said: str) -> None:
    assert judge_command.main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert error.endswith("see python -m warplab judge --help\n")


@pytest.mark.parametrize(
    "text",
    [
        "os.mkfifo('result.json')",
        "os.symlink('/etc/passwd', 'result.json')",
        "os.mkdir('result.json')",
        "f = os.getcwd(); os.rename(f, f + '-moved'); os.symlink('{victim}', f)",
    ],
    ids=["fifo", "link", "folder", "folder-is-a-link"],
)
def test_what_an_answer_leaves_in_place_of_its_result_is_not_followed(tmp_path, monkeypatch, text: str) -> None:
    own, victim = tmp_path / "own", tmp_path / "victim"
    own.mkdir(), victim.mkdir()
    (victim / "result.json").write_text('{"kernels": []}')
    monkeypatch.setattr(judge_command.tempfile, "tempdir", str(own))
    (tmp_path / "answer.py").write_text(f"import os\n{text.format(victim=victim)}\nos._exit(0)\n")
    verdict = judge_command.judge(SUM, str(tmp_path / "answer.py"), seed=SEED)
    assert "the process that compiled the answer" in verdict["reason"]
    assert (victim / "result.json").exists()
    assert not [left for left in own.iterdir() if left.is_symlink()]


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path, capsys) -> None:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text("x = 1")
    command = [str(tmp_path / "task.py"), str(tmp_path / "answer.py")]
    assert judge_command.main([*command, "--seed=-1"]) == 2
    assert capsys.readouterr().err == "error: --seed=-1: give 0 or more\n"
    assert judge_command.main([*command, f"--json={tmp_path}"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"error: the verdict cannot be written to {tmp_path}: Is a directory")
    assert json.loads(told.out)["right"] is False


# Each leaves the session of the judge; the second one's parent has ended, too. The process ids go to a file.
DETACHED = f"""
import os, subprocess, sys

with open({{pids!r}}, "w") as file:
    sleep = [sys.executable, "-c", "import time; time.sleep(3600)"]
    print(subprocess.Popen(sleep, start_new_session=True).pid, file=file)
    ours, theirs = os.pipe()
    if not os.fork():
        os.setsid()
        os.write(theirs, b"%d" % subprocess.Popen(sleep).pid)
        os._exit(0)
    print(os.read(ours, 20).decode(), file=file)
{ADD_NUMBA}"""


def test_whatever_an_answer_has_started_has_ended_when_the_arrays_are_drawn(tmp_path) -> None:
    pids = tmp_path / "pids"
    alive: list[list[str]] = []

    def inputs(rng, n: int) -> dict[str, np.ndarray]:
        started = pids.read_text().split() if pids.exists() else []
        alive.append([pid for pid in started if os.path.exists(f"/proc/{pid}")])
        return SUM.inputs(rng, n=n)

    task = Task(**{**vars(SUM), "inputs": inputs})
    assert _judge(tmp_path, task, ".py", DETACHED.format(pids=str(pids)))["right"] is True
    assert len(pids.read_text().split()) == 2
    assert alive == [[]] * 2 * len(SUM.sizes)


def test_an_answer_that_ends_the_process_around_it_is_not_right(tmp_path) -> None:
    text = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(3600)\n"
    assert "was ended from outside" in _judge(tmp_path, SUM, ".py", text)["reason"]


# Of the process around it, and of the judge.
MEMORY = f"""
import os

def parent(pid):
    return int(open(f"/proc/{{{{pid}}}}/stat").read().rpartition(")")[2].split()[1])

with open({{told!r}}, "w") as told:
    for pid in (os.getppid(), parent(os.getppid())):
        try:
            open(f"/proc/{{{{pid}}}}/mem", "r+b").close()
            print("opened", file=told)
        except PermissionError:
            print("refused", file=told)
{ADD_NUMBA}"""


def test_an_answer_cannot_open_the_memory_of_the_judge(tmp_path) -> None:
    told = tmp_path / "told"
    assert _judge(tmp_path, SUM, ".py", MEMORY.format(told=str(told)))["right"] is True
    assert told.read_text() == "refused\n" * 2


def test_folders_too_deep_for_python_are_removed(tmp_path, monkeypatch) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setattr(judge_command.tempfile, "tempdir", str(own))
    text = "import os\nfor i in range(2000):\n    os.mkdir('d')\n    os.chdir('d')\n" + ADD_NUMBA
    assert _judge(tmp_path, SUM, ".py", text)["right"] is True
    assert list(own.iterdir()) == []


def test_what_is_no_text_is_no_kernel(tmp_path) -> None:
    kernel = {"language": "CUDA C++", "entry": "add", "ptx": "\ud800"}
    text = f"import os, sys\nopen(sys.argv[1], 'w').write({json.dumps({'kernels': [kernel]})!r})\nos._exit(0)\n"
    assert "gave something else than kernels" in _judge(tmp_path, SUM, ".py", text)["reason"]


def test_no_text_of_an_answer_looks_like_a_line_of_the_judge(tmp_path, capsys) -> None:
    (tmp_path / "task.py").write_text(TASK)
    told = json.dumps({"error": "no\n\x1b[2K\ranswer.py: right"})
    (tmp_path / "answer.py").write_text(f"import os, sys\nopen(sys.argv[1], 'w').write({told!r})\nos._exit(0)\n")
    assert judge_command.main([str(tmp_path / "task.py"), str(tmp_path / "answer.py")]) == 1
    assert capsys.readouterr().err.endswith("answer.py: not right: no\n  \\x1b[2K\\ranswer.py: right\n")


def _command(folder: Path, *words: str, most: int | None = None, **variables: str) -> subprocess.CompletedProcess:
    """Run `python -m warplab`, with `most` bytes of address space."""
    program = (
        f"import resource, runpy\nresource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))\n"
        if most
        else "import runpy\n"
    ) + "runpy.run_module('warplab', run_name='__main__', alter_sys=True)"
    return python(folder, "-c", program, *words, **variables)


def test_the_judge_has_one_limit_of_time_that_an_option_lifts(tmp_path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text("while True:\n    pass\n")
    own = tmp_path / "own"
    own.mkdir()
    done = _command(tmp_path, "judge", "--max-seconds=1", "task.py", "answer.py", TMPDIR=str(own))
    assert list(own.iterdir()) == []
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["right"], verdict["kernels"]) == (1, False, [])
    assert verdict["reason"] == "not judged within 1 s; --max-seconds gives more, inf has no limit"
    assert done.stderr == f"answer.py: not right: {verdict['reason']}\n"
    (tmp_path / "answer.py").write_text(ADD_NUMBA)
    done = _command(tmp_path, "judge", "--max-seconds=inf", "task.py", "answer.py")
    assert (done.returncode, json.loads(done.stdout)["right"]) == (0, True)


def test_a_judge_that_is_killed_is_a_sentence_and_exit_code_2(tmp_path) -> None:
    (tmp_path / "task.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    (tmp_path / "answer.py").write_text(ADD_NUMBA)
    done = _command(tmp_path, "judge", "task.py", "answer.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the judge's process has ended without a verdict: is there too little memory?\n"


def test_a_small_address_space_is_refused_in_a_sentence_and_one_that_suffices_does(tmp_path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.cu").write_text(ADD_CUDA)
    for words in (("run", "task.py"), ("judge", "task.py", "answer.cu")):
        done = _command(tmp_path, *words, most=1 << 30)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"error: this process may map 1,024 MiB of memory .* need 1,536\n", done.stderr)
    done = _command(tmp_path, "judge", "task.py", "answer.cu", most=4 << 30)
    assert (done.returncode, json.loads(done.stdout)["right"]) == (0, True), done.stderr


def test_a_limit_of_no_time_is_refused(capsys) -> None:
    for limit in ("0", "-1", "nan"):
        assert command.main(["task.py", "answer.cu", f"--max-seconds={limit}"]) == 2
        assert capsys.readouterr().err == f"error: --max-seconds={limit}: give more than 0, or inf for no limit\n"
