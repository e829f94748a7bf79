"""What the sources claim of sharing GPUs and of serving, figures that others published, and the arithmetic of both.

Nothing here was measured for the course. Each figure names its source; NOT_FOUND lists those that were looked for in
vain, and which assumption stands in for them. The lesson does the arithmetic live and puts its own recordings beside.
"""

from __future__ import annotations

from dataclasses import dataclass

TALK = "a talk of 2017 (docs/sources.md)"
MPS_DOCS = "NVIDIA, Multi-Process Service, docs.nvidia.com/deploy/mps"
NVDEC_NOTE = "NVIDIA, NVDEC Application Note, Video Codec SDK 13.0"

# --- MPS: 7 times the inference throughput, and 60 % -----------------------------------------------------------------

MPS_FACTOR = 7  # throughput with many clients of MPS over that of one client, batch 1, V100: a talk of 2017
SIXTY_PERCENT = 0.6


def with_batches(factor: float = MPS_FACTOR) -> dict[str, float]:
    """The factor over one client that batching gives, by how the claim's "60 %" is read.

    "Batching adds 60 %" makes it 1.6 × factor. "MPS reaches 60 % of what batching gives" makes it factor / 0.6. The
    slide that says which was not found; both readings have batching ahead.
    """
    return {"batching adds 60 %": factor * (1 + SIXTY_PERCENT), "MPS reaches 60 %": factor / SIXTY_PERCENT}


def largest_share_of_one(factor: float = MPS_FACTOR) -> float:
    """What one client can have used of the GPU, at most, if more clients make it so many times as fast."""
    return 1 / factor


@dataclass(frozen=True)
class Published:
    """Throughput as others measured it: `alone` by one process, `in_turns` and `together` by `clients` of them."""

    about: str
    clients: int
    alone: float
    in_turns: float
    together: float
    source: str

    @property
    def factor(self) -> float:
        """Together over alone: what the claim says is 7."""
        return self.together / self.alone


PUBLISHED = Published(
    "ResNet-50, FP32, batch 1, V100 16 GB, TensorRT behind gRPC, requests per second",
    *(8, 383, 365, 929),
    "github.com/NVIDIA/tensorrt-laboratory, examples/98_MultiProcessSingleStream/README.md",
)
# TorchServe, BERT, two workers against two workers with MPS: from 11 % less to 18 % more on a T4 instance, up to 25 %
# more on a V100 instance (one batch size excepted).
TORCHSERVE_CHANGES = {"T4": (-0.11, 0.18), "V100": (None, 0.25)}
TORCHSERVE = "pytorch/serve, docs/nvidia_mps.md"

# --- Clients of MPS --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """The most client contexts on a device at a time."""

    generation: str
    clients: int
    source: str


LIMITS = (
    Limit("before Volta", 16, MPS_DOCS),
    Limit("Volta and newer, up to CUDA 13.0", 48, MPS_DOCS),
    Limit("Volta and newer, from CUDA 13.1", 60, MPS_DOCS),
)

# What MPS's documentation says of the errors of a client ("Error Containment").
FAULT = (
    "A fatal fault of one client is reported to all clients on that GPU, without saying whose it was, and they have to "
    "end. Clients on other GPUs go on."
)

# --- One P4 against 13 servers with two CPUs -------------------------------------------------------------------------

SERVERS = 13
SERVERS_SOURCE = "NVIDIA's announcement of the Tesla P4, September 2016, as the press reported it (digitaltrends.com)"
P4_INT8 = 22e12  # operations per second at boost clock: talk A
P4_FP32 = 5.5e12  # the same announcement, as reported by tomshardware.com
OPERATIONS_PER_INFERENCE = 40e9  # talk A
FRAMES_PER_SECOND = 30  # of a stream: an assumption, as usual for such figures


@dataclass(frozen=True)
class Decoder:
    """What one decode engine does: frames per second at 1920 x 1080, 4:2:0, 8 bits, at `clock_mhz`."""

    generation: str
    h264: int
    hevc: int
    clock_mhz: int

    def streams(self, codec: str = "h264", engines: int = 1, frames_per_second: float = FRAMES_PER_SECOND) -> float:
        """Streams that so many engines decode at the same time. ValueError for another codec."""
        if codec not in ("h264", "hevc"):
            raise ValueError(f"there is no figure for {codec!r}; choose h264 or hevc")
        return engines * getattr(self, codec) / frames_per_second


# One engine each, at the highest video clock; speed goes with that clock. Hopper's engine is Turing's (the same note).
# Ampere's row is for GA10x.
DECODERS = {
    one.generation: one
    for one in (
        Decoder("Pascal", 694, 810, 1544),
        Decoder("Turing", 771, 1316, 1860),
        Decoder("Ampere", 748, 1415, 1665),
        Decoder("Ada", 903, 1641, 2160),
        Decoder("Blackwell", 2172, 1872, 2362),
    )
}


@dataclass(frozen=True)
class Cpu:
    """A server with CPUs. `flop_per_cycle`: of a core, FP32; 32 for two fused multiply-adds of eight lanes (AVX2)."""

    sockets: int
    cores: int
    ghz: float
    flop_per_cycle: int = 32

    @property
    def flops(self) -> float:
        """Peak FP32 operations per second."""
        return self.sockets * self.cores * self.ghz * 1e9 * self.flop_per_cycle


ASSUMED_CPU = Cpu(sockets=2, cores=14, ghz=2.6)  # as an E5-2690 v4; see NOT_FOUND


@dataclass(frozen=True)
class Servers:
    """The claim that one P4 replaces SERVERS servers, taken apart. Rates are inferences per second, at peak."""

    inferences: float
    decoded: float
    per_server: float
    server_flops: float
    server_peak_share: float
    int8_factor: float

    @property
    def bound(self) -> str:
        """What limits the P4: "decode" or "infer"."""
        return "decode" if self.decoded < self.inferences else "infer"


def one_p4(cpu: Cpu = ASSUMED_CPU, operations: float = OPERATIONS_PER_INFERENCE, engines: int = 1) -> Servers:
    """What the claim asks of each of the 13 servers, if a P4 classifies every frame it decodes, at its INT8 peak.

    `inferences`: P4_INT8 / operations. `decoded`: frames of H.264 per second. `per_server`: a thirteenth of the smaller
    one. `server_flops`: what that takes of a server; `server_peak_share`: of the peak of `cpu`; above 1 the claim
    would favour the CPUs. `int8_factor`: of the P4's advantage, what is precision alone (INT8 over its own FP32).
    """
    inferences = P4_INT8 / operations
    decoded = float(engines * DECODERS["Pascal"].h264)
    per_server = min(inferences, decoded) / SERVERS
    needed = per_server * operations
    return Servers(inferences, decoded, per_server, needed, needed / cpu.flops, P4_INT8 / P4_FP32)


# --- GPUs are not promising for prediction: lab 01's verdict completed -----------------------------------------------


def intensity(flop: float, moved_bytes: float) -> float:
    """Operations per byte that crosses the bus for a prediction. Raises ValueError where nothing crosses."""
    if moved_bytes <= 0:
        raise ValueError("at least the input and the answer cross the bus; give their bytes")
    return flop / moved_bytes


def least_intensity(cpu_flops: float, gpu_flops: float, bus_bytes_per_second: float) -> float:
    """Operations per byte above which copying and computing on the GPU take less than computing on the CPU.

    From flop/cpu > bytes/bus + flop/gpu, all in a steady stream, so that latencies do not count. ValueError where the
    GPU is not the faster one.
    """
    if gpu_flops <= cpu_flops:
        raise ValueError("a GPU that computes no faster than the CPU never pays; compare the rates that you give")
    return 1 / (bus_bytes_per_second * (1 / cpu_flops - 1 / gpu_flops))


VECTOR_MULTIPLY = intensity(1, 12)  # the note's case: two floats go in and one comes out for one operation

# --- What was looked for and not found -------------------------------------------------------------------------------

NOT_FOUND = {
    "the slide with 7 × and 60 %": "which network, precision and number of clients it had; both readings are given",
    "the footnote of the 13 servers": "which CPU, network and codec; two CPUs of 14 cores at 2.6 GHz are assumed, as "
    "the announcement compared latencies with an E5-2690 v4, whose core count and clock are not cited here either",
    "the P4's decode engines and video clock": "one engine of Pascal at the note's 1544 MHz is assumed",
}
