"""What lab 09 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `bytes`. `MEASUREMENTS` names the functions as `recordings.json` does. What the three
clocks mean is in `clocks`.
"""

import functools
from collections.abc import Callable
from typing import Any

from kernels.fusion.measured import engine as measured_engine
from kernels.fusion.measured import few_bits
from kernels.fusion.measured import networks as measured_networks
from kernels.fusion.measured import others as measured_peers

LARGE = measured_engine.ENDS[-1]  # of the batches
MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "engines": measured_engine.engines,
    "batches": measured_engine.batches,
    "tactics": measured_engine.tactics,
    "empty_launches": measured_engine.empty_launches,
    "peers": measured_peers.peers,
    "peers_large": functools.partial(measured_peers.peers, LARGE),
    **{
        key: functools.partial(measured_networks.networks, name)
        for key, name in zip(("resnet50", "googlenet", "mobilenet_v2"), measured_networks.NETWORKS, strict=True)
    },
    "resnet50_int8": functools.partial(measured_networks.int8, "ResNet-50"),
    "resnet50_autotuned": functools.partial(measured_networks.autotuned, "ResNet-50", 1),
    "resnet50_autotuned_32": functools.partial(measured_networks.autotuned, "ResNet-50", 32),
    "googlenet_autotuned_32": functools.partial(measured_networks.autotuned, "GoogLeNet", 32),
    "mobilenet_v2_autotuned_32": functools.partial(measured_networks.autotuned, "MobileNetV2", 32),
    "weight_only": few_bits.weight_only,
    "autotuned": functools.partial(measured_peers.peers, autotuned=True),
    "autotuned_large": functools.partial(measured_peers.peers, LARGE, autotuned=True),
}
