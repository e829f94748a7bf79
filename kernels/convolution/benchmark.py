"""Lab 06's benchmark: ResNet-50's and MobileNet's convolutions beside cuDNN's fastest plans, one convolution by every
algorithm, ResNet-50 by kinds of layer, an LSTM layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kernels.convolution import recordings
from kernels.convolution.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.timing import table


def _ratios(value: Mapping[str, Any]) -> str:
    heading = (
        f"{value['pass']}, {value['dtype']} {value['layout']}, beside the fastest plan of cuDNN {value['cudnn']}: "
        f"geometric mean {value['geometric_mean']:.3f}, least {value['least']:.3f}"
    )
    if "cost_of_fusion" in value:
        heading += f"; with bias and ReLU {value['cost_of_fusion']:.3f} × the time without"
    headers = ("layer", "step", "µs", "TFLOP/s", "cuDNN µs", "ratio", "error", "right")
    rows = [
        (
            row["layer"],
            row["step"],
            row["seconds"] * 1e6,
            row["tflops"],
            row["cudnn_seconds"] * 1e6,
            row["ratio"],
            row["relative_error"],
            row["correct"],
        )
        for row in value["rows"]
    ]
    return f"{heading}\n{table(headers, rows)}"


def _ratios_summary(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("geometric_mean", "least", "cost_of_fusion") if key in value}


def _depthwise(value: Mapping[str, Any]) -> str:
    return "\n\n".join(f"depthwise: {_ratios(found)}" for found in value.values())


def _depthwise_summary(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _ratios_summary(found) for key, found in value.items()}


def _algorithms(value: Mapping[str, Any]) -> str:
    headers = ("algorithm", "by", "type", "layout", "µs", "MB of workspace", "error")
    texts = []
    for layer in value["layers"]:
        rows = [
            (
                row["algorithm"],
                row["by"],
                row["dtype"],
                row["layout"],
                row["seconds"] * 1e6,
                row["workspace_bytes"] / 1e6,
                row["relative_error"],
            )
            for row in layer["rows"]
        ]
        texts.append(f"{layer['convolution']}\n{table(headers, rows)}")
    return "\n\n".join(texts)


def _network(value: Mapping[str, Any]) -> str:
    headers = ("precision", "mode", "batch", "ms", "images per second", "share of convolution", "batch norm", "ReLU")
    rows = []
    for found in value["configurations"]:
        kinds = _seconds_by_kind(found)
        rows.append(
            (
                found["precision"],
                found["mode"],
                found["batch"],
                found["seconds"] * 1e3,
                found["images_per_second"],
                found["convolution_share"],
                *(kinds[kind] / found["seconds"] for kind in ("batch norm", "ReLU")),
            )
        )
    text = f"ResNet-50, layers timed one by one, cuDNN {value['cudnn']}\n{table(headers, rows)}"
    return "\n".join([text, *_distorted(value["configurations"])])


def _seconds_by_kind(found: Mapping[str, Any]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for layer in found["layers"]:
        kinds[layer["kind"]] += layer["seconds"] * layer["count"]
    return kinds


def _distorted(configurations: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row in which cuDNN's batch norm takes longer in float16 than in float32, of twice the
    bytes."""
    seconds = {
        (found["mode"], found["batch"], found["precision"]): _seconds_by_kind(found)["batch norm"]
        for found in configurations
    }
    return [
        f"{precision} {mode}, batch {batch}: cuDNN's batch norm takes {1e3 * taken:.2f} ms, and "
        f"{1e3 * seconds[mode, batch, 'float32']:.2f} in float32 for twice the bytes; so the row tells how that kernel "
        "fares in float16 and NHWC, not what the layer costs."
        for (mode, batch, precision), taken in seconds.items()
        if precision == "mixed" and taken > seconds.get((mode, batch, "float32"), taken)
    ]


def _network_summary(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{found['precision']} {found['mode']} {found['batch']}": found["convolution_share"]
        for found in value["configurations"]
    }


def _lstm(value: Mapping[str, Any]) -> str:
    headers = ("algorithm", "by", "type", "tensor cores", "µs", "µs backward", "error")
    texts = []
    for case in value["cases"]:
        size = "{steps} steps, batch {batch}, {inputs} → {hidden}".format(**case)
        rows = [
            (
                row["algorithm"],
                row["by"],
                row["dtype"],
                row["tensor_cores"],
                row["seconds"] * 1e6,
                "" if row["backward_seconds"] is None else row["backward_seconds"] * 1e6,
                row["relative_error"],
            )
            for row in case["rows"]
        ]
        texts.append(f"LSTM layer, {size}\n{table(headers, rows)}")
    return "\n\n".join(texts)


RATIOS = Table(_ratios, _ratios_summary)
BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        **dict.fromkeys(("forward", "fused", "backward_data", "backward_filter"), RATIOS),
        "depthwise": Table(_depthwise, _depthwise_summary),
        "algorithms": Table(_algorithms),
        **dict.fromkeys(("network", "folded_network"), Table(_network, _network_summary)),
        "lstm": Table(_lstm),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
