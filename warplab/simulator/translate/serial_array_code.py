"""The arrays' code for one instruction that only computes, for use where a single lane runs it."""

from __future__ import annotations

import re

from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.basic_blocks import Block
from warplab.simulator.translate.block_writer import BlockWriter, Local
from warplab.simulator.translate.serial_operations import NotSerial
from warplab.simulator.translate.special_registers import REGISTERS

_OF_CHUNK = re.compile(r"\b(m|L)\b")


class ArrayCode(BlockWriter):
    """Its lines, with the registers that it reads in `read`; those that it writes are in `current`."""

    def __init__(self, translator, i: Instruction) -> None:
        super().__init__(translator, Block(0, [i]))
        try:
            self.instruction(i)
        except UnsupportedInstruction:
            raise NotSerial from None
        if any(_OF_CHUNK.search(line) for line in self.lines):
            raise NotSerial

    def local(self, register: str) -> Local:
        if register not in self.current:
            dtype = self.translator.dtypes.get(register)
            if dtype is None or register in REGISTERS:
                raise NotSerial
            name = f"a{len(self.read)}"
            self.read[register] = name
            self.current[register] = Local(name, dtype, register)
        return self.current[register]

    def address_of(self, symbol: str, dtype: str) -> str:
        raise NotSerial

    def site(self, op: str, space: str, dtype: str, count: int, offset: int) -> str:
        raise NotSerial
