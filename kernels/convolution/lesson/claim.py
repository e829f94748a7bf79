"""What of "cuDNN 7 on a V100 trains 2.5 × as fast as cuDNN 6 on a P100, LSTMs 3 ×" was the card, what its tensor cores,
what the library: bounds from data sheets, and factors measured on one GPU of today.

Nobody ran a P100 or a V100 for this course. A bound is arithmetic: no layer takes less than its operations at the
card's peak, nor less than its bytes at the card's bandwidth. The measured factors hold for the recorded GPU and cuDNN.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from kernels.convolution.cudnn.plan_table import OK
from kernels.convolution.definition import networks
from kernels.convolution.definition.networks import LayerGroup
from warplab.hardware.cards import CARDS, Card

BATCH = 32
OLDEST = "IMPLICIT_GEMM"  # cuDNN's algorithm 0


@dataclass(frozen=True)
class Factor:
    """How many times as fast something makes training. `part`: "card", "tensor cores", both, or "library".

    `what`: in a line, what is compared; `origin`: "data sheets" or "measured".
    """

    part: str
    what: str
    factor: float
    origin: str


def least_seconds(card: Card, layers: Iterable[LayerGroup], *, mixed: bool) -> float:
    """Return a bound of a training step's time: each pass of each layer by the scarcer of peak and bandwidth.

    `mixed`: products of float16 on tensor cores, where the card has them, and tensors of half the bytes.
    """
    peak = (card.tensor_tflops or card.fp16_tflops) if mixed else card.fp32_tflops
    itemsize, total = (2 if mixed else 4), 0.0
    for layer in layers:
        operations, elements = _training_work(layer)
        total += layer.count * sum(
            max(flops / (peak * 1e12), itemsize * count / (card.bandwidth_gbs * 1e9))
            for flops, count in zip(operations, elements, strict=True)
        )
    return total


def _training_work(layer: LayerGroup) -> tuple[list[float], list[float]]:
    """Count matrix operations, and elements moved, of each pass of a layer; arithmetic beside products is free."""
    size = math.prod(layer.nchw)
    if layer.convolution is not None:
        passes = 2 if layer.convolution.c == 3 else 3  # nobody wants the gradient of the images
        return [float(layer.convolution.flops)] * passes, [float(layer.convolution.bytes(1))] * passes
    if layer.kind == "fully connected":
        batch, inputs = layer.nchw[:2]
        return [2.0 * size * layer.outputs] * 3, [float(size + layer.outputs * (inputs + batch))] * 3
    # Tensors read and written, forward and backward: batch norm reads x for its statistics and again for its result.
    forward, backward = {"batch norm": (3, 5), "ReLU": (2, 3), "addition": (3, 3)}.get(layer.kind, (2, 2))
    return [0.0, 0.0], [float(forward * size), float(backward * size)]


def card_factors() -> list[Factor]:
    """Return v100 over P100 by their data sheets: the card alone, and its tensor cores."""
    old, new, layers = CARDS["P100"], CARDS["V100"], networks.resnet50(BATCH)
    before, after = (least_seconds(card, layers, mixed=False) for card in (old, new))
    mixed_before, mixed_after = (least_seconds(card, layers, mixed=True) for card in (old, new))
    return [
        Factor("card", "peak of float32, V100 over P100", new.fp32_tflops / old.fp32_tflops, "data sheets"),
        Factor("card", "bandwidth of the memory, V100 over P100", new.bandwidth_gbs / old.bandwidth_gbs, "data sheets"),
        Factor("card", "bound of ResNet-50's training in float32, V100 over P100", before / after, "data sheets"),
        Factor(
            "tensor cores",
            "bound of ResNet-50's training on a V100, mixed over float32",
            after / mixed_after,
            "data sheets",
        ),
        Factor(
            "card and tensor cores",
            "bound of ResNet-50's training in mixed precision, V100 over P100 (float16 without tensor cores)",
            mixed_before / mixed_after,
            "data sheets",
        ),
    ]


def measured_factors(values: Mapping[str, Any]) -> list[Factor]:
    """Return the factors from recorded values, by their keys (`recordings.values()`): tensor cores, and the choice of
    an algorithm.

    A factor whose measurements are missing is left out.
    """
    found = []
    if "network" in values:
        seconds = {
            row["precision"]: row["seconds"] for row in values["network"]["configurations"] if row["mode"] == "training"
        }
        for precision in ("tf32", "mixed"):
            what = f"ResNet-50's training, {precision} over float32"
            found.append(Factor("tensor cores", what, seconds["float32"] / seconds[precision], "measured"))
    if "forward" in values:
        mean = geometric_mean(row["first_choice"] for row in values["forward"]["rows"])
        found.append(Factor("library", "fastest plan over the heuristics' first, geometric mean", mean, "measured"))
    if "searches" in values:
        rows = next(
            search["rows"]
            for search in values["searches"]["searches"]
            if search["dtype"] == "float32" and not search["tensor_cores"]
        )
        seconds = {row["algorithm"]: row["seconds"] for row in rows if row["status"] == OK}
        what = f"fastest algorithm over {OLDEST}, one layer, float32"
        found.append(Factor("library", what, seconds[OLDEST] / min(seconds.values()), "measured"))
    return found + (_lstm_factors(values["lstm"]["cases"]) if "lstm" in values else [])


def _lstm_factors(cases: Iterable[Mapping[str, Any]]) -> list[Factor]:
    """Return a layer's factors, forward and backward: tensor cores, the algorithm as it was; then the best one."""
    found = []
    for case in cases:
        size = "{steps} steps, batch {batch}, {inputs} → {hidden}".format(**case)
        rows = [row for row in case["rows"] if row["by"] == "cuDNN"]
        seconds = {
            (row["dtype"], row["tensor_cores"], row["algorithm"]): row["seconds"] + row["backward_seconds"]
            for row in rows
        }
        plain, half = seconds["float32", False, "STANDARD"], seconds["float16", True, "STANDARD"]
        best = min(value for (dtype, *_), value in seconds.items() if dtype == "float16")
        found += [
            Factor("tensor cores", f"LSTM, {size}: mixed over float32", plain / half, "measured"),
            Factor("library", f"LSTM, {size}: fastest algorithm over the standard one, mixed", half / best, "measured"),
        ]
    return found
