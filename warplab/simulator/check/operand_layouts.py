"""Operands of wgmma and tcgen05 whose descriptor names another swizzle than the tensor copy had that brought them.

The record keeps, for each 16 bytes of shared memory, the swizzle of the latest tensor copy into them; what threads
store themselves may lie in any way.
"""

import numpy as np

from warplab.simulator.errors import WrongDescriptor
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer
from warplab.simulator.translate.translation import Translation

_PIECE_BYTES = 16
_SWIZZLES = (None, 0, 32, 64, 128)  # by the number in the record


def has_both(translation: Translation) -> bool:
    """Return whether a kernel has wgmma or tcgen05, and tensor copies."""
    instructions = [i for block in translation.blocks for i in block.counted]
    products = any(i.opcode in ("wgmma", "tcgen05") for i in instructions)
    return products and any(i.opcode == "cp" and "tensor" in i.modifiers for i in instructions)


class OperandLayouts(Observer):
    """The record of one chunk."""

    def watch(self, chunk) -> "OperandLayouts":
        self.chunk = chunk
        self.layout = np.zeros(-(-chunk.access.shared.nbytes // _PIECE_BYTES), np.uint8)
        return self

    def tensor_copy(self, site, addresses: Addresses, lanes, swizzle: int) -> None:
        self.layout[self._pieces(addresses, 0)] = _SWIZZLES.index(swizzle)

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space == "shared":
            self.layout[self._pieces(addresses, site.offset)] = 0

    def _pieces(self, addresses: Addresses, offset: int) -> np.ndarray:
        return addresses.units(offset, _PIECE_BYTES)

    def operand(self, site, name: str, addresses: Addresses, lanes, swizzle: int) -> None:
        found = self.layout.take(self._pieces(addresses, 0))
        wrong = (found != 0) & (found != _SWIZZLES.index(swizzle))
        if wrong.any():
            place = int(np.argmax(wrong))
            came = _SWIZZLES[found[place]]
            raise WrongDescriptor(
                f"the descriptor of {name} says {_words(swizzle)}, but the tensor copy that brought these bytes had "
                f"{_words(came)}",
                reason="The swizzle of the tensor map and that of the descriptor (its highest bits) must be the same.",
                address=int(addresses.base[place]),
                **self.chunk.where(site, int(lanes[place])),
            )


def _words(swizzle: int | None) -> str:
    return f"a swizzle of {swizzle} bytes" if swizzle else "no swizzle"
