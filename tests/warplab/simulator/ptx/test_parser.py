"""PTX as compilers write it, and what is no PTX: refused, with its line."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.simulator.ptx.parser import parse_instruction
from warplab.simulator.ptx.program import Register, Vector

# `out` gets what the kernel computes from `a`: 32 threads, one element each.
KERNEL = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(
    .param .u64 .ptr .global .align 16 kernel_param_0,
    .param .align 8 .b8 kernel_param_1[16]
)
.reqntid 32
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p<2>;
    ld.param.b64 %rd1, [kernel_param_0];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
{}
    ret;
}}
"""


def run(body: str, struct: bytes = b"\1" + 15 * b"\0") -> np.ndarray:
    device = simulator.Device(1 << 26)
    out = device.memory.allocate(128)
    device.memory.view(out, 128)[:] = np.arange(32, dtype="u4").view("u1")
    device.memory.mark_initialized(out, 128)
    entry = simulator.load(KERNEL.format(body)).entries["kernel"]
    device.launch(entry, (1,), (32,), [out.to_bytes(8, "little"), struct])
    return device.memory.view(out, 128).view("u4").copy()


# As LLVM writes them for Triton.
BRACES_OF_ONE = {
    "load and store": "ld.global.b32 { %r2 }, [ %rd2 + 0 ]; add.u32 %r3, %r2, %r2; st.global.b32 [ %rd2+0 ], { %r3 };",
    "guarded": "setp.lt.u32 %p1, %r1, 99; @%p1 ld.global.b32 { %r2 }, [%rd2+0]; add.u32 %r3, %r2, {%r2}; "
    "@%p1 st.global.b32 [%rd2+0], {%r3};",
    "shared memory": ".shared .align 4 .b8 s[128]; ld.global.b32 {%r2}, [%rd2]; shl.b32 %r4, %r1, 2; mov.b32 %r5, s; "
    "add.u32 %r4, %r5, %r4; st.shared.b32 [%r4], {%r2}; ld.shared.b32 {%r3}, [%r4]; add.u32 %r3, %r3, %r2; "
    "st.global.b32 [%rd2], {%r3};",
    "moves": "ld.global.b32 %r2, [%rd2]; mov.b32 {%r3}, {%r2}; mov.b64 %rd3, {%r3, %r2}; mov.b64 {%r4, %r5}, %rd3; "
    "add.u32 %r6, %r4, %r5; st.global.b32 [%rd2], %r6;",
    "sink": "ld.global.b32 %r2, [%rd2]; mov.b64 %rd3, {%r2, %r2}; mov.b64 {_, %r5}, %rd3; add.u32 %r6, %r2, %r5; "
    "st.global.b32 [%rd2], %r6;",
}


@pytest.mark.parametrize("body", BRACES_OF_ONE.values(), ids=BRACES_OF_ONE)
def test_braces_of_one(body):
    np.testing.assert_array_equal(run(body), 2 * np.arange(32))


def test_braces_of_one_are_the_element_and_arguments_stay_a_list():
    (one, _) = parse_instruction("ld.global.b32 { %r1 }, [ %rd1 + 0 ]").operands
    assert one == Register("%r1")
    assert parse_instruction("call (x), f, (y)").operands[0] == Vector((parse_instruction("bra x").operands[0],))
    assert isinstance(parse_instruction("ld.global.v2.b32 {%r1, %r2}, [%rd1]").operands[0], Vector)


@pytest.mark.parametrize("text", ["ld.v2.b32 {%r1, %r2},[%rd1]", "st.v2.b32 [%rd1],{%r1, %r2}"])
def test_no_space_is_needed_before_the_operands(text):
    tight, loose = parse_instruction(text.replace(" ", "", 1)), parse_instruction(text)
    assert (tight.opcode, tight.modifiers, tight.operands) == (loose.opcode, loose.modifiers, loose.operands)


def test_parameters_by_pointers_of_32_and_of_64_bits():
    """LLVM's option nvptx-short-ptr, which Triton sets, gives addresses of parameters 32 bits."""
    struct = np.array([5, 6, 7, 8], "u4").tobytes()
    rest = "ld.global.b32 %r4, [%rd2]; add.u32 %r4, %r4, %r3; st.global.b32 [%rd2], %r4;"
    short = "mov.b32 %r2, kernel_param_1; cvt.u64.u32 %rd3, %r2; cvta.param.u64 %rd4, %rd3; ld.b32 %r3, [%rd4+8]; "
    long = "mov.b64 %rd3, kernel_param_1; cvta.param.u64 %rd4, %rd3; ld.b32 %r3, [%rd4+8]; "
    loaded = "mov.b32 %r2, kernel_param_1; ld.param.b32 %r3, [%r2+8]; "
    for body in (short, long, loaded):
        np.testing.assert_array_equal(run(body + rest, struct), np.arange(32) + 7)


MALFORMED = {
    "open brace": "ld.global.b32 { %r1 , [%rd1];",
    "open bracket": "ld.global.b32 %r1, [%rd1;",
    "wrong bracket": "ld.global.b32 %r1, [%rd1};",
    "closed twice": "ld.global.v2.b32 {%r1, %r2}}, [%rd1];",
    "empty braces": "ld.global.b32 {}, [%rd1];",
    "braces in braces": "ld.global.b32 {{%r1}}, [%rd1];",
    "no operand": "add.u32 %r1, , %r2;",
    "comma at the end": "add.u32 %r1, %r2, %r3,;",
    "comma in a vector": "ld.global.v2.b32 {%r1, %r2,}, [%rd1];",
    "text after a vector": "ld.global.v2.b32 {%r1, %r2} %r3, [%rd1];",
    "address without a base": "ld.global.b32 %r1, [+];",
    "register without a count": ".reg .b32 %q<>;",
    "no semicolon": "add.u32 %r1, %r1, %r1",
    "variable without a type": ".shared .align 4 s[4];",
    "variable of an odd alignment": ".shared .align x .b8 s[4];",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_malformed_text_is_refused_with_its_line(text):
    comment = "/* two\n lines */ // and a third\n"
    ptx = comment + KERNEL.format(f"    mov.u32 %r3, 1;\n    {text}")
    line = 1 + next(k for k, written in enumerate(ptx.splitlines()) if text in written)
    with pytest.raises(simulator.UnsupportedInstruction) as caught:
        simulator.load(ptx)
    assert f"at line {line} of the PTX" in str(caught.value)


VECTORS = {
    "whole": ".reg .v2 .b32 %v; mov.b32 %v.x, %r1; mov.b32 %v.y, 5; mov.b64 %rd3, %v; shr.u64 %rd4, %rd3, 32; "
    "cvt.u32.u64 %r2, %rd4; add.u32 %r2, %r2, %v.x; st.global.b32 [%rd2], %r2;",
    "colours": ".reg .v4 .u32 v; mov.u32 v.r, %r1; mov.u32 v.y, 1; mov.u32 v.b, 2; mov.u32 v.a, 2; "
    "add.u32 %r2, v.x, v.g; add.u32 %r2, %r2, v.z; add.u32 %r2, %r2, v.w; st.global.b32 [%rd2], %r2;",
    "memory": ".shared .align 8 .b8 s[256]; .reg.v2.b32 v; mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 8, %r3; "
    "mov.u32 v.x, %r1; mov.u32 v.y, 5; st.shared.v2.b32 [%r3], v; { .reg .v2 .b32 v; ld.shared.v2.b32 v, [%r3]; "
    "add.u32 %r2, v.x, v.y; } st.global.b32 [%rd2], %r2;",
}


@pytest.mark.parametrize("body", VECTORS.values(), ids=VECTORS)
def test_registers_of_a_vector_type(body):
    np.testing.assert_array_equal(run(body), np.arange(32) + 5)


@pytest.mark.parametrize("body", [".reg .v3 .b32 %v;", ".reg .v2;", ".reg .v2 .b32 %v; mov.u32 %r2, %v.z;"])
def test_vectors_that_there_are_not_are_refused(body):
    with pytest.raises(simulator.SimulatorError):
        run(body)


def test_a_sum_of_16_bits_ends_a_chain():
    """ptxas takes addc.u16, whose operands it adds as numbers of 32 bits with the carry: of that the lower half."""
    start = ".reg .b16 h; mov.u32 %r4, -16; add.cc.u32 %r3, %r1, %r4;"
    for end, wanted in (("addc.u16 h, h, 65535;", -1), ("addc.s16 h, h, 0;", 0)):
        found = run(f"{start} cvt.u16.u32 h, %r1; {end} cvt.u32.u16 %r2, h; st.global.b32 [%rd2], %r2;")
        lanes = np.arange(32)
        np.testing.assert_array_equal(found, (lanes + wanted + (lanes >= 16)) % 65536)
    with pytest.raises(simulator.UnsupportedInstruction):
        run(f"{start} cvt.u16.u32 h, %r1; addc.cc.u16 h, h, h;")
