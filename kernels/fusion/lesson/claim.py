"""What the sources claim of TensorRT and of INT8, and figures that others published, to take the claims apart.

Nothing here was measured for the course. Each figure names its source; the lesson does the arithmetic live.
"""

from dataclasses import dataclass

# ResNet-50 on a V100, images per second, without and with TensorRT: talks of 2017 (docs/sources.md).
WITHOUT, WITH = 305, 5707
# Seconds that one of the services in Jouppi and others, "In-Datacenter Performance Analysis of a Tensor Processing
# Unit" (ISCA 2017), section 4, may take.
LATENCY_LIMIT = 7e-3

# He and others, "Deep Residual Learning for Image Recognition" (2016), table 1: 3.8e9 multiply-adds for an image.
RESNET50_FLOP = 2 * 3.8e9

PUBLISHED = "TensorRT 4.0.0.3, CUDA 9.0, V100, ResNet-50: github.com/1duo, gist efd3be1dc8eb2c45863b75f20a76f8b2"


@dataclass(frozen=True)
class PublishedRun:
    """ResNet-50 on a V100 through TensorRT, as published (`PUBLISHED`): `seconds` for a batch."""

    precision: str
    batch: int
    seconds: float

    @property
    def images_per_second(self) -> float:
        return self.batch / self.seconds


# Milliseconds by batch: rows of the source, not all.
_MILLISECONDS = {
    "FP32": {1: 2.67725, 2: 4.08289, 4: 6.08236, 8: 8.27648, 16: 13.0539, 32: 23.1328, 64: 42.5329, 128: 80.5629},
    "FP16": {1: 2.0779, 2: 2.65073, 4: 2.83658, 8: 3.2938, 16: 4.35118, 32: 6.58944}
    | {36: 7.0443, 48: 8.32809, 64: 11.5623, 128: 21.2693},
    "INT8": {1: 1.22277, 2: 1.71519, 4: 2.45023, 8: 2.90755, 16: 4.26373, 32: 6.78533, 40: 8.21903},
}
RUNS = tuple(PublishedRun(kind, batch, ms / 1e3) for kind, rows in _MILLISECONDS.items() for batch, ms in rows.items())


def run(precision: str, batch: int) -> PublishedRun:
    """Return the published run of a precision and a batch. Raises ValueError where there is none."""
    for found in RUNS:
        if (found.precision, found.batch) == (precision, batch):
            return found
    raise ValueError(
        f"no run in {precision} with a batch of {batch} was published; see kernels.fusion.lesson.claim.RUNS"
    )


@dataclass(frozen=True)
class Int8Card:
    """A card whose cores have `dp4a`. `tera_operations`: INT8, as talk A claims; `mhz`: boost clock."""

    name: str
    cores: int
    mhz: int
    tera_operations: int


# Cores and clocks: NVIDIA's announcement of the two cards, September 2016.
INT8_CARDS = (Int8Card("P4", 2560, 1063, 22), Int8Card("P40", 3840, 1531, 47))
OPERATIONS_PER_INFERENCE = 40e9  # talk A
