"""How many thread blocks of a kernel fit on one streaming multiprocessor (SM) of a card at once.

The arithmetic is that of NVIDIA's `cuda_occupancy.h` (CUDA 13.0), which the CUDA runtime's occupancy functions use,
with shared memory set to its largest share of the L1 cache. The limits are those of the card's compute capability in
cards.toml. A test holds the two together.
"""

from dataclasses import dataclass

from warplab.hardware.cards import Card, card

WARP_SIZE = 32
MAX_THREADS = 1024  # per block
MAX_REGISTERS = 255  # per thread
REGISTERS = 65536  # per SM, and the most that one block can have; the same from 6.0 to 12.0
REGISTER_UNIT = 256  # warps get registers in multiples of this


@dataclass(frozen=True)
class Occupancy:
    """How full an SM of `card` gets. `limits`: number of blocks that each resource has room for.

    `blocks`, `warps`: on one SM at once; `max_warps`: most that an SM has room for.
    """

    card: Card
    threads: int
    limits: dict[str, int]
    problem: str = ""

    @property
    def blocks(self) -> int:
        return min(self.limits.values())

    @property
    def warps(self) -> int:
        return self.blocks * -(-self.threads // WARP_SIZE)

    @property
    def max_warps(self) -> int:
        return self.card.max_threads // WARP_SIZE

    @property
    def fraction(self) -> float:
        """Return the share of the warps that the SM has room for (0 to 1)."""
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Return the resources that allow no further block."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.card.name}: no block fits: {self.problem}"
        return (
            f"{self.card.name}: {self.blocks} block{'s' * (self.blocks != 1)} of {self.threads:,} threads on an SM, "
            f"{self.warps} of {self.max_warps} warps: {100 * self.fraction:.3g} %, "
            f"limited by {' and '.join(self.limited_by)}"
        )


def theoretical(
    name: str | Card, threads: int, *, registers: int = 0, shared_bytes: int = 0, barriers: int = 0
) -> Occupancy:
    """Return the occupancy of blocks of `threads` threads on a card ("H100", or a `Card`).

    `registers`: per thread. `shared_bytes`: static and dynamic, per block; beyond 48 KiB it must be dynamic and asked
    for (cudaFuncSetAttribute). `barriers`: named barriers per block. Raises ValueError for numbers that no kernel can
    have. Where no block fits, the occupancy has 0 blocks and a `problem`.
    """
    device = card(name)
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"a block has 1 to {MAX_THREADS:,} threads, not {threads:,}")
    if not 0 <= registers <= MAX_REGISTERS:
        raise ValueError(f"a thread has at most {MAX_REGISTERS} registers, not {registers}")
    if shared_bytes < 0 or barriers < 0:
        raise ValueError("shared_bytes and barriers cannot be negative")
    warps = -(-threads // WARP_SIZE)
    blocks = {"threads": device.max_threads // WARP_SIZE // warps, "blocks": device.max_blocks}
    problem = ""
    if registers:
        blocks["registers"] = _by_registers(registers, warps, device.partitions)
        # The driver refuses on the P100, whose SM has two partitions, what later Pascal cards, with four, cannot run.
        if device.compute_capability == (6, 0) and not _by_registers(registers, warps, 4):
            blocks["registers"] = 0
        if not blocks["registers"]:
            problem = f"{warps} warps of {registers} registers per thread need more than the {REGISTERS:,} of an SM"
    shared = _round_up(shared_bytes + device.reserved_shared_bytes, device.shared_unit)
    if shared_bytes > device.block_shared_bytes:
        blocks["shared memory"] = 0
        problem = f"a block needs {shared_bytes:,} bytes of shared memory, it can have {device.block_shared_bytes:,}"
    elif shared:
        blocks["shared memory"] = device.shared_bytes // shared
    if barriers and device.barriers:
        blocks["barriers"] = device.barriers // barriers
    return Occupancy(device, threads, blocks, problem)


def _by_registers(registers: int, warps: int, partitions: int) -> int:
    """Count the blocks of so many warps that the registers of an SM are enough for."""
    of_warp = _round_up(registers * WARP_SIZE, REGISTER_UNIT)
    if of_warp * _round_up(warps, partitions) > REGISTERS:  # the hardware assumes that all partitions are equally full
        return 0
    return REGISTERS // partitions // of_warp * partitions // warps


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
