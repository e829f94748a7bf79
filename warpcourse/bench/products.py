"""What labs with matrix products share: rates, and tables of a ladder of kernels and of products by shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpcourse.bench.benchmark import Table
from warpcourse.bench.timing import Timing, rows_table

NAMES = {"cublas": "cuBLAS", "cublaslt": "cuBLASLt"}  # of libraries, as tables and pictures show them


def rates_of(timing: Timing, m: int, n: int, k: int) -> dict[str, float]:
    """Return seconds of a timing and TFLOP/s of its median: 2 · m · n · k operations, 1e12 per second."""
    return {
        "seconds": timing.seconds,
        "fastest_seconds": timing.fastest,
        "slowest_seconds": timing.slowest,
        "tflops": 2 * m * n * k / timing.seconds / 1e12,
    }


@dataclass(frozen=True)
class ProductTables:
    """The tables of a lab's ladders and of its products by shape.

    `ratio`: key of the ratio to the library, which tables call `library`; `peak`: what they call the measured peak.
    `heading`: what stands above a ladder's table; `shapes_heading`: above that of the shapes.
    """

    ratio: str
    library: str
    peak: str
    heading: Callable[[dict[str, Any]], str]
    shapes_heading: str

    def ladder(self) -> Table:
        """Return the table of a measured ladder: a row per kernel."""
        return Table(lambda value: f"{self.heading(value)}\n{self._ladder(value)}", self._ladder_summary)

    def shapes(self) -> Table:
        """Return the table of products by shape: a row per shape."""
        return Table(lambda rows: f"{self.shapes_heading}\n{self._shapes(rows)}", self._shapes_summary)

    def _ladder(self, value: dict[str, Any]) -> str:
        def name(row: dict[str, Any]) -> str:
            return f"{row['step']} {row['name']}" if row["step"] else NAMES[row["name"]]

        headers = ("kernel", "ms", "TFLOP/s", f"of {self.library}", f"of {self.peak}", "error", "right")
        keys = (name, "seconds", "tflops", self.ratio, "ratio_to_peak", "relative_error", "correct")
        return rows_table(headers, keys, value["rows"])

    def _ladder_summary(self, value: dict[str, Any]) -> dict[str, Any]:
        about = {key: value[key] for key in ("side", "result", "peak_tflops", "peaks_tflops") if key in value}
        return about | {
            "tflops": {row["name"]: row["tflops"] for row in value["rows"]},
            self.ratio: {row["name"]: row[self.ratio] for row in value["rows"] if row["step"]},
        }

    def _shapes(self, rows: list[dict[str, Any]]) -> str:
        timed = [name for name in rows[0] if isinstance(rows[0][name], dict)]
        more = [name for name in ("tiles",) if name in rows[0]]
        headers = ("m × n × k", *(NAMES.get(name, name) for name in timed), f"of {self.library}", *more, "right")
        rates: list[Any] = [lambda row, name=name: row[name]["tflops"] for name in timed]
        keys = (lambda row: " × ".join(map(str, row["shape"])), *rates, self.ratio, *more, "correct")
        return rows_table(headers, keys, rows)

    def _shapes_summary(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {self.ratio: {"x".join(map(str, row["shape"])): row[self.ratio] for row in rows}}
