"""Rates and latencies of cards for estimates, each from a microbenchmark or a data sheet; `rates("H100")` finds them.

None comes from a kernel that an estimate is held to. On the H100 most are the course's own sweeps, recorded there on
2026-11-21 (kernels/memory_access/recordings.json: strides, working_sets, bytes_in_flight, latencies, bank_conflicts;
kernels/tensor_core/recordings.json: the peaks of the tensor cores) and 2026-11-23 (sweeps.json;
kernels/serving/recordings.json: scattered). The latency of shared memory is a published one, within 3 % of what the
sweep of chains shows; so are most rates of other cards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warplab.hardware.cards import CARDS, KIB, Card
from warplab.hardware.cards import card as find_card

RECORDED = "recorded on an NVIDIA H100 80GB HBM3, 2026-11-21"
SWEPT = "warplab/estimating/sweeps.json, recorded on an NVIDIA H100 80GB HBM3, 2026-11-23"
LUO = "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024), tables of latencies"
JIA_VOLTA = "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (2018), table 3.1"
JIA_TURING = "Jia et al., Dissecting the NVidia Turing T4 GPU via Microbenchmarking (2019), table 3.1"
SHARE = "no measurement known; the H100's share of the data sheet's bandwidth"

# Results per clock and SM by pipe, in warps' instructions: lanes / 32 (NVIDIA, CUDA C++ Programming Guide 12.9, 2025,
# throughput of native arithmetic instructions). IMAD is an integer multiplication, which the FMA pipe does.
PER_CLOCK = {
    (9, 0): {"FMA": 4.0, "IMAD": 2.0, "ALU": 2.0, "FP64": 2.0, "XU": 0.5, "LSU": 1.0},
    (8, 0): {"FMA": 2.0, "IMAD": 2.0, "ALU": 2.0, "FP64": 1.0, "XU": 0.5, "LSU": 1.0},
    (7, 5): {"FMA": 2.0, "IMAD": 2.0, "ALU": 2.0, "FP64": 0.0625, "XU": 0.5, "LSU": 0.5},
    (7, 0): {"FMA": 2.0, "IMAD": 2.0, "ALU": 2.0, "FP64": 1.0, "XU": 0.5, "LSU": 1.0},
    (6, 0): {"FMA": 2.0, "IMAD": 2.0, "ALU": 2.0, "FP64": 1.0, "XU": 0.5, "LSU": 1.0},
}
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
    must be read. `atomic_latency`: cycles until an atomic's result can be used; `atomic_seconds`,
    `atomic_float_seconds`: from one to the next on the same word, of integers and of floating-point numbers.
    `block_clocks`: from the start of a block to the next. `knee`: how sharp the bend between latency and bandwidth is
    (`launch_time`). `launch_seconds`: from event to event, of a kernel that does nothing; `next_launch_seconds`: what
    another such kernel adds. `mma_flops`, `wgmma_flops`: of mma.sync and wgmma with FP16 factors, operations per
    second. `l1_bytes`: L1 and shared memory of an SM. `validated`: whether estimates were held
    to times on this card.
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
    memory_bytes: int
    l2_bandwidth: float
    l2_stores: float
    partial_stores: float
    scattered_stores: float
    atomic_latency: float
    atomic_seconds: float
    atomic_float_seconds: float
    block_clocks: float
    knee: float
    launch_seconds: float
    next_launch_seconds: float
    mma_flops: float
    wgmma_flops: float
    l1_bytes: int
    validated: bool
    sources: dict[str, str] = field(repr=False)

    @property
    def per_clock(self) -> dict[str, float]:
        """Instructions of warps per clock and SM, by pipe."""
        return PER_CLOCK[self.card.compute_capability]

    def tensor_flops(self, product: str) -> float:
        """Operations per second of matrix products, by shape and types, as in "m16n8k16.f32.f16"."""
        shape, _, factors = product.split(".")[:3]
        of_groups = shape.startswith("m64") and self.wgmma_flops
        return FACTORS.get(factors, 1.0) * (self.wgmma_flops if of_groups else self.mma_flops)

    def bandwidth(self, write_share: float) -> float:
        """Bytes per second of the memory where `write_share` (0 to 1) of them are written."""
        return self.read_bandwidth - 2 * (self.read_bandwidth - self.copy_bandwidth) * min(write_share, 0.5)


def _h100(name: str, **other) -> Rates:
    device = find_card(name)
    values = {
        "clock_hz": 1.98e9,
        "l1_latency": 22e-9 * 1.98e9,
        "shared_latency": 29,
        "l2_latency": 144e-9 * 1.98e9,
        "memory_latency": _MEMORY_SECONDS * 1.98e9,
        "read_bandwidth": 3.10e12,
        "copy_bandwidth": 2.83e12,
        "scattered_bandwidth": 2.05e12,
        "memory_bytes": 64,
        "l2_bandwidth": 7.7e12,
        "l2_stores": 4.2e12,
        "partial_stores": 57e9,
        "scattered_stores": 13.5e9,
        "atomic_latency": 500,
        "atomic_seconds": 1.451 / 1.98e9,
        "atomic_float_seconds": 3.481 / 1.98e9,
        "block_clocks": 1.187,
        "knee": 1.85,
        "launch_seconds": 3.7e-6,
        "next_launch_seconds": 1.4e-6,
        "mma_flops": 596e12,
        "wgmma_flops": 844e12,
        "l1_bytes": 256 * KIB,
        "validated": True,
        "sources": {
            "clock_hz": f"bank_conflicts, {RECORDED}: one wavefront per clock",
            "l1_latency": f"latencies, {RECORDED}: 22 ns at 16 KiB (24 at 64 KiB)",
            "shared_latency": LUO,
            "l2_latency": f"latencies, {RECORDED}: 144 ns from 1 to 16 MiB",
            "memory_latency": f"latencies, {RECORDED}: 350 ns from 64 MiB on",
            "read_bandwidth": f"working_sets, {RECORDED}: 3.08 to 3.12 TB/s from 512 MiB on, still falling there",
            "copy_bandwidth": f"bytes_in_flight, {RECORDED}: at most 2.83 to 2.85 TB/s read and written",
            "scattered_bandwidth": f"scattered, {SWEPT}: 32 billion pieces of 32 or 64 bytes per second, within 1 GiB",
            "memory_bytes": f"strides, {RECORDED}: a stride of 64 bytes takes as long as reading all",
            "l2_bandwidth": f"working_sets, {RECORDED}: 8.3 TB/s at 4 MiB, 7.3 at 40 MiB",
            "partial_stores": "scattered (kernels/serving/recordings.json), recorded on an NVIDIA H100 80GB HBM3, "
            "2026-11-23: 44 to 53 billion sectors per second, filled in part by stores 16 KiB apart; and scattered, "
            f"{SWEPT}: 66 billion anywhere within 8 MiB; the middle",
            "l2_stores": f"scattered, {SWEPT}: 4.1 to 4.3 TB/s of whole lines, within 8 MiB",
            "scattered_stores": f"scattered, {SWEPT}: 13.5 billion sectors per second, filled in part, within 1 GiB",
            "atomic_latency": f"latencies, {SWEPT}: 500 cycles from an exchange to the next that needs its result",
            "atomic_seconds": f"global_atomics, {SWEPT}: 1.45 clocks from one to the next on the same word",
            "atomic_float_seconds": f"global_atomics, {SWEPT}: 3.48 clocks, float32, float64 and pairs of float16",
            "block_clocks": f"starts, {SWEPT}: 1.19 clocks for each block of 32 to 512 threads, 1.39 for 1024",
            "knee": f"bytes_in_flight, {RECORDED}: one load of 4 bytes per thread, 4 to 64 warps per SM",
            "launch_seconds": f"bank_conflicts, {RECORDED}: 3.8 microseconds are left at no wavefront, 0.1 of them "
            "the kernel's own",
            "next_launch_seconds": f"launch_overhead, {RECORDED}: 1.88 microseconds, less the kernel's own latency",
            "mma_flops": f"peaks of mma.sync, {RECORDED}: 549 to 643 TFLOP/s, by how warm the card is",
            "wgmma_flops": "peak of wgmma, recorded on an NVIDIA H100 80GB HBM3, 2026-11-22: 844 TFLOP/s",
            "l1_bytes": device.source(""),
        },
    }
    return Rates(card=device, **{**values, **other})


# Of other cards: latencies of L1, shared memory and L2 (cycles), bandwidth of the L2 (bytes per second), source.
_PUBLISHED = {
    "P100": (82, 24, 234, 1.62e12, JIA_TURING),
    "V100": (28, 19, 193, 2.16e12, JIA_VOLTA),
    "T4": (32, 19, 188, 1.27e12, JIA_TURING),
    "A100": (38, 29, 262, 4.9e12, f"{LUO}; L2 bandwidth: the H100's bytes per clock and SM"),
}
_MEMORY_SECONDS = 350e-9  # latency of the H100's memory, taken for other cards too
# Shares of the data sheet's bandwidth.
_H100_READ, _H100_COPY, _H100_SCATTERED = 3.10e12 / 3.35e12, 2.83e12 / 3.35e12, 2.05e12 / 3.35e12


def rates(name: str | Card) -> Rates:
    """Return the rates of a card ("H100", or a `Card` of the course). Raises ValueError for an unknown card."""
    device = find_card(name)
    peak = device.bandwidth_gbs * 1e9
    of_memory = {
        "read_bandwidth": _H100_READ * peak,
        "copy_bandwidth": _H100_COPY * peak,
        "scattered_bandwidth": _H100_SCATTERED * peak,
    }
    if device.name == "H100":
        return _h100("H100")
    if device.name == "H200":
        return _h100("H200", **of_memory, validated=False)
    if device.name not in _PUBLISHED:
        raise ValueError(f"no rates are known of {device.full_name}; estimates are for {', '.join(CARDS)}")
    l1, shared, l2, l2_bandwidth, source = _PUBLISHED[device.name]
    clock = device.clock_mhz * 1e6
    per_slice = _h100("H100")
    slower = l2_bandwidth / per_slice.l2_bandwidth
    values = {
        "clock_hz": clock,
        "l1_latency": l1,
        "shared_latency": shared,
        "l2_latency": l2,
        "memory_latency": _MEMORY_SECONDS * clock,
        **of_memory,
        "memory_bytes": 32,
        "l2_bandwidth": l2_bandwidth,
        "l2_stores": per_slice.l2_stores * slower,
        "partial_stores": per_slice.partial_stores * slower,
        "scattered_stores": per_slice.scattered_stores * peak / (find_card("H100").bandwidth_gbs * 1e9),
        "atomic_latency": l2 * per_slice.atomic_latency / per_slice.l2_latency,
        "atomic_seconds": 1.451 / clock,
        "atomic_float_seconds": 3.481 / clock,
        "mma_flops": 0.95 * (device.tensor_tflops or 0.0) * 1e12,
        "wgmma_flops": 0.0,
        "l1_bytes": max(device.shared_bytes, _L1_BYTES[device.name]),
        "validated": False,
        "sources": {
            **dict.fromkeys(("l1_latency", "shared_latency", "l2_latency", "l2_bandwidth"), source),
            "memory_latency": "no measurement at hand; the H100's 350 ns",
            **dict.fromkeys(("read_bandwidth", "copy_bandwidth", "scattered_bandwidth"), SHARE),
            "clock_hz": device.source("clock_mhz"),
        },
    }
    return _h100(device.name, **values)


_L1_BYTES = {"P100": 24 * KIB, "V100": 128 * KIB, "T4": 96 * KIB, "A100": 192 * KIB}
