"""Six real cards and their published limits, each number with its source. `card("H100")` looks one up.

Peaks are what the data sheet promises at boost clock; a card under load runs below them. The FP32 peak is
SMs x FP32 cores per SM x 2 (an FMA is two operations) x boost clock; the others likewise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Card:
    """One GPU as sold. `sources` maps a field to its source; "" is the source of all fields not named.

    `sms`: streaming multiprocessors. `fp32_cores`, `fp64_cores`, `warp_schedulers`, `issue_rate` (warp instructions
    per clock), `shared_bytes` (most that blocks can use) and `max_threads` (resident) are for one SM.
    `clock_mhz`: boost clock outside tensor cores; `tensor_clock_mhz`: in tensor cores.
    `fp16_tflops`: packed half precision outside tensor cores; `tensor_tflops`: FP16 in, FP32 sums, dense.
    `bandwidth_gbs`: peak of the memory, 1e9 bytes per second. `launch_overhead_us`: time on the GPU of a launch that
    does next to nothing while the next one is queued already; None where nobody measured it.
    """

    name: str
    full_name: str
    year: int
    compute_capability: tuple[int, int]
    sms: int
    fp32_cores: int
    fp64_cores: int
    warp_schedulers: int
    issue_rate: int
    clock_mhz: int
    fp32_tflops: float
    fp64_tflops: float
    fp16_tflops: float
    tensor_tflops: float | None
    tensor_clock_mhz: int | None
    bandwidth_gbs: float
    l2_bytes: int
    shared_bytes: int
    max_threads: int
    launch_overhead_us: float | None
    sources: dict[str, str] = field(repr=False)

    def source(self, name: str) -> str:
        """Where the value of field `name` was published."""
        return self.sources.get(name, self.sources[""])

    @property
    def max_warps(self) -> int:
        """Warps that the whole card can hold at once."""
        return self.sms * self.max_threads // 32


KIB, MIB = 1024, 1024 * 1024

GUIDE = "NVIDIA, CUDA C++ Programming Guide 12.9 (2025), table of technical specifications per compute capability"
PASCAL = "NVIDIA, Tesla P100 (white paper WP-08019-001, 2016)"
VOLTA = "NVIDIA, Tesla V100 GPU Architecture (white paper WP-08608-001, 2017)"
TURING = "NVIDIA, Turing GPU Architecture (white paper WP-09183-001, 2018)"
T4_BRIEF = "NVIDIA, T4 Tensor Core GPU (product brief PB-09256-001, 2019)"
T4_SHEET = "NVIDIA, T4 Tensor Core GPU (data sheet, 2019)"
AMPERE = "NVIDIA, A100 Tensor Core GPU Architecture (white paper, 2020), table 4"
HOPPER = "NVIDIA, H100 Tensor Core GPU Architecture (white paper, version 1.04, 2023)"
H100_SHEET = "NVIDIA, H100 Tensor Core GPU (data sheet, 2023)"
H200_SHEET = "NVIDIA, H200 Tensor Core GPU (data sheet, 2024)"
H200_READ = "device properties that the driver reports on an H200"

CARDS = {
    c.name: c
    for c in (
        Card(
            name="P100",
            full_name="Tesla P100 SXM2 16 GB",
            year=2016,
            compute_capability=(6, 0),
            sms=56,
            fp32_cores=64,
            fp64_cores=32,
            warp_schedulers=2,
            issue_rate=4,
            clock_mhz=1480,
            fp32_tflops=10.6,
            fp64_tflops=5.3,
            fp16_tflops=21.2,
            tensor_tflops=None,
            tensor_clock_mhz=None,
            bandwidth_gbs=732,
            l2_bytes=4096 * KIB,
            shared_bytes=64 * KIB,
            max_threads=2048,
            launch_overhead_us=None,
            sources={
                "": PASCAL,
                "issue_rate": f"{PASCAL}: each of the two schedulers dispatches two warp instructions per clock",
                "bandwidth_gbs": "NVIDIA, Tesla P100 (data sheet, 2016); the white paper rounds to 720",
                "max_threads": GUIDE,
            },
        ),
        Card(
            name="V100",
            full_name="Tesla V100 SXM2",
            year=2017,
            compute_capability=(7, 0),
            sms=80,
            fp32_cores=64,
            fp64_cores=32,
            warp_schedulers=4,
            issue_rate=4,
            clock_mhz=1530,
            fp32_tflops=15.7,
            fp64_tflops=7.8,
            fp16_tflops=31.4,
            tensor_tflops=125,
            tensor_clock_mhz=1530,
            bandwidth_gbs=900,
            l2_bytes=6144 * KIB,
            shared_bytes=96 * KIB,
            max_threads=2048,
            launch_overhead_us=None,
            sources={"": VOLTA, "fp16_tflops": AMPERE, "max_threads": GUIDE},
        ),
        Card(
            name="T4",
            full_name="T4 16 GB",
            year=2018,
            compute_capability=(7, 5),
            sms=40,
            fp32_cores=64,
            fp64_cores=2,
            warp_schedulers=4,
            issue_rate=4,
            clock_mhz=1590,
            fp32_tflops=8.1,
            fp64_tflops=0.25,
            fp16_tflops=16.2,
            tensor_tflops=65,
            tensor_clock_mhz=1590,
            bandwidth_gbs=320,
            l2_bytes=4096 * KIB,
            shared_bytes=64 * KIB,
            max_threads=1024,
            launch_overhead_us=None,
            sources={
                "": TURING,
                "sms": f"{T4_SHEET}: 2560 cores, 64 per SM",
                "clock_mhz": T4_BRIEF,
                "tensor_clock_mhz": T4_BRIEF,
                "bandwidth_gbs": T4_BRIEF,
                "fp32_tflops": T4_SHEET,
                "tensor_tflops": T4_SHEET,
                "fp64_tflops": f"from cores and clock ({TURING}: FP64 at 1/32 of the FP32 rate)",
                "fp16_tflops": f"from cores and clock ({TURING}: FP16 at twice the FP32 rate)",
                "l2_bytes": "device properties that the driver reports on a T4",
                "shared_bytes": GUIDE,
                "max_threads": GUIDE,
            },
        ),
        Card(
            name="A100",
            full_name="A100 SXM4 40 GB",
            year=2020,
            compute_capability=(8, 0),
            sms=108,
            fp32_cores=64,
            fp64_cores=32,
            warp_schedulers=4,
            issue_rate=4,
            clock_mhz=1410,
            fp32_tflops=19.5,
            fp64_tflops=9.7,
            fp16_tflops=78,
            tensor_tflops=312,
            tensor_clock_mhz=1410,
            bandwidth_gbs=1555,
            l2_bytes=40960 * KIB,
            shared_bytes=164 * KIB,
            max_threads=2048,
            launch_overhead_us=None,
            sources={"": AMPERE, "max_threads": GUIDE},
        ),
        Card(
            name="H100",
            full_name="H100 SXM5 80 GB HBM3",
            year=2022,
            compute_capability=(9, 0),
            sms=132,
            fp32_cores=128,
            fp64_cores=64,
            warp_schedulers=4,
            issue_rate=4,
            clock_mhz=1980,
            fp32_tflops=66.9,
            fp64_tflops=33.5,
            fp16_tflops=133.8,
            tensor_tflops=989.4,
            tensor_clock_mhz=1830,
            bandwidth_gbs=3350,
            l2_bytes=50 * MIB,
            shared_bytes=228 * KIB,
            max_threads=2048,
            launch_overhead_us=1.88,
            sources={
                "": HOPPER,
                "bandwidth_gbs": H100_SHEET,
                "max_threads": GUIDE,
                "launch_overhead_us": "measured on an NVIDIA H100 80GB HBM3, 2026-11-21 "
                "(kernels/vector_multiply/recordings.json, launch_overhead, gpu_seconds)",
            },
        ),
        Card(
            name="H200",
            full_name="H200 SXM 141 GB HBM3e",
            year=2024,
            compute_capability=(9, 0),
            sms=132,
            fp32_cores=128,
            fp64_cores=64,
            warp_schedulers=4,
            issue_rate=4,
            clock_mhz=1980,
            fp32_tflops=67,
            fp64_tflops=34,
            fp16_tflops=133.8,
            tensor_tflops=989.5,
            tensor_clock_mhz=1830,
            bandwidth_gbs=4800,
            l2_bytes=60 * MIB,
            shared_bytes=228 * KIB,
            max_threads=2048,
            launch_overhead_us=None,
            sources={
                "": f"{HOPPER}: the H200 is built on the same chip",
                "sms": H200_READ,
                "clock_mhz": H200_READ,
                "l2_bytes": H200_READ,
                "fp32_tflops": H200_SHEET,
                "fp64_tflops": H200_SHEET,
                "tensor_tflops": f"{H200_SHEET}: half of the 1979 given with sparsity",
                "bandwidth_gbs": f"{H200_SHEET}; 6144 bits at the 3201 MHz that the driver reports make 4917",
                "max_threads": GUIDE,
            },
        ),
    )
}


def card(name: str | Card) -> Card:
    """Return the card called `name` ("H100", in any case); a `Card` is returned as it is.

    Raises ValueError for an unknown name.
    """
    if isinstance(name, Card):
        return name
    known = CARDS.get(str(name).strip().upper())
    if known is None:
        raise ValueError(f"no card is named {name!r}; choose one of {', '.join(CARDS)}")
    return known


def card_of(device: str) -> Card | None:
    """Return the card that a GPU is, by the name that its driver gives it ("NVIDIA H100 80GB HBM3"); None if unknown.

    A card's other forms count, too: an H100 PCIe is taken for the H100 of the table.
    """
    words = re.split(r"[^A-Z0-9]+", device.upper())
    return next((found for name, found in CARDS.items() if name in words), None)
