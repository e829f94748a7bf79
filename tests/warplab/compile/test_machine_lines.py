"""PTX with a line of its own for each instruction: the machine code stays the same, and says where it comes from."""

from __future__ import annotations

import shutil

import pytest

from tests.support import machine_kernels as kernels
from warplab.compile import disassembler, machine_lines, nvrtc, ptx_assembler
from warplab.compile.errors import CompilerNotFound
from warplab.simulator.ptx.parser import load


def positions(program):
    functions = (*program.entries.values(), *program.functions.values())
    return [i.at for function in functions for i in function.instructions]


def code(rows):
    return [row.text for row in rows]


@pytest.mark.parametrize("name", kernels.NAMES)
def test_lines_change_nothing_in_the_machine_code(name):
    """Neither against the same PTX with the compiler's own lines, nor against what NVRTC's assembler makes."""
    ptx = nvrtc.compile_cuda(kernels.CODE, "kernels.cu")
    program = load(ptx)
    _, rows, _ = machine_lines.assemble(program.text, positions(program), name, 90)
    plain = ptx_assembler.assemble_whole(ptx, name, 90)
    assert code(rows) == code(disassembler.disassemble(plain.cubin, name))
    assert code(rows) == code(disassembler.disassemble(nvrtc.compile_cubin(kernels.CODE, "kernels.cu"), name))


def test_instructions_say_which_ptx_they_come_from():
    program = load(nvrtc.compile_cuda(kernels.CODE, "kernels.cu"))
    _, rows, origins = machine_lines.assemble(program.text, positions(program), "rolled", 90)
    ptx = {i.at: i for i in program.entries["rolled"].instructions}

    def sources(opcode):
        return [ptx[at] for row, at in zip(rows, origins, strict=True) if row.opcode.split(".")[0] == opcode]

    assert [i.opcode for i in sources("LDG")] == ["ld"]
    assert [i.opcode for i in sources("STG")] == ["st"]
    assert [i.opcode for i in sources("FADD")] == ["add"]
    assert all(i.opcode == "ret" for i in sources("EXIT"))


def test_every_instruction_gets_one_line():
    program = load(nvrtc.compile_cuda(kernels.CODE, "kernels.cu"))
    text, lines = machine_lines.numbered(program.text, positions(program))
    assert text.count(".loc ") == len(lines) == len(set(positions(program)))
    assert text.count(".file ") == 1
    for line, at in lines.items():
        begin = program.text[at : at + 12].split("\n")[0]
        assert f"\n.loc 1 {line} 0\n{begin}" in text


def test_ptx_that_the_assembler_refuses_is_named():
    text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nno_such_instruction;\nret;\n}\n"
    with pytest.raises(RuntimeError, match=r"could not be assembled for sm_90: (?!ptxas)"):
        machine_lines.assemble(text, [text.index("no_such")], "k", 90)


def test_a_missing_assembler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(disassembler.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    disassembler.program.cache_clear()
    try:
        with pytest.raises(CompilerNotFound, match="ptxas, which assembles PTX, does not load"):
            ptx_assembler.assemble_whole("no PTX", "k", 90)
    finally:
        disassembler.program.cache_clear()
