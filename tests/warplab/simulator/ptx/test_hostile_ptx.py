"""PTX made to break its reader: none of it becomes code, and it ends soon, in little memory, with a clear error."""

from __future__ import annotations

import ast
import contextlib
import resource
import time

import pytest

from warplab import simulator
from warplab.compile.nvrtc import compile_cuda
from warplab.simulator.ptx import inlining, parser
from warplab.simulator.run import printf
from warplab.simulator.run.launch_limits import MAX_LOCAL_BYTES
from warplab.simulator.translate import basic_blocks
from warplab.simulator.translate.operations import TABLE
from warplab.simulator.translate.translation import translate

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
KIB, MIB = 1 << 10, 1 << 20


def kernel(body: str, declared: str = "", params: str = "") -> str:
    return f"{HEAD}{declared}\n.visible .entry kernel({params})\n{{\n{body}\n}}\n"


def launch(ptx: str, threads: int = 32, grid: int = 1, **options) -> simulator.LaunchProfile:
    device = simulator.Device(64 * MIB)
    device.echo = False
    return device.launch(
        simulator.load(ptx).entries["kernel"], (grid,), (threads,), [], options=simulator.Options(**options)
    )


# -- code in PTX -------------------------------------------------------------------------------------------

# Each would be seen if any of it ran.
CODE = [
    "__import__('os').abort()",
    '__import__("os").abort()',
    "%r1);__import__('os').abort();(",
    "%r1\n    raise SystemExit",
    "%r1 # ",
    "'+str(1/0)+'",
    "\\x27",
    "exit()",
    "__import__(os)",
    "%r1.__class__",
    "m.device",
    "[m.device]",
    "{m, R, L}",
    "%r1 if 0 else m",
    "0)[0",
    "lambda:0",
    "%r1\uff08\uff09",
]
PLACES = [
    "mov.u32 %r2, {};",
    "mov.u32 {}, %r1;",
    "{} %r2, %r1;",
    "mov.{} %r2, %r1;",
    "@{} mov.u32 %r2, %r1;",
    "add.u32 %r2, %r1, {};",
    "ld.global.u32 %r2, [%rd1+{}];",
    "ld.global.u32 %r2, [{}];",
    "ld.param.u32 %r2, [{}];",
    "st.shared.v2.u32 [x], {{%r1, {}}};",
    "setp.{}.u32 %p1, %r1, %r2;",
    "shfl.sync.{}.b32 %r2, %r1, 0, 31, -1;",
    "cvt.{}.f32 %r2, %r1;",
    "atom.global.{}.u32 %r2, [%rd1], %r1;",
    "vote.sync.{}.pred %p1, %p1, -1;",
    "bra {};",
    "call ({}), f, (x);",
    "{}: mov.u32 %r2, %r1;",
    ".reg .b32 {};",
    ".shared .align 4 .b8 {}[4]; mov.u32 %r2, %r1;",
    ".loc {} 1 1",
    "mov.u32 %r2, %{};",
    "prmt.b32.{} %r2, %r1, %r1, %r1;",
    "mma.sync.aligned.{}.row.col.f32.f16.f16.f32 {{%r1}}, {{%r1}}, {{%r1}}, {{%r1}};",
    "cp.async.ca.shared.global [%r1], [%rd1], {};",
    "bar.sync {};",
    "lop3.b32 %r2, %r1, %r1, %r1, {};",
    "bfe.u32 %r2, %r1, {}, 4;",
]
DECLARED = ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>; .shared .align 4 .b8 x[64];"
# All that a block's function may name: what `translate` puts into its scope, and its own variables.
OWN = {"m", "R", "L", "np", "None", "True", "False"}


def names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


@pytest.fixture(scope="module")
def usual_attributes() -> set[str]:
    """Attributes that the functions of ordinary kernels use."""
    source = """
    extern "C" __global__ void kernel(float* x, int n) {
        __shared__ float s[64];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        s[threadIdx.x % 64] = i < n ? x[i] : 0;
        __syncthreads();
        if (i < n) x[i] = s[0] + __shfl_xor_sync(-1, s[1], 1) + atomicAdd((int*)x, 1) + __ballot_sync(-1, i & 1);
    }"""
    sources = translate(simulator.load(compile_cuda(source)).entries["kernel"]).sources
    return {node.attr for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("place", PLACES)
def test_no_token_becomes_code(place, usual_attributes):
    translated = 0
    for code in CODE:
        ptx = kernel(f"{DECLARED}\n{place.format(code)}\nst.shared.u32 [x], %r2;\nret;")
        try:
            result = translate(simulator.load(ptx).entries["kernel"])
        except simulator.UnsupportedInstruction:
            continue
        translated += 1
        for text in result.sources:
            local = {f"{letter}{k}" for letter in "rvSO" for k in range(40)}
            known = OWN | local | set(parser.TYPE_BYTES) | {"u1", "u2", "u4", "u8", "i4", "i8", "f4", "V16"}
            unknown = {name for name in names_in(text) if name not in known and not name.startswith("K_")}
            assert not unknown, (place, code, text)
            attributes = {n.attr for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)}
            assert attributes <= usual_attributes | {"store_vector", "load", "view", "astype", "copy"}, (place, code)
    assert translated < len(CODE)


def test_characters_that_could_end_a_string_are_refused():
    for character in "'\"\\`;#=\0\x1b\u2028é":
        with pytest.raises(simulator.UnsupportedInstruction):
            simulator.load(kernel(f".reg .b32 %r<2>;\nmov.u32 %r1, {character}1;\n.x"))


def test_every_instruction_survives_operands_that_it_does_not_take():
    operands = [
        "",
        "%r1",
        "%r1, %r2",
        "1, 2, 3",
        "{%r1, %r2}, [x]",
        "[x], %r1",
        "%p1, !%p1",
        "x, x, x, x",
        "1.5, _, [0]",
    ]
    modifiers = ["", ".u32", ".sync.f32", ".global.v4.b128", ".x.y.z", "..", ".rn.f16x2.f32"]
    tried = 0
    for opcode in TABLE:
        for given in operands:
            for modifier in modifiers:
                tried += 1
                ptx = kernel(f"{DECLARED}\n{opcode}{modifier} {given};\nret;")
                with contextlib.suppress(simulator.UnsupportedInstruction):
                    translate(simulator.load(ptx).entries["kernel"])
    assert tried > 4000


# -- malformed, deep, enormous -----------------------------------------------------------------------------

BIG = 400_000  # characters, about: a pass over them is quick, one for each of them is not

MALFORMED = {
    "empty": "",
    "no kernel": HEAD,
    "binary": "\x7fELF\x02\x01" * 1000,
    "cut in a function": HEAD + ".visible .entry kernel(",
    "cut before a body": HEAD + ".visible .entry kernel",
    "cut in a body": kernel("ret;")[:-3],
    "no name": HEAD + ".visible .entry (",
    "parameter without a type": kernel("ret;", params=".param x"),
    "no number": kernel(".reg .b32 %r<x>; ret;"),
    "array of negative size": kernel("ret;", params=".param .b8 x[-5]"),
    "long number": kernel(f".reg .b32 %r<{'9' * 10_000}>; ret;"),
    "long literal": kernel(f".reg .b32 %r<3>; mov.u32 %r1, {'9' * BIG};"),
    "alignment of zero": kernel("ret;", ".global .align 0 .b8 x[4];"),
    "alignment of three": kernel("ret;", ".global .align 3 .b8 x[4];"),
    "alignment beyond all": kernel(".shared .align 1152921504606846976 .b8 x[4]; ret;"),
    "jump to nowhere": kernel("bra NOWHERE; ret;"),
    "jump without a label": kernel("bra ; ret;"),
    "call of nothing": kernel("call ; ret;"),
    "initial value that is none": kernel("ret;", ".global .f32 x = y;"),
    "initial value that is too long": kernel("ret;", ".global .b8 x[2] = {1, 2, 3};"),
    "initial value without a size": kernel("ret;", ".global .b8 x[] = {1, 2, 3};"),
    "jump by a number to nowhere": kernel(".reg .b32 %r<2>; L: .branchtargets A, B; brx.idx %r1, L; ret;"),
}
ENORMOUS = {
    "a million registers": kernel(".reg .b32 %r<1000000>; ret;"),
    "registers again and again": kernel(".reg .b32 %r<200000>;" * 1000 + "ret;"),
    "2^60 registers": kernel(f".reg .b32 %r<{1 << 60}>; ret;"),
    "2^60 bytes": kernel("ret;", f".global .b8 x[{1 << 60}];"),
    "2^60 bytes with a value": kernel("ret;", f".global .b8 x[{1 << 60}] = {{1}};"),
    "many dimensions": kernel("ret;", f".global .b8 x{'[999999999]' * 10_000};"),
    "a parameter of 2^60 bytes": kernel("ret;", params=f".param .b8 x[{1 << 60}]"),
    "many parameters": kernel("ret;", params=", ".join(f".param .u64 x{k}" for k in range(30_000))),
    "many instructions": kernel("ret;" * (parser.MAX_INSTRUCTIONS + 1)),
    "many blocks and registers": kernel(".reg .b32 %r<60000>;" + "bra A; A:" + "bra A;" * 10_000),
    "scopes in scopes": kernel("{" * BIG),
    "vectors in vectors": kernel("mov.b32 %r1, " + "{" * BIG + ";"),
    "brackets": kernel("call (" * (BIG // 6) + ";"),
    "more text than is read": "x" * (parser.MAX_TEXT + 1),
    "jumps times jumps": kernel(
        ".reg .b32 %r<2>; L: .branchtargets " + ", ".join(["A"] * 10_000) + "; A:" + "brx.idx %r1, L;" * 100
    ),
}
# One pass for each character would take minutes: 400,000² steps.
BACKTRACKING = {
    "comments that do not end": HEAD + "/*" * (BIG // 2),
    "sections without a body": HEAD + ".section a;" * (BIG // 11),
    "newlines in a scope": kernel("{" + "\n" * BIG),
    "newlines before a file": "\n" * BIG + ".file",
    "labels that are none": kernel("{" + "a\n" * (BIG // 2)),
    "a long word": kernel("{" + "a" * BIG),
    "spaces after a word": kernel("a" + " " * BIG),
    "spaces in an array": kernel("ret;", ".global .b8 x[" + " " * BIG),
    "spaces in an array that ends": kernel("ret;", ".global .b8 x[" + " " * BIG + "];"),
    "an address": kernel("ld.global.u32 %r1, [" + "a" * BIG + "!];"),
    "an address of signs": kernel("ld.global.u32 %r1, [a" + "+-" * (BIG // 2) + "];"),
    "qualifiers": HEAD + ".a " * (BIG // 3) + ";",
    "qualifiers of a variable": HEAD + ".global " * (BIG // 8) + ".b8 x[4] y;",
    "places that are inlined": kernel(".loc 1 1 1 inlined_at" + "\n" * BIG),
    "places on one line": kernel(".loc 1 1 1 " + "inlined_at 1 " * (BIG // 13) + "\n"),
    "files": HEAD + '.file 1 "' * (BIG // 9),
    "branch targets": kernel("a: .branchtargets x " * (BIG // 20)),
    "commas": kernel("mov.u32 " + "," * BIG + ";"),
    "nothing": " " * BIG,
}


def attempt(ptx: str) -> None:
    program = simulator.load(ptx)
    entry = program.entries.get("kernel")
    if entry is None:
        raise simulator.UnsupportedInstruction("there is no kernel")
    simulator.Device(64 * MIB).launch(entry, (1,), (32,), [b"\0" * p.size for p in entry.params])


def texts(*tables: dict[str, str]):
    return pytest.mark.parametrize("ptx", [pytest.param(p, id=name) for table in tables for name, p in table.items()])


@pytest.fixture
def thrifty():
    """Fails if the test takes much processor time or memory."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KiB


@texts(MALFORMED, ENORMOUS)
def test_what_cannot_be_read_ends_in_a_clear_error(ptx, thrifty):
    with pytest.raises((simulator.UnsupportedInstruction, simulator.InvalidLaunch)) as caught:
        attempt(ptx)
    message = str(caught.value)
    assert 10 < len(message) < 1000
    assert "Traceback" not in message


@texts(BACKTRACKING)
def test_no_text_is_read_many_times(ptx, thrifty):
    """Some of these are strange but correct."""
    with contextlib.suppress(simulator.UnsupportedInstruction):
        attempt(ptx)


# -- memory and time while it runs -------------------------------------------------------------------------


def test_local_memory_is_limited_and_large_launches_run_in_parts():
    body = ".local .align 4 .b8 big[{}]; .reg .b32 %r<3>; .reg .b64 %rd<2>; mov.u64 %rd1, big; mov.u32 %r1, 7; "
    body += "st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1]; ret;"
    with pytest.raises(simulator.InvalidLaunch, match="bytes of local memory per thread"):
        launch(kernel(body.format(MAX_LOCAL_BYTES + 4)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    launch(kernel(body.format(MAX_LOCAL_BYTES)), threads=32, grid=192)  # 3 GiB together
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000  # KiB


def test_shared_memory_is_limited():
    with pytest.raises(simulator.InvalidLaunch, match="bytes of shared memory"):
        launch(kernel(".shared .align 4 .b8 x[1000000000000]; .reg .b64 %rd<2>; mov.u64 %rd1, x; ret;"))


def test_a_variable_larger_than_the_device_is_refused():
    body = ".reg .b64 %rd<2>; .reg .b32 %r<2>; mov.u64 %rd1, x; ld.global.u32 %r1, [%rd1]; ret;"
    with pytest.raises(MemoryError, match="out of device memory"):
        launch(kernel(body, ".global .align 4 .b8 x[1000000000000] = {1};"))


@pytest.mark.parametrize("body", ["A: bra A;", ".reg .b32 %r<2>; A: add.u32 %r1, %r1, 1; bra A;"])
def test_endless_loops_end(body):
    with pytest.raises(simulator.InstructionLimit):
        launch(kernel(body), path_limit=50_000)


def test_exponential_calls_are_refused_and_endless_recursion_ends():
    functions = (
        "".join(f".func f{k}() {{ call f{k + 1}, (); call f{k + 1}, (); ret; }}\n" for k in range(40))
        + ".func f40() { ret; }\n"
    )
    with pytest.raises(simulator.UnsupportedInstruction, match=f"more than {inlining.MAX_INSTRUCTIONS:,} instructions"):
        launch(kernel("call f0, (); ret;", functions))
    with pytest.raises(simulator.SimulatorError, match="call stack overflow"):
        launch(kernel("call f, (); ret;", ".func f() { call f, (); ret; }"))
    many = "".join(f".func g{k}() {{ call g{(k + 1) % 300}, (); call g{k // 2}, (); ret; }}\n" for k in range(300))
    with pytest.raises(simulator.SimulatorError, match="call stack overflow"):
        launch(kernel("call g0, (); ret;", many))


def test_blocks_times_registers_is_bounded():
    """Each block records the registers that live on."""
    assert basic_blocks.MAX_LIVENESS <= 1 << 24


# -- printf ------------------------------------------------------------------------------------------------


def printed(code: str, threads: int = 32) -> str:
    ptx = compile_cuda(f'extern "C" __global__ void kernel() {{ {code} }}')
    return launch(ptx, threads=threads).output


@pytest.mark.parametrize(
    "code",
    [
        'printf("%2000000000d", 1);',
        'printf("%.2000000000f", 1.0);',
        'printf("%*d", 2000000000, 1);',
        'printf("%.*e", 2000000000, 1.0);',
        'printf("%-99999999999999999999d", 1);',
        'for (int i = 0; i < 3000; i++) printf("' + "x" * 2000 + '\\n");',
    ],
)
def test_printf_floods_are_cut(code):
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    output = printed(code, threads=1024)
    assert 0 < len(output) <= printf.MAX_TEXT + 200
    assert time.process_time() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


def test_printf_says_what_it_leaves_out():
    output = printed('for (int i = 0; i < 100; i++) printf("' + "x" * 2000 + '\\n");', threads=32)
    assert f"it has more than {printf.MAX_TEXT} bytes]" in output
    assert len(printed('printf("%5000d", 1);', threads=1)) == printf.MAX_WIDTH
    many = printed('printf("' + "%d" * 33 + '", ' + ", ".join(["1"] * 33) + ");", threads=1)
    assert many == "1" * printf.MAX_ARGUMENTS + "%d"
