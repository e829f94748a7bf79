"""What "GPU utilisation" samples, in virtual time, beside SM activity and occupancy of the same kernels.

NVML divides time into sample periods and tells, for each, the share in which at least one kernel ran: how many SMs and
how many warps it kept busy does not enter. SM activity is the share of SMs that held a warp, occupancy the share of
warps that SMs held of those they have room for, both averaged over all SMs and the time.

    kernels = [Kernel.launched(0.0, 0.5, grid=1, block=1), Kernel(0.6, 0.2, sms=132, warps=8448)]
    samples(kernels, period=0.2)
    looked_at(kernels, 0.0, 1.0)  # utilisation 0.7, SM activity 0.204, occupancy 0.2

Sources: NVML API reference, nvmlUtilization_t ("percent of time over the past sample period during which one or more
kernels was executing on the GPU"; a period is between 1/6 s and 1 s, depending on the product); DCGM user guide,
"Profiling metrics" (SM activity, SM occupancy). Times here are virtual: nothing is measured.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card
from warplab.hardware.occupancy import theoretical


@dataclass(frozen=True)
class Kernel:
    """A kernel on the GPU from `start` for so many `seconds`, on average on so many `sms` and with so many `warps`.

    `warps`: resident ones, in the whole GPU. ValueError for times and sizes that no kernel has.
    """

    start: float
    seconds: float
    sms: float
    warps: float
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse what no kernel is."""
        if not (self.seconds > 0 and math.isfinite(self.start + self.seconds)):
            raise ValueError(f"a kernel from {self.start} s for {self.seconds} s takes no time; give it some")
        if not 0 < self.sms <= self.warps:
            raise ValueError(
                f"a kernel on {self.sms} SMs with {self.warps} warps: each SM it is on holds a warp or more"
            )

    @property
    def end(self) -> float:
        return self.start + self.seconds

    @classmethod
    def launched(
        cls,
        start: float,
        seconds: float,
        grid: int,
        block: int,
        card: str | Card = "H100",
        *,
        registers: int = 0,
        shared_bytes: int = 0,
        name: str = "",
    ) -> "Kernel":
        """Return a launch of `grid` blocks of `block` threads, whose blocks all take as long as each other.

        They run in waves: as many at once as SMs have room for (`warplab.hardware.occupancy`), first one on each SM.
        The last wave may leave SMs idle, the tail effect; `sms` and `warps` are averages over the waves.
        `registers`: per thread; `shared_bytes`: per block. ValueError where no block fits.
        """
        card = find_card(card)
        if grid < 1:
            raise ValueError(f"a grid has at least one block, not {grid}")
        fits = theoretical(card, block, registers=registers, shared_bytes=shared_bytes)
        if fits.blocks < 1:
            raise ValueError(f"no block fits on an SM: {fits.problem}")
        at_once = fits.blocks * card.sms
        waves = math.ceil(grid / at_once)
        busy = [min(grid - wave * at_once, at_once) for wave in range(waves)]  # blocks of each wave
        warps = math.ceil(block / 32)
        return cls(start, seconds, sum(min(b, card.sms) for b in busy) / waves, sum(busy) * warps / waves, name)


@dataclass(frozen=True)
class Look:
    """What three instruments say of the span of time from `start` to `end`; shares, 0 to 1.

    `utilisation`: NVML's. `sm_activity`, `occupancy`: DCGM's, over all SMs and the whole span.
    """

    start: float
    end: float
    utilisation: float
    sm_activity: float
    occupancy: float


def looked_at(kernels: Iterable[Kernel], start: float, end: float, card: str | Card = "H100") -> Look:
    """Return what instruments say of the kernels' part between `start` and `end`.

    Kernels that overlap share the card as far as it has room: together they are on at most all of its SMs, with at most
    as many warps as it holds. ValueError for an empty span.
    """
    card = find_card(card)
    if not start < end:
        raise ValueError(f"from {start} s to {end} s is no span of time; end it after it starts")
    inside = [k for k in kernels if k.start < end and start < k.end]
    times = sorted({start, end, *(t for k in inside for t in (k.start, k.end) if start < t < end)})
    ran = on_sms = held = 0.0
    for a, b in itertools.pairwise(times):
        now = [k for k in inside if k.start < b and a < k.end]
        ran += (b - a) * bool(now)
        on_sms += (b - a) * min(sum(k.sms for k in now), card.sms)
        held += (b - a) * min(sum(k.warps for k in now), card.max_warps)
    whole = end - start
    return Look(start, end, ran / whole, on_sms / whole / card.sms, held / whole / card.max_warps)


def samples(
    kernels: Sequence[Kernel], period: float, until: float | None = None, *, card: str | Card = "H100"
) -> list[Look]:
    """Return one `Look` per sample period of `period` seconds, from 0 on; the last one begins before `until`.

    `until`: else when the last kernel ends. ValueError for a period that is not positive.
    """
    if not period > 0:
        raise ValueError(f"a sample period of {period} s samples nothing; NVML's are 1/6 s to 1 s")
    until = max((k.end for k in kernels), default=0.0) if until is None else until
    # The last period is not one more because of rounding.
    count = max(0, math.ceil(until / period - 1e-9))
    return [looked_at(kernels, i * period, (i + 1) * period, card) for i in range(count)]
