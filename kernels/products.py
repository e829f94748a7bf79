"""What labs 04 and 05 share in measuring matrix products: rates, tables of their ladders as text, the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warplab.bench import timing as benchmark
from warplab.bench.recordings import Recordings
from warplab.bench.timing import Timing

NAMES = {"cublas": "cuBLAS", "cublaslt": "cuBLASLt"}  # of libraries, as tables and pictures show them


def rates_of(timing: Timing, m: int, n: int, k: int) -> dict[str, float]:
    """Seconds of a timing and TFLOP/s of its median: 2 · m · n · k operations, 1e12 a second."""
    return {
        "seconds": timing.seconds,
        "fastest_seconds": timing.fastest,
        "slowest_seconds": timing.slowest,
        "tflops": 2 * m * n * k / timing.seconds / 1e12,
    }


@dataclass(frozen=True)
class Ladders:
    """A lab's benchmark of its ladder and of products by shape.

    `measurements`: functions by name, as in `measurements.MEASUREMENTS`; `keys`: of the ladders in it, beside "shapes".
    `ratio`: key of the ratio to the library, which tables call `library`; `peak`: what they call the measured peak.
    `heading`: what stands above a ladder's table; `shapes_heading`: above that of the shapes.
    """

    recordings: Recordings
    measurements: Mapping[str, Callable[[], Any]]
    keys: tuple[str, ...]
    ratio: str
    library: str
    peak: str
    heading: Callable[[dict[str, Any]], str]
    shapes_heading: str

    def text(self, values: dict[str, Any]) -> str:
        """All tables as text."""
        parts = [f"{self.heading(values[key])}\n{self._ladder(values[key])}" for key in self.keys]
        return "\n\n".join([*parts, f"{self.shapes_heading}\n{self._shapes(values['shapes'])}"])

    def _ladder(self, table: dict[str, Any]) -> str:
        headers = ("kernel", "ms", "TFLOP/s", f"of {self.library}", f"of {self.peak}", "error", "right")
        rows = [
            (
                f"{row['step']} {row['name']}" if row["step"] else NAMES[row["name"]],
                row["seconds"] * 1e3,
                row["tflops"],
                row[self.ratio],
                "" if row["ratio_to_peak"] is None else row["ratio_to_peak"],
                row["relative_error"],
                row["correct"],
            )
            for row in table["rows"]
        ]
        return benchmark.table(headers, rows)

    def _shapes(self, rows: list[dict[str, Any]]) -> str:
        timed = [name for name in rows[0] if isinstance(rows[0][name], dict)]
        more = [name for name in ("tiles",) if name in rows[0]]
        headers = ("m × n × k", *(NAMES.get(name, name) for name in timed), f"of {self.library}", *more, "right")
        return benchmark.table(
            headers,
            [
                (
                    " × ".join(map(str, row["shape"])),
                    *(row[name]["tflops"] for name in timed),
                    *(row[key] for key in (self.ratio, *more, "correct")),
                )
                for row in rows
            ],
        )

    def figures(self, values: dict[str, Any]) -> dict[str, Any]:
        """What the final line holds."""
        found: dict[str, Any] = {"correct": self.correct(values)}
        for table in (values[key] for key in self.keys):
            label = " ".join(str(table[key]) for key in ("side", "result") if key in table)
            found[label] = {key: table[key] for key in ("peak_tflops", "peaks_tflops") if key in table} | {
                "tflops": {row["name"]: row["tflops"] for row in table["rows"]},
                self.ratio: {row["name"]: row[self.ratio] for row in table["rows"] if row["step"]},
            }
        by_shape = {"x".join(map(str, row["shape"])): row[self.ratio] for row in values["shapes"]}
        return found | {f"{self.ratio}_by_shape": by_shape}

    def correct(self, values: dict[str, Any]) -> bool:
        """Whether every product was right."""
        rows = [row for key in self.keys for row in values[key]["rows"]]
        return all(row["correct"] for row in [*rows, *values["shapes"]])

    def main(self, description: str) -> int:
        """The command: returns the exit code, 0, or 1 when a product was wrong; ends with 2 where there is no GPU."""
        topic = self.recordings.topic
        parser = argparse.ArgumentParser(prog=f"python -m kernels.{topic}.benchmark", description=description)
        parser.add_argument("--record", action="store_true", help="measure everything and write recordings.json")
        arguments = parser.parse_args()
        benchmark.require_gpu()
        if arguments.record:
            values = self.recordings.record(self.measurements)
        else:
            values = {key: benchmark.rounded(self.measurements[key]()) for key in (*self.keys, "shapes")}
        print(self.text(values))
        print(benchmark.last_line(topic, self.figures(values)))
        return 0 if self.correct(values) else 1
