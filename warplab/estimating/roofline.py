"""Roofline: the shortest time that a launch can take on a real card, by arithmetic from its counters.

    memory         footprint / memory bandwidth, where the footprint is each distinct 32-byte sector that loads touched
                   and each that stores touched, once
    FP32           FP32 operations / (FP32 peak x share); FP64 and FP16 likewise
    instructions   warp instructions / (SMs x instructions per clock and SM x boost clock x share)
    share          min(1, blocks / SMs): a block runs on one SM, so a small grid leaves the others idle

The largest term is the prediction and names the limit (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009).
It is a lower bound: no latency, no launch overhead, no cache misses after the first touch of a sector, so data read
again after it has left the L2 count once. Traffic between L1 and L2 is left out, because NVIDIA publishes its rate
for only two of the cards. Two terms can be too high: memory, where the data are already in the L2; instructions,
because they are PTX's and the assembler may merge some. Nothing here is a measurement.
"""

from dataclasses import dataclass
from math import prod

from warplab.hardware.cards import CARDS, Card
from warplab.hardware.cards import card as find_card
from warplab.launch.profile_queries import launches, no_counts, only_launch, sectors, size
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import LaunchProfile
from warplab.text.tables import Column, Table, count, document, duration, paragraph, quantity

LABEL = "Predicted by roofline: a lower bound by arithmetic, no measurement."


@dataclass(frozen=True)
class Term:
    """One resource: `work` units at `rate` units per second take `seconds`."""

    name: str
    work: float
    rate: float
    unit: str

    @property
    def seconds(self) -> float:
        return self.work / self.rate


@dataclass(frozen=True)
class Prediction:
    """The bound for `launch` on `card`: `seconds`, the `limit` that sets it, all `terms`, `notes` on its validity."""

    launch: LaunchProfile
    card: Card
    terms: tuple[Term, ...]
    notes: tuple[str, ...]

    @property
    def kernel(self) -> str:
        return self.launch.kernel

    @property
    def seconds(self) -> float:
        return self._largest.seconds

    @property
    def limit(self) -> str:
        return self._largest.name

    @property
    def _largest(self) -> Term:
        return max(self.terms, key=lambda term: term.seconds)

    def text(self) -> str:
        return "\n".join([self._head(), self._table().text(), *self.notes, LABEL])

    def html(self) -> str:
        notes = [paragraph(note) for note in self.notes]
        return document([paragraph(self._head()), self._table().html(), *notes, paragraph(LABEL, muted=True)])

    __str__ = __repr__ = text
    _repr_html_ = html

    def _head(self) -> str:
        return f"{self.kernel} on {self.card.full_name}: at least {duration(self.seconds)}, limited by {self.limit}"

    def _table(self) -> Table:
        rows = [
            [t.name, quantity(t.work, t.unit), quantity(t.rate, f"{t.unit}/s"), duration(t.seconds)] for t in self.terms
        ]
        columns = [Column("resource", "left"), Column("work"), Column("at most"), Column("at least")]
        return Table(columns, rows, {(self.terms.index(self._largest), 3)}, "Least time by resource")


def roofline(profile: object, card: str | Card = "H100") -> Prediction:
    """Return the roofline bound of one launch on `card` (see `warplab.hardware.cards`), from its counters.

    `profile`: a `LaunchProfile`, or a profile of exactly one launch.
    Raises ValueError for an unknown card, for several launches and where the profile holds no counts.
    """
    launch, card = only_launch(profile, "roofline", ", or use roofline_all(p)"), find_card(card)
    if launch.counts.warp_instructions == 0:
        raise no_counts(launch)
    if sectors(launch.counts) > 0 and footprint(launch) == 0:
        raise ValueError(f"the profile of {launch.kernel} holds no memory footprint; launch it in `with profile():`")
    return Prediction(launch, card, tuple(_terms(launch, card)), tuple(_notes(launch, card)))


def footprint(launch: LaunchProfile) -> int:
    """Count the bytes that must move at least once: those of distinct sectors loaded and of distinct sectors stored."""
    return launch.footprint.get("global_load_bytes", 0) + launch.footprint.get("global_store_bytes", 0)


def flops(launch: LaunchProfile) -> int:
    """Count the floating-point operations of all precisions."""
    c = launch.counts
    return c.flops_f16 + c.flops_f32 + c.flops_f64


def fills(launch: LaunchProfile, card: Card) -> bool:
    """Return whether every warp scheduler of the card gets at least one warp of the launch."""
    return _warps(launch) >= card.sms * card.warp_schedulers


def _warps(launch: LaunchProfile) -> int:
    return prod(launch.grid) * -(-prod(launch.block) // WARP_SIZE)


def peaks(launch: LaunchProfile, card: Card) -> dict[str, tuple[int, float | None]]:
    """Return by precision the floating-point operations of a launch and the card's peak, TFLOP/s; None if unknown."""
    c = launch.counts
    return {
        "FP64": (c.flops_f64, card.fp64_tflops),
        "FP32": (c.flops_f32, card.fp32_tflops),
        "FP16": (c.flops_f16, card.fp16_tflops),
    }


def _terms(launch: LaunchProfile, card: Card) -> list[Term]:
    share = min(1.0, prod(launch.grid) / card.sms)
    issue = card.sms * card.issue_rate * card.clock_mhz * 1e6
    terms = [
        Term("memory", footprint(launch), card.bandwidth_gbs * 1e9, "B"),
        *(Term(name, work, peak * 1e12 * share, "FLOP") for name, (work, peak) in peaks(launch, card).items() if peak),
        Term("instructions", launch.counts.warp_instructions, issue * share, "instr"),
    ]
    return [term for term in terms if term.work]


def _notes(launch: LaunchProfile, card: Card) -> list[str]:
    notes = []
    moved = footprint(launch)
    if 0 < moved <= card.l2_bytes:
        notes.append(
            f"The {quantity(moved, 'B')} fit in the L2 ({quantity(card.l2_bytes, 'B')}): "
            "on data that are already there the memory term does not hold."
        )
    unknown = [name for name, (work, peak) in peaks(launch, card).items() if work and not peak]
    if unknown:
        notes.append(f"The {card.name}'s peak for {' and '.join(unknown)} is not known here: that time is left out.")
    if not fills(launch, card):
        measured = card.launch_overhead_us is not None
        overhead = f"{card.launch_overhead_us:g} microseconds" if measured else "not measured for this card"
        notes.append(
            f"{count(_warps(launch))} warps for {count(card.sms * card.warp_schedulers)} warp schedulers: the grid "
            f"does not fill the card, and launch overhead ({overhead}) and latency dominate the real time."
        )
    return notes


@dataclass(frozen=True)
class Predictions:
    """Bounds of one or more launches (columns) on all cards (rows); `rows[i][j]` is a `Prediction`."""

    rows: tuple[tuple[Prediction, ...], ...]

    def text(self) -> str:
        return "\n".join([self._table().text(), *self._notes(), LABEL])

    def html(self) -> str:
        notes = [paragraph(note) for note in self._notes()]
        return document([self._table().html(), *notes, paragraph(LABEL, muted=True)])

    __str__ = __repr__ = text
    _repr_html_ = html

    def _table(self) -> Table:
        columns = [Column("card", "left"), Column("memory bandwidth"), Column("FP32 peak")]
        for p in self.rows[0]:
            columns += [Column(f"{p.kernel} ({size(p.launch)})"), Column("limit", "left")]
        rows = []
        for predictions in self.rows:
            card = predictions[0].card
            row = [card.full_name, quantity(card.bandwidth_gbs * 1e9, "B/s"), f"{card.fp32_tflops:.1f} TFLOP/s"]
            rows.append(row + [cell for p in predictions for cell in (f"at least {duration(p.seconds)}", p.limit)])
        return Table(columns, rows, caption="Least time by card")

    def _notes(self) -> list[str]:
        notes = []
        for column in zip(*self.rows, strict=True):
            small = [p.card.name for p in column if not fills(p.launch, p.card)]
            if small:
                launch = column[0].launch
                notes.append(
                    f"{launch.kernel} ({size(launch)}) does not fill {', '.join(small)}: there launch overhead and "
                    "latency dominate the real time."
                )
        return notes


def roofline_all(profile: object) -> Predictions:
    """Return the roofline bounds of every launch of `profile` on every card. Raises ValueError as `roofline` does."""
    found = launches(profile)
    if not found:
        raise ValueError("the profile has no launch to predict; launch a kernel in `with profile():`")
    return Predictions(tuple(tuple(roofline(launch, card) for launch in found) for card in CARDS.values()))
