"""The command that every lab's benchmark is: measure, show tables, record, end with a line of JSON.

BENCHMARK = Benchmark(recordings, MEASUREMENTS, {"kernel_table": Table(text, summary)}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
"""

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from warpcourse.bench import random_inputs, timing
from warpcourse.bench.recordings import Recordings

WRONG = 1  # exit code when an output was wrong or a measurement failed


class Table(NamedTuple):
    """How a measured value is shown. `text`: its table, with a heading; `summary`: what the final line holds of it."""

    text: Callable[[Any], str]
    summary: Callable[[Any], dict[str, Any]] = lambda value: {}

    @classmethod
    def of_rows(
        cls,
        heading: str | Callable[[Any], str],
        columns: Mapping[str, str | Callable[[Any], Any]],
        summary: Callable[[Any], dict[str, Any]] = lambda value: {},
        rows: str = "rows",
    ) -> "Table":
        """Return the table of a value that is a list of rows, or has one under the key `rows`.

        `heading`: a function of the value, or a text in which its keys stand, as in "sum of {n:,} float32". `columns`:
        by header what stands below it, as `timing.rows_table` takes it.
        """

        def text(value: Any) -> str:
            title = (
                heading(value) if callable(heading) else heading if isinstance(value, list) else heading.format(**value)
            )
            found = value if isinstance(value, list) else value[rows]
            return f"{title}\n{timing.rows_table(tuple(columns), tuple(columns.values()), found)}"

        return cls(text, summary)


@dataclass(frozen=True)
class Benchmark:
    """The benchmark of a lab.

    `measurements`: functions by key, each returning JSON types, in which `correct` says whether an output was right.
    `tables`: by key of `measurements`; those are measured where nothing else is asked for. `description`: for --help.
    `not_recorded`: keys of `measurements` that no GPU has recorded yet; the lab's page names them, and a test asks for
    them to leave here once they are.
    """

    recordings: Recordings
    measurements: Mapping[str, Callable[[], Any]]
    tables: Mapping[str, Table]
    description: str = ""
    not_recorded: frozenset[str] = frozenset()

    def text(self, values: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]] | None = None) -> str:
        """Return the tables of those keys in `values` that have one. `machines`: by key what measured them, whose empty
        launch is the last row, where it was recorded."""

        def text(key: str) -> str:
            seconds = (machines or {}).get(key, {}).get("empty_seconds")
            last = f"\nan empty launch: {1e6 * seconds:.2f} µs" if seconds else ""
            return self.tables[key].text(values[key]) + last

        return "\n\n".join(text(key) for key in self.tables if key in values)

    def summary(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the final line holds under "figures"."""
        shown = {key: table.summary(values[key]) for key, table in self.tables.items() if key in values}
        return {"correct": correct(values), **{key: found for key, found in shown.items() if found}}

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Return the exit code: 0, or 1 when an output was wrong or a measurement failed.

        Ends the program with code 2 where there are too few GPUs. What is measured is kept when another fails.
        """
        chosen = self._parser().parse_args(arguments)
        keys = chosen.only or list(self.measurements if chosen.record else self.tables)
        timing.require_gpu(gpus=self.recordings.gpus)
        machine = timing.machine(self.recordings.gpus)
        print(f"random inputs: seed {random_inputs.SEED} (WARPLAB_SEED sets another)", flush=True)
        values, machines, failed = {}, {}, []
        for key in keys:
            print(f"{'recording' if chosen.record else 'measuring'} {key}", flush=True)
            try:
                random_inputs.restart()
                value = timing.rounded(self.measurements[key]())
            except Exception:
                traceback.print_exc()
                failed.append(key)
                continue
            values[key] = value
            machines[key] = machine | timing.rounded({"empty_seconds": timing.empty_launch()["seconds"]})
            if chosen.record:
                self.recordings.write(key, value, machines[key])
        print(self.text(values, machines))
        for key in failed:
            print(
                f"error: {key} could not be measured (see above); the other measurements are kept. Run "
                f"`python -m {self.recordings.package}.benchmark{' --record' * chosen.record} --only {key}` again.",
                file=sys.stderr,
            )
        found = self.summary(values) | ({"failed": failed} if failed else {})
        print(timing.last_line(self.recordings.topic, found, machine))
        return 0 if correct(values) and not failed else WRONG

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.recordings.package}.benchmark", description=self.description
        )
        parser.add_argument("--record", action="store_true", help="write what is measured to recordings.json")
        parser.add_argument(
            "--only",
            action="append",
            metavar="KEY",
            choices=list(self.measurements),
            help=f"measure this key alone (may be repeated): {', '.join(self.measurements)}",
        )
        return parser


def correct(value: Any) -> bool:
    """Return whether every `correct` in a measured value, however deep, is true."""
    if isinstance(value, Mapping):
        return all(item is True if key == "correct" else correct(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(correct, value))
    return True
