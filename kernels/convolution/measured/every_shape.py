"""Layers that nobody tuned for beside cuDNN's fastest plan, float16 in NHWC: of networks, and drawn at random."""

import math
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock, patch

import numpy as np

from kernels.convolution import ladder
from kernels.convolution.common.queued import Queued
from kernels.convolution.cudnn.plan_table import NoPlan
from kernels.convolution.definition import operands
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.definition.networks import LayerGroup, convolution, label
from kernels.convolution.measured import ratios
from warpcourse.bench import hopper, measured_plans, timing
from warplab import cp

SEED = 908119271  # of the convolutions drawn, after the code was final but for what benchmark.py and padded.cu tell
DRAWN = 40
FLOPS, MOST_BYTES = (1e8, 3e11), 1e9  # of those drawn: far less takes the time of a launch
WINDOWS = (1, 1, 2, 3, 3, 3, 4, 5, 7)
STRIDES, DILATIONS = (1, 1, 1, 2, 2, 3, 4), (1, 1, 1, 1, 1, 2, 3)
SQUARE, GROUPED = 0.7, 0.3  # how often
BOTH, SAME = (1, 1), (2, 2)
NETWORKS = {
    "VGG conv1_1": Convolution(32, 3, 224, 224, 64, 3, 3, BOTH),
    "VGG conv1_2": Convolution(16, 64, 224, 224, 64, 3, 3, BOTH),
    "VGG conv3_2": Convolution(1, 256, 56, 56, 256, 3, 3, BOTH),
    "VGG conv5": Convolution(1, 512, 14, 14, 512, 3, 3, BOTH),
    "AlexNet conv1": Convolution(64, 3, 227, 227, 96, 11, 11, stride=(4, 4)),
    "AlexNet conv2": Convolution(64, 96, 27, 27, 256, 5, 5, SAME, groups=2),
    "ResNet conv1": Convolution(32, 3, 224, 224, 64, 7, 7, (3, 3), SAME),
    "Inception stem": Convolution(32, 3, 299, 299, 32, 3, 3, stride=SAME),
    "Inception 1×7": Convolution(32, 192, 17, 17, 192, 1, 7, (0, 3)),
    "Inception 5×5": Convolution(32, 48, 35, 35, 64, 5, 5, SAME),
    "Inception 7×1": Convolution(32, 160, 17, 17, 192, 7, 1, (3, 0)),
    "ResNeXt conv2": Convolution(32, 128, 56, 56, 128, 3, 3, BOTH, groups=32),
    "ResNeXt conv3/2": Convolution(32, 256, 56, 56, 256, 3, 3, BOTH, SAME, groups=32),
    "ResNeXt conv5": Convolution(32, 1024, 7, 7, 1024, 3, 3, BOTH, groups=32),
    "ConvNeXt patch": Convolution(64, 3, 224, 224, 96, 4, 4, stride=(4, 4)),
    "ConvNeXt depthwise 7×7": Convolution(32, 96, 56, 56, 96, 7, 7, (3, 3), groups=96),
    "ConvNeXt 2×2/2": Convolution(64, 96, 56, 56, 192, 2, 2, stride=SAME),
    "EfficientNet expand": Convolution(64, 24, 56, 56, 144, 1, 1),
    "EfficientNet depthwise 5×5/2": Convolution(64, 144, 56, 56, 144, 5, 5, SAME, SAME, groups=144),
    "EfficientNet project": Convolution(64, 672, 14, 14, 112, 1, 1),
    "U-Net first": Convolution(1, 1, 572, 572, 64, 3, 3),
    "U-Net middle": Convolution(1, 512, 64, 64, 512, 3, 3, BOTH),
    "DeepLab atrous": Convolution(2, 2048, 33, 33, 256, 3, 3, (12, 12), dilation=(12, 12)),
    "DeepLab classes": Convolution(4, 256, 129, 129, 21, 1, 1),
}
BACKWARD = (
    *("VGG conv5", "AlexNet conv1", "AlexNet conv2", "ResNet conv1", "Inception 1×7", "ResNeXt conv2"),
    *("ResNeXt conv3/2", "ConvNeXt depthwise 7×7", "ConvNeXt 2×2/2", "EfficientNet depthwise 5×5/2"),
    *("DeepLab atrous", "DeepLab classes"),
)


def random_convolution(random: np.random.Generator, channels: int, size: int, images: int) -> Convolution:
    """Return a convolution whose sizes are log-uniform up to those given, with any window, padding, stride, dilation
    and groups; not one with a filter for each channel, which `depthwise` measures."""

    def up_to(most: int) -> int:
        return round(math.exp(random.uniform(0, math.log(most))))

    def pair(choices: tuple[int, ...]) -> tuple[int, int]:
        one, other = (int(random.choice(choices)) for _ in range(2))
        return (one, one) if random.random() < SQUARE else (one, other)

    while True:
        groups = up_to(channels) if random.random() < GROUPED else 1
        c, k = (groups * up_to(max(1, channels // groups)) for _ in range(2))
        n, h, w = up_to(images), up_to(size), up_to(size)
        r, s = pair(WINDOWS)
        padding = int(random.integers(0, r // 2 + 2)), int(random.integers(0, s // 2 + 2))
        try:
            w = h if random.random() < SQUARE else w
            found = Convolution(n, c, h, w, k, r, s, padding, pair(STRIDES), pair(DILATIONS), groups)
        except ValueError:  # no window fits
            continue
        if not groups == c == k:
            return found


def drawn() -> list[LayerGroup]:
    """Return the convolutions drawn for the table."""
    random = np.random.default_rng(SEED)
    found: list[LayerGroup] = []
    while len(found) < DRAWN:
        conv = random_convolution(random, 1024, 224, 64)
        if FLOPS[0] <= conv.flops <= FLOPS[1] and conv.bytes(2) <= MOST_BYTES:
            found.append(convolution(str(conv), conv))
    return found


def compile_ahead(cases: Iterable[tuple[Convolution, str]]) -> None:
    """Compile what the plans of passes of convolutions launch on Hopper, in a process for each core: each is asked for
    once, with no kernel behind it."""
    wanted: set[tuple[Any, tuple[str, ...]]] = set()

    def kernel(file: Any, entry: str, options: tuple[str, ...] = ()) -> Mock:
        wanted.add((file, options))
        return Mock(**{"resident_clusters.return_value": 1})

    with patch.object(hopper, "kernel", kernel), patch.object(Queued, "launch"):
        for conv, kind in cases:
            arrays = [cp.empty(shape, np.float16) for shape in operands.shapes(conv, kind, "NHWC")]
            ladder.fastest(conv, "NHWC", np.float16, kind).launch(*arrays, conv)
    hopper.compile_ahead(wanted)


def _table(layers: list[LayerGroup], kind: str) -> dict[str, Any]:
    """Return `ratios.table` of the layers that cuDNN has a plan for, with each plan's remark; `refused`: the others."""
    rows, refused = [], []
    compile_ahead((layer.convolution, kind) for layer in layers if layer.convolution)
    for layer in layers:
        try:
            row = ratios.compare(layer, kind, "NHWC", "float16")
        except (NoPlan, RuntimeError) as failure:
            refused.append(f"{layer.name}: {str(failure)[:200]}")
            continue
        assert layer.convolution
        rows.append(row | {"remark": ladder.planned(layer.convolution, "NHWC", "float16", kind).remark})
        print(
            f"{kind} {layer.name}: {row['step']} {1e6 * row['seconds']:.1f} µs, {row['ratio']:.3f} of cuDNN's speed",
            flush=True,
        )
    return ratios.summary(rows, kind, "NHWC", "float16") | {"refused": refused}


def again(cases: dict[str, list[tuple[Convolution, str, str]]]) -> dict[str, Any]:
    """Return for each table the summaries, cold and warm, of its (convolution, pass, cuDNN's fastest plan), measured in
    this process."""
    found = {}
    for name, rows in cases.items():
        compile_ahead((conv, kind) for conv, kind, _ in rows)
        times = [{of: {"ratio": each} for of, each in _again(*row).items()} for row in rows]
        found[name] = {of: measured_plans.summary(times, of) for of in ("cold", "warm")}
    return found


def _again(conv: Convolution, kind: str, plan: str) -> dict[str, float]:
    return ratios.compare_again(conv, kind, "NHWC", "float16", plan)


def _again_in_new_processes(found: dict[str, Any], layers: list[LayerGroup]) -> list[dict[str, Any]]:
    convolutions = {label(layer): layer.convolution for layer in layers}
    cases = {
        name: [(convolutions[row["layer"]], table["pass"], row["cudnn_plan"]) for row in table["rows"]]
        for name, table in found.items()
        if name.endswith("drawn")
    }
    return timing.in_new_processes(again, cases)


def every_shape() -> dict[str, Any]:
    """Measure layers of networks, of the backward passes some, and drawn convolutions, a third of them in each pass;
    `processes`: the drawn tables' summaries in two new processes, warm, too."""
    layers = [convolution(name, conv) for name, conv in NETWORKS.items()]
    some, random = [layer for layer in layers if layer.name in BACKWARD], drawn()
    found: dict[str, Any] = {kind: _table(layers if kind == "forward" else some, kind) for kind in PASSES}
    found |= {f"{kind}, drawn": _table(random[i::3], kind) for i, kind in enumerate(PASSES)}
    processes = _again_in_new_processes(found, [*layers, *random])
    return {"seed": SEED, "processes": processes, "tables": found}
