"""Machine code as text: what NVIDIA's disassembler prints, read."""

from __future__ import annotations

import re

import pytest

from warplab.compile import disassembler, nvrtc
from warplab.compile.errors import CompilerNotFound

CODE = """
extern "C" __global__ void walk(const float4 *x, float *y, int n) {
    float sum = 0;
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
        float4 v = x[i];
        sum += v.x * v.y + v.z;
    }
    y[threadIdx.x] = sum;
}
extern "C" __global__ void other(float *y) { y[0] = 1; }
"""


@pytest.fixture(scope="module")
def cubin():
    return nvrtc.compile_cubin(CODE, "walk.cu", 90)


def test_instructions_have_their_source_lines(cubin):
    rows = disassembler.disassemble(cubin, "walk")
    (load,) = [row for row in rows if row.opcode.startswith("LDG")]
    assert "128" in load.opcode.split(".")
    assert (load.file.rpartition("/")[2], load.line) == ("walk.cu", 6)
    assert {row.line for row in rows if row.opcode.startswith("STG")} == {9}
    assert {row.line for row in rows if row.opcode == "FFMA"} == {7}
    assert [row.address for row in rows] == [16 * i for i in range(len(rows))]
    assert rows[-1].opcode in ("EXIT", "BRA")  # no padding


def test_a_jump_leads_to_a_label_and_each_label_is_used(cubin):
    rows = disassembler.disassemble(cubin, "walk")
    labels = {row.label: row.address for row in rows if row.label}
    jumps = [row for row in rows if row.target]
    assert jumps
    assert labels.keys() == {row.target for row in jumps}
    assert any(labels[row.target] <= row.address and row.predicate for row in jumps)  # the loop


def test_one_kernel_of_several_is_read(cubin):
    assert len(disassembler.disassemble(cubin, "other")) < len(disassembler.disassemble(cubin, "walk"))
    with pytest.raises(ValueError, match="the machine code has no kernel missing; it has"):
        disassembler.disassemble(cubin, "missing")


def test_what_is_no_machine_code_is_refused():
    with pytest.raises(ValueError, match="nvdisasm does not read this machine code"):
        disassembler.disassemble(b"no ELF file", "walk")


def test_the_text_is_kept_for_the_next_time(cubin, monkeypatch, tmp_path):
    monkeypatch.setattr(disassembler.kept_code, "_folder", lambda: tmp_path)
    text = disassembler.listing(cubin)
    monkeypatch.setattr(disassembler, "run", None)
    assert disassembler.listing(cubin) == text
    with pytest.raises(TypeError):  # of another file there is none
        disassembler.listing(cubin + b"\0")


def test_on_a_busy_machine_it_says_that_it_did_not_end(cubin, monkeypatch):
    monkeypatch.setattr(disassembler.kept_code, "find", lambda key: None)
    monkeypatch.setattr(disassembler, "SECONDS", 0.0)
    with pytest.raises(RuntimeError, match=r"^nvdisasm did not end within 0 s$"):
        disassembler.disassemble(cubin, "walk")


def test_a_missing_disassembler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(disassembler.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    disassembler.program.cache_clear()
    try:
        with pytest.raises(CompilerNotFound, match="nvdisasm, which prints machine code, does not load"):
            disassembler.disassemble(b"", "walk")
    finally:
        disassembler.program.cache_clear()


def test_predicate_and_opcode_are_told_apart():
    row = disassembler.MachineInstruction(0, "", "@!P0 LDG.E.64 R2, desc[UR4][R2.64]", "a.cu", 3)
    assert (row.predicate, row.opcode, row.target) == ("@!P0", "LDG.E.64", "")
    assert re.match(r"\.L_x_\d+", disassembler.MachineInstruction(0, "", "@P1 BRA (.L_x_12)", "", 0).target)


def test_padding_is_left_out_and_a_last_jump_that_leads_elsewhere_is_not():
    text = """
//--------------------- .text.kernel --------------------------
.L_x_0:
        /*0000*/              @!P0 BRA `(.L_x_1) ;
        /*0010*/                   EXIT ;
.L_x_1:
        /*0020*/                   BRA `(.L_x_0) ;
.L_x_2:
        /*0030*/                   BRA `(.L_x_2);
        /*0040*/                   NOP;
"""
    rows = disassembler.parse(text, "kernel")
    assert [(row.label, row.text) for row in rows] == [
        (".L_x_0", "@!P0 BRA (.L_x_1)"),
        ("", "EXIT"),
        (".L_x_1", "BRA (.L_x_0)"),
    ]


INLINED = """
.text.k:
\t//## File "k.cu", line 9
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "k.cu", line 2 inlined at "k.cu", line 5
\t//## File "k.cu", line 5 inlined at "k.cu", line 10
\t//## File "k.cu", line 10
        /*0010*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath) ;
\t//## File "k.cu", line 11
        /*0020*/                   EXIT ;
$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath:
        /*0030*/                   MUFU.RCP R5, R0 ;
        /*0040*/                   RET.REL.NODEC R6 `(k) ;
"""


def test_callers_of_inlined_code_and_the_lines_of_called_code():
    rows = disassembler.parse("//-------- .text.k --------" + INLINED, "k")
    assert [row.line for row in rows] == [9, 2, 11, 0, 0]
    assert rows[1].callers == (("k.cu", 5), ("k.cu", 10))
    assert rows[2].callers == ()
    assert [bool(row.inside) for row in rows] == [False, False, False, True, True]
    placed = disassembler.at_their_calls(rows)
    assert [row.line for row in placed] == [9, 2, 11, 2, 2]
    assert placed[3].callers == rows[1].callers
    assert [row.text for row in placed] == [row.text for row in rows]


def test_called_code_that_nobody_calls_has_no_line():
    rows = disassembler.parse("//-------- .text.k --------" + INLINED.replace("CALL", "JUMP"), "k")
    assert [row.line for row in disassembler.at_their_calls(rows)] == [9, 2, 11, 0, 0]
