"""Kernels that are alike whatever was renamed, and a class in which two copied."""

from __future__ import annotations

import csv
import json
import random
import re
import time

import numpy as np
import pytest

from tests.support.attack_harness import NAME, RIGHT, Target
from tests.support.grading_harness import HereWorkers
from warpcourse.grading.course import similar_command, similarity
from warpcourse.grading.course.ledger import Ledger
from warpcourse.grading.course.similarity import features, ranked
from warplab import cp, cuda
from warplab.launch.kernel_source import source_of
from warplab.launch.numba_arguments import types_of

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
KERNEL = """
.visible .entry work(.param .u64 work_param_0, .param .u64 work_param_1, .param .u32 work_param_2)
{
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<6>; .reg .b64 %rd<9>;
    .shared .align 4 .b8 tile[512];
    .loc 1 7 0
    ld.param.u64 %rd1, [work_param_0];
    ld.param.u64 %rd2, [work_param_1];
    ld.param.u32 %r1, [work_param_2];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mad.lo.s32 %r4, %r3, 128, %r2;
    setp.ge.s32 %p1, %r4, %r1;
    @%p1 bra $L__BB0_2;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    ld.global.v2.f32 {%f2, %f3}, [%rd5+8];
    sub.f32 %f4, %f1, %f2;
    add.f32 %f5, %f4, %f3;
    st.shared.f32 [tile+4], %f5;
    st.global.f32 [%rd5], %f5;
$L__BB0_2:
    ret;
}
"""
DISGUISED = """
// nothing of this is copied
.visible .entry mine(.param .u64 mine_param_0, .param .u64 mine_param_1, .param .u32 mine_param_2)
{
    .reg .b64 %a<99>; .reg .f32 %x<60>; .reg .pred %q<8>; .reg .b32 %i<90>;
    .shared .align 4 .b8 cache[512];
    .loc 1 99 3
    mov.u32 %i20, %ctaid.x;
    mov.u32 %i7, %tid.x;
    ld.param.u32 %i1, [mine_param_2];
    mad.lo.s32 %i4, 128, %i20, %i7; /* the other way round */
    ld.param.u64 %a2, [mine_param_1];
    setp.ge.s32 %q3, %i4, %i1;
    ld.param.u64 %a1, [mine_param_0];
    @%q3 bra END;
    mul.wide.s32 %a30, 4, %i4;
    add.s64 %a50, %a30, %a2;
    ld.global.v2.f32 {%x2, %x3}, [%a50+8];
    add.s64 %a40, %a30, %a1;
    ld.global.f32 %x1, [%a40];
    sub.f32 %x4, %x1, %x2;
    add.f32 %x5, %x3, %x4;
    st.global.f32 [%a50], %x5;
    st.shared.f32 [cache+4], %x5;
END:
    ret;
}
"""


def alike(one: str, other: str) -> float:
    a, b = features(one), features(other)
    return 2 * (a & b).total() / (a.total() + b.total())


def test_names_order_labels_lines_and_comments_leave_no_trace():
    assert features(HEAD + KERNEL) == features(HEAD + DISGUISED)
    assert features(KERNEL).total() == 3 * 18


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("sub.f32 %f4, %f1, %f2", "sub.f32 %f4, %f2, %f1"),
        ("%r3, 128, %r2", "%r3, 256, %r2"),
        ("add.f32 %f5", "add.rz.f32 %f5"),
        ("[work_param_2]", "[work_param_3]"),
        ("tile[512]", "tile[1024]"),
        ("@%p1", "@!%p1"),
        ("[%rd5+8]", "[%rd5+4]"),
        ("%tid.x", "%tid.y"),
        ("add.s64 %rd5, %rd2, %rd3", "add.s64 %rd5, %rd1, %rd3"),
    ],
)
def test_what_a_kernel_computes_does(was, now):
    assert was in KERNEL
    changed = alike(KERNEL, KERNEL.replace(was, now))
    assert 0.4 < changed < 1


MINE = """
extern "C" __global__ void work(const float* a, const float* b, float* c, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += tile[k] * b[k];
    if (i < n) c[i] = sum;
}"""
THEIRS = """
extern "C" __global__ void work(const float* first, const float* second, float* result, int count) {
    float total = 0;
    __shared__ float cache[64];
    const int lane = threadIdx.x;
    int me = blockDim.x * blockIdx.x + lane;  // my element
    if (me < count) cache[lane] = first[me];
    else cache[lane] = 0;
    __syncthreads();
    for (int step = 0; step < 64; ++step) total += second[step] * cache[step];
    if (me < count) result[me] = total;
}"""
OTHER = """
extern "C" __global__ void work(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[i / 64 * 64 + k] * b[k];
    c[i] = sum;
}"""


def test_sources_that_were_rewritten_compile_to_much_the_same():
    mine, theirs, other = (source_of(cp.RawKernel(code, "work")).ptx for code in (MINE, THEIRS, OTHER))
    assert alike(mine, theirs) > 0.9
    assert alike(mine, other) < 0.3

    @cuda.jit
    def one(x, y):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = x[i] / 3

    @cuda.jit
    def two(values, out):
        """Out is a third of values."""
        if cuda.grid(1) < out.size:
            element = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
            out[element] = values[element] / 3

    @cuda.jit
    def three(x, y):
        for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
            y[i] = x[i] / 3

    numba = []
    for kernel in (one, two, three):
        source = source_of(kernel)
        signature = tuple(types_of("kernel", source.parameters, (np.zeros(1, np.float32),) * 2))
        numba.append(source.compile(signature).ptx)
    assert alike(numba[0], numba[1]) > alike(numba[0], numba[2]) + 0.2


def test_any_text_is_taken_in_bounded_processor_time():
    rng = random.Random(1)
    pieces = [
        "{",
        "}",
        ";",
        ":",
        "@%p1 ",
        "bra x;",
        ".entry",
        ".func f(",
        "add.f32 %f1, ",
        "/*",
        "//",
        "%",
        "\n",
        ".reg ",
    ]
    began = time.process_time()
    for _ in range(200):
        features("".join(rng.choices(pieces, k=200)))
    for piece in [*pieces, "x:", ".entry f(){", ".visible ", "ld.f32 {%f1,", "@!", ".shared .b8 x[", "a,", " ", "$L: "]:
        features(piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 60


# -- a class


def constants(*values: int) -> str:
    """A kernel that does one thing after the other with these constants."""
    steps = ["mov.u32 %r0, %tid.x;"]
    for n, value in enumerate(values):
        steps += [f"xor.b32 %r{2 * n + 1}, %r{2 * n}, {value};", f"sub.s32 %r{2 * n + 2}, %r{2 * n + 1}, {value};"]
    return ".visible .entry k()\n{ .reg .b32 %r<99>;\n" + "\n".join(steps) + "\nret;\n}"


def test_two_who_copied_stand_first_and_solutions_count_nothing():
    solution, common = constants(1, 2, 3, 4), constants(1, 20, 30, 4)
    texts = {f"right{number}": solution for number in range(6)}
    texts |= {f"mistaken{number}": common for number in range(7)}
    texts |= {"copies": constants(7, 77, 777, 4), "copied": constants(7, 77, 777, 4)}
    texts |= {"alone": constants(5, 55, 555, 4), "nearly": constants(7, 77, 778, 4)}
    kernels = {student: {"k": features(text)} for student, text in texts.items()}
    pairs = ranked(kernels, {"k": features(solution)})
    assert pairs[0].students == ("copied", "copies")
    assert pairs[0].alike == 1
    assert pairs[0].shared["k"] >= 6
    assert {pair.students for pair in pairs[1:]} == {
        (one, other)
        for one in sorted(texts)
        for other in sorted(texts)
        if one < other and "mistaken" in one and "mistaken" in other
    }
    assert all(pair.weight < pairs[0].weight / 2 for pair in pairs[1:])
    closer = ranked(kernels, {"k": features(solution)}, least=0.3)
    assert ("copied", "nearly") in [pair.students for pair in closer]
    assert not any("alone" in pair.students or "right0" in pair.students for pair in closer)
    assert len(ranked(kernels, {})) > len(pairs)  # it is the solution that is discounted


def test_the_command_compares_what_the_ledger_holds(tmp_path, capsys, monkeypatch, zygotes):
    Target(tmp_path)
    key = "scale(float32[::1], float32[::1])"  # as the judge names the kernel of the solution, which is graded too
    clumsy = RIGHT["scale"].replace("3 * x[i]", "x[i] * 7 - x[i] / 5 + x[i] ** 2")
    texts = {
        "right": RIGHT["scale"],
        "also-right": re.sub(r"\bi\b", "element", RIGHT["scale"]),
        "copied": clumsy,
        "copies": re.sub(r"\bi\b", "me", clumsy).replace("(x, y)", "(a, b)").replace("x[", "a[").replace("y", "b"),
    }
    with Ledger(tmp_path / "grading" / "ledger") as ledger:
        for student, text in texts.items():
            kernels = {key: compiled(text)}
            ledger.append(
                {
                    "kind": "result",
                    "assignment": NAME,
                    "student": student,
                    "submission": student,
                    "tests": "",
                    "kernels": ledger.put(json.dumps(kernels).encode()),
                }
            )
    monkeypatch.setattr(similar_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    given = {}
    graded = similar_command._given
    monkeypatch.setattr(similar_command, "_given", lambda *arguments: given.update(graded(*arguments)) or given)
    table = tmp_path / "pairs.csv"
    assert similar_command.main([NAME, "--course", str(tmp_path), "--csv", str(table)]) == 0
    assert given.keys() == {key}
    printed = capsys.readouterr().out
    assert "4 submissions compared by the PTX of their kernels; 1 similar pairs" in printed
    assert "1. copied and copies: 100% similar" in printed
    assert "This is no verdict" in printed
    with open(table, newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["student"], row["other"], row["kernels"]) == ("copied", "copies", "scale")


def compiled(text: str) -> str:
    namespace = {"cuda": cuda}
    exec(text, namespace)
    source = source_of(namespace["scale"])
    signature = tuple(types_of("scale", source.parameters, (np.zeros(1, np.float32),) * 2))
    return source.compile(signature).ptx


def test_a_class_without_kernels_is_told_so(tmp_path, capsys):
    Target(tmp_path)
    assert similar_command.main([NAME, "--course", str(tmp_path)]) == 2
    assert f"run python -m warplab grade {NAME} first" in capsys.readouterr().err


def test_a_register_that_all_write_and_read_costs_no_square(monkeypatch):
    """20,000 such instructions took three minutes; each may read as many results as there are instructions."""
    hashed, of = [], similarity._hash
    monkeypatch.setattr(similarity, "_hash", lambda *parts: hashed.append(sum(map(len, parts))) or of(*parts))
    number = 2000
    steps = "".join(f"add.s32 %r1, %r1, {k};\n" for k in range(number))
    similarity.features(f".visible .entry k()\n{{\n.reg .b32 %r<3>;\n{steps}ret;\n}}\n")
    assert len(hashed) > number
    assert sum(hashed) < 500 * number
