"""Lab 06's benchmark: ResNet-50's and MobileNet's convolutions beside cuDNN's fastest plans, one convolution by every
algorithm, networks by kinds of layer, an LSTM layer.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kernels.convolution import recordings
from kernels.convolution.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.timing import rows_table


def _heading(value: Mapping[str, Any]) -> str:
    heading = (
        f"{value['pass']}, {value['dtype']} {value['layout']}, L2 cold, beside the fastest plan of cuDNN "
        f"{value['cudnn']}: geometric mean {value['geometric_mean']:.3f}, least {value['least']:.3f}"
    )
    if "cost_of_fusion" in value:
        heading += f"; with bias and ReLU {value['cost_of_fusion']:.3f} × the time without"
    return heading


RATIOS = Table.of_rows(
    _heading,
    {"layer": "layer", "step": "step", "µs": "seconds", "TFLOP/s": "tflops", "cuDNN µs": "cudnn_seconds"}
    | {"ratio": "ratio", "error": "relative_error", "right": "correct"},
    lambda value: {key: value[key] for key in ("geometric_mean", "least", "cost_of_fusion") if key in value},
)


def _of_any_shape(name: str, found: Mapping[str, Any]) -> str:
    remarks = [f"{row['layer']}: {row['remark']}" for row in found["rows"] if row["remark"]]
    return "\n".join([f"{name}: {RATIOS.text(found)}", *remarks, *(f"no plan: {text}" for text in found["refused"])])


def _of_every_shape(value: Mapping[str, Any]) -> str:
    """Return the tables and the summaries of new processes."""
    rows = [
        {"table": name, "process": i, "operands": of, **numbers}
        for i, found in enumerate(value["processes"], 2)
        for name, both in found.items()
        for of, numbers in both.items()
    ]
    parts = [
        f"drawn with seed {value['seed']}; the kernel of backward filter was then changed for the slowest of these"
    ]
    parts += [_of_any_shape(name, found) for name, found in value["tables"].items()]
    headers = ("table", "process", "L2", "layers", "geometric mean", "least", "below 0.8")
    parts.append(rows_table(headers, ("table", "process", "operands", "shapes", "mean", "least", "below_0.8"), rows))
    return "\n\n".join(parts)


LAYER = Table.of_rows(
    "{convolution}",
    {"algorithm": "algorithm", "by": "by", "type": "dtype", "layout": "layout", "µs": "seconds"}
    | {"MB of workspace": "workspace_bytes", "error": "relative_error"},
)
LSTM = Table.of_rows(
    "LSTM layer, {steps} steps, batch {batch}, {inputs} → {hidden}",
    {"algorithm": "algorithm", "by": "by", "type": "dtype", "tensor cores": "tensor_cores", "µs": "seconds"}
    | {"µs backward": "backward_seconds", "error": "relative_error"},
)


def _network(value: Mapping[str, Any]) -> str:
    def share(kind: str) -> Callable[[Any], float]:
        return lambda found: _seconds_by_kind(found)[kind] / found["seconds"]

    kinds = "batch norm", "ReLU", "pooling", "fully connected"
    headers = ("network", "precision", "mode", "batch", "ms", "images per second", "share of convolution", *kinds)
    keys = ("precision", "mode", "batch", "seconds", "images_per_second", "convolution_share")
    rows = rows_table(headers, (_of, *keys, *map(share, kinds)), value["configurations"])
    text = f"Layers timed one by one, cuDNN {value['cudnn']}\n{rows}"
    return "\n".join([text, *_distorted(value["configurations"])])


def _of(found: Mapping[str, Any]) -> str:
    return found.get("network", "ResNet-50")


def _seconds_by_kind(found: Mapping[str, Any]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for layer in found["layers"]:
        kinds[layer["kind"]] += layer["seconds"] * layer["count"]
    return kinds


def _distorted(configurations: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row in which a kernel of cuDNN takes longer in float16 than in float32, of twice the
    bytes."""
    lines, single = [], {}
    for found in configurations:
        place = f"{found['mode']}, batch {found['batch']}"
        for kind in ("batch norm", "pooling"):
            seconds, key = _seconds_by_kind(found)[kind], (_of(found), place, kind)
            if found["precision"] == "float32":
                single[key] = seconds
            elif found["precision"] == "mixed" and seconds > single.get(key, seconds):
                lines.append(
                    f"{_of(found)}, mixed {place}: cuDNN's {kind} takes {1e3 * seconds:.2f} ms, and "
                    f"{1e3 * single[key]:.2f} in float32 for twice the bytes; so the row tells how that kernel fares "
                    "in float16 and NHWC, not what the layer costs."
                )
    return lines


def _network_summary(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{_of(found)} {found['precision']} {found['mode']} {found['batch']}": found["convolution_share"]
        for found in value["configurations"]
    }


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        **dict.fromkeys(("forward", "fused", "backward_data", "backward_filter"), RATIOS),
        "depthwise": Table(
            lambda value: "\n\n".join(f"depthwise: {RATIOS.text(found)}" for found in value.values()),
            lambda value: {key: RATIOS.summary(found) for key, found in value.items()},
        ),
        "every_shape": Table(
            _of_every_shape,
            lambda value: {name: RATIOS.summary(found) for name, found in value["tables"].items()},
        ),
        "algorithms": Table(lambda value: "\n\n".join(map(LAYER.text, value["layers"]))),
        **dict.fromkeys(("network", "folded_network", "older_networks"), Table(_network, _network_summary)),
        "lstm": Table(lambda value: "\n\n".join(map(LSTM.text, value["cases"]))),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
