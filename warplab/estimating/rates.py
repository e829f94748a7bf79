"""Rates and latencies of cards for estimates, each from a microbenchmark or a data sheet; `rates("H100")` finds them.

They are in warplab/hardware/cards.toml, with their sources; none comes from a kernel that an estimate is held to. What
a card's paragraph may leave out is assumed from the H100's, and its source says so.
"""

from dataclasses import dataclass, field

from warplab.hardware.cards import CARDS, Card
from warplab.hardware.cards import card as find_card

# Rate of matrix products by their factors, that of FP16 being 1 (NVIDIA, H100 data sheet, without sparsity).
FACTORS = {"tf32": 0.5, "e4m3": 2.0, "e5m2": 2.0, "s8": 2.0, "u8": 2.0, "f64": 67 / 989}
# Instructions of warps per clock and SM of single ones, as swept on an H100 (sweeps.json: chains, loops, barriers).
RARE = {"MATCH": 1 / 64, "REDUX": 0.5, "BRA": 0.73, "BAR": 0.7}
# Cycles until results can be used, of what a scoreboard guards beside loads: swept on an H100 (sweeps.json: chains,
# latencies), but for I2F, F2F, DMUL and DSETP, which are taken to be as their pipe's others, and for special registers
# (S2R, S2UR, R2UR) and the matrix instructions, which are assumed.
SLOW = {
    **dict.fromkeys(("MUFU", "POPC", "FLO", "BREV", "F2I", "I2F", "F2F"), 17),
    **dict.fromkeys(("DFMA", "DADD", "DMUL", "DSETP"), 8),
    **dict.fromkeys(("S2R", "S2UR"), 30),
    **dict.fromkeys(("LDSM", "HMMA"), 33),
    **dict([("SHFL", 24), ("VOTE", 12), ("MATCH", 369), ("REDUX", 44), ("LDC", 36), ("ATOMS", 35), ("R2UR", 12)]),
}
SLOW_OTHERS = 20
L2_USED = 0.8  # of the L2, before it begins to lose what is read (working_sets: up to 40 of 50 MiB)


@dataclass(frozen=True)
class Rates:
    """What an estimate takes of a card besides its data sheet. `sources`: field to source.

    Latencies in cycles of `clock_hz`; bandwidths in bytes per second. `read_bandwidth`, `copy_bandwidth`: of the
    memory, for reads alone and for as many writes as reads; `scattered_bandwidth`: for reads of pieces of 64 bytes that
    lie anywhere. `memory_bytes`: what one access to it moves at least.
    `l2_bandwidth`, `l2_stores`: of loads from and stores to the L2, all SMs together; `partial_stores`: sectors per
    second that stores fill in part, `scattered_stores`: the same where no other store fills the rest and the memory
    must be read. `atomic_latency`: cycles until an atomic's result can be used; `atomic_clocks`,
    `atomic_float_clocks`: from one to the next on the same word, of integers and of floating-point numbers.
    `block_clocks`: from the start of a block to the next. `knee`: how sharp the bend between latency and bandwidth is
    (`launch_time`). `launch_seconds`: from event to event, of a kernel that does nothing; `next_launch_seconds`: what
    another such kernel adds. `mma_flops`, `wgmma_flops`: of mma.sync and wgmma with FP16 factors, operations per
    second. `l1_bytes`: L1 and shared memory of an SM.
    """

    card: Card
    clock_hz: float
    l1_latency: float
    shared_latency: float
    l2_latency: float
    memory_latency: float
    read_bandwidth: float
    copy_bandwidth: float
    scattered_bandwidth: float
    memory_bytes: float
    l2_bandwidth: float
    l2_stores: float
    partial_stores: float
    scattered_stores: float
    atomic_latency: float
    atomic_clocks: float
    atomic_float_clocks: float
    block_clocks: float
    knee: float
    launch_seconds: float
    next_launch_seconds: float
    mma_flops: float
    wgmma_flops: float
    l1_bytes: float
    sources: dict[str, str] = field(repr=False)

    def tensor_flops(self, product: str) -> float:
        """Return operations per second of matrix products, by shape and types, as in "m16n8k16.f32.f16"."""
        shape, _, factors = product.split(".")[:3]
        of_groups = shape.startswith("m64") and self.wgmma_flops
        return FACTORS.get(factors, 1.0) * (self.wgmma_flops if of_groups else self.mma_flops)

    def bandwidth(self, write_share: float) -> float:
        """Return bytes per second of the memory where `write_share` (0 to 1) of them are written."""
        return self.read_bandwidth - 4 * (self.read_bandwidth - self.copy_bandwidth) * write_share * (1 - write_share)


def rates(name: str | Card) -> Rates:
    """Return the rates of a card ("H100", or a `Card`). Raises ValueError for one that is unknown or has none."""
    device, h100 = find_card(name), CARDS["H100"]
    if not device.rates:
        known = ", ".join(one.name for one in CARDS.values() if one.rates)
        raise ValueError(f"no rates are known of {device.full_name}; estimates are for {known}")
    own, model = _numbers(device), _numbers(h100)
    peak, peak_of_h100 = device.bandwidth_gbs * 1e9, h100.bandwidth_gbs * 1e9
    assumed = {
        **{rate: (model[rate], "as on the H100") for rate in _SAME},
        **{rate: (model[rate] / peak_of_h100 * peak, "the H100's share of the data sheet's") for rate in _OF_PEAK},
        **{rate: (model[rate] * (own[by] / model[by]), f"the H100's, by {by}") for rate, by in _SCALED.items()},
    }
    found = {rate: value for rate, (value, _) in assumed.items()} | own
    sources = {rate: f"no measurement known; {words}" for rate, (_, words) in assumed.items()}
    own_sources = {rate: device.sources[rate] for rate in device.rates}
    return Rates(card=device, **found, sources={"clock_hz": device.source("clock_mhz"), **sources, **own_sources})


# What a card's paragraph may leave out is assumed: as on the H100, as its share of the data sheet's bandwidth, or by
# how much another rate differs.
_SAME = ("atomic_clocks", "atomic_float_clocks", "block_clocks", "knee", "launch_seconds", "next_launch_seconds")
_OF_PEAK = ("read_bandwidth", "copy_bandwidth", "scattered_bandwidth", "scattered_stores")
_SCALED = {
    "memory_latency": "clock_hz",
    "l2_stores": "l2_bandwidth",
    "partial_stores": "l2_bandwidth",
    "atomic_latency": "l2_latency",
}


def _numbers(device: Card) -> dict[str, float]:
    """Return the rates of a card's paragraph, its latencies in cycles: those below 1 are given in seconds."""
    clock = device.rates.get("clock_hz", device.clock_mhz * 1e6)
    cycles = {rate: value * clock for rate, value in device.rates.items() if rate.endswith("_latency") and value < 1}
    return {"clock_hz": clock, **device.rates, **cycles}
