"""The autotuner that labs share: the sizes with which a kernel runs fastest, kept in the lab's tiles.json.

    AUTOTUNER = Autotuner("matmul", tiles.PATH, {"shapes": best_of_all_shapes}, __doc__)
    if __name__ == "__main__":
        AUTOTUNER.main()

Each candidate's result is checked. All run a few times; the best FINALISTS then take turns.
"""

import argparse
import functools
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpcourse.bench import timing
from warpcourse.bench.timing import Candidate, time_gpu, time_together

FINALISTS = 5


def compile_all(compile_one: Callable[[Any], Any], candidates: Iterable[Any]) -> None:
    """Fill CuPy's cache on disk, in a process for each core. `compile_one`: a function of a module, for pickle."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_one, candidates))


def rank(
    candidates: Iterable[Any],
    launch: Callable[[Any], Candidate],
    wrong: Callable[[Any], str],
    *,
    alone: int,
    rounds: int,
    runs: int,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the seconds of all candidates, and those of the finalists from the fastest on.

    `launch(sizes)`: what is timed. `wrong(sizes)`: run it and say what is wrong with its result, "" if nothing.
    `alone`: runs of each candidate by itself; `rounds`, `runs`: those of the finalists' turns.
    """
    seconds = {}
    for sizes in candidates:
        if reason := wrong(sizes):
            raise RuntimeError(f"{sizes} computes a wrong result: {reason}")
        one = launch(sizes)
        seconds[sizes] = time_gpu(one.function, one.arguments, runs=alone).seconds
    finalists = sorted(seconds, key=seconds.__getitem__)[:FINALISTS]
    turns = {str(i): launch(sizes) for i, sizes in enumerate(finalists)}
    timings = time_together(turns, rounds=rounds, runs=runs, warmup=1)
    order = sorted(timings, key=lambda i: timings[i].seconds)
    return seconds, {finalists[int(i)]: timings[i].seconds for i in order}


@dataclass(frozen=True)
class Autotuner:
    """The command `python -m kernels.TOPIC.autotune [key ...]`. Without a GPU: exit code 2.

    `path`: of tiles.json, a dict with `device`, `date`, and what `tune[key]()` returns in JSON types, by its key. What
    the file says of a key that is not named stays, if it is from the same GPU. None of `tune[key]()`: this GPU cannot
    run it; where that holds for all, exit code 2, too.
    """

    topic: str
    path: Path
    tune: Mapping[str, Callable[[], Any]]
    doc: str

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Measure, write the file, and end with a line of JSON."""
        names = ", ".join(self.tune)
        parser = argparse.ArgumentParser(prog=f"python -m kernels.{self.topic}.autotune", description=self.doc)
        parser.add_argument("keys", nargs="*", help=f"of {names} (default: all that the GPU can run)")
        chosen = parser.parse_args(arguments).keys or list(self.tune)
        if unknown := set(chosen) - set(self.tune):
            parser.error(f"there is nothing to tune in {', '.join(unknown)}; choose of {names}")
        timing.require_gpu("The autotuner")
        found = {key: timing.rounded(row) for key in chosen if (row := self.tune[key]()) is not None}
        if not found:
            raise SystemExit(timing.NO_GPU)
        about = timing.machine()
        before = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        same = before.get("device") == about["device"]
        rows = {key: before[key] for key in self.tune if same and key in before} | found
        self.path.write_text(_text({"device": about["device"], "date": about["date"], **rows}) + "\n", encoding="utf-8")
        print(timing.last_line(f"{self.topic}-autotune", rows, about))


def _text(value: Any, depth: int = 0) -> str:
    """Return JSON with a line for each key of the table, and for each row of a list or of a dict of dicts, for git."""
    text = functools.partial(json.dumps, ensure_ascii=False)
    table = isinstance(value, dict) and (not depth or all(isinstance(row, dict) for row in value.values()))
    if depth > 1 or not (table or isinstance(value, list)):
        return text(value)
    rows = [f"{text(key)}: {_text(row, depth + 1)}" for key, row in value.items()] if table else map(text, value)
    indent = "\n" + " " * depth
    first, last = "{}" if table else "[]"
    return f"{first}{indent} " + f",{indent} ".join(rows) + indent + last
