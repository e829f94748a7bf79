"""What labs 04 and 05 measure of kernels that choose a plan by shape, beside cuBLASLt's fastest algorithm.

Cold: operands and results lie in so many sets of arrays, taken in turns, that no call finds its own in the L2 cache;
warm: every call has the same. Every result is checked against float64 on some rows, before it is timed.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpcourse.bench import cublaslt, timing
from warpcourse.bench.autotune import Autotuner
from warpcourse.bench.shape_rule import Rule, Shape, packed, regret
from warpcourse.bench.timing import Candidate, cupy_on_gpu, rounded, rows_table, sets_beyond_l2, time_gpu, time_together

CHECKED_ROWS = 64
MOST_SETS = 16
RUNS = 8
LONG = 1e-3  # seconds of a call, of which fewer are timed
DRAWN, LEAST, MOST = 40, 16, 16384  # shapes, and their sides
Case = tuple[Shape, str]  # and what is transposed, as BLAS says it
# Products of networks: of language models for one, eight and 32 tokens, of BERT, ViT and GPT-2, of convolutions 1 × 1,
# of last layers; and squares of no power of two.
NETWORKS: tuple[Shape, ...] = (
    *((1, 4096, 4096), (8, 11008, 4096), (32, 4096, 11008), (128, 768, 768), (128, 3072, 768), (1576, 768, 768)),
    *((1576, 3072, 768), (197, 768, 3072), (512, 1024, 4096), (2048, 5120, 5120), (4096, 10240, 1280)),
    *((1024, 50257, 768), (100352, 64, 64), (6272, 512, 128), (784, 2048, 512), (256, 1000, 2048), (64, 1000, 2048)),
    *((32, 10, 500), (257, 1024, 1024), (300, 300, 300), (1000, 1000, 1000), (96, 96, 30000)),
)


@dataclass(frozen=True)
class Kernels:
    """A lab's kernels: `launch(a, b, c, plan, transposed)`, and the rule that chooses the plan.

    `dtype`: of operands and results; `most_error`: relative, in the Frobenius norm. `compile_ahead`: compile what plans
    need, each for a shape and what is transposed, in a process for each core.
    """

    dtype: str
    most_error: float
    launch: Callable[..., None]
    rule: Rule
    compile_ahead: Callable[[Iterable[tuple[Any, Shape, str]]], None]

    def prepare(self, cases: Iterable[Case]) -> None:
        """Compile what the rule chooses for cases."""
        self.compile_ahead((self.rule.chosen(*shape, transposed), shape, transposed) for shape, transposed in cases)


def drawn(seed: int, multiple: int = 1, count: int = DRAWN) -> list[Shape]:
    """Return shapes whose sides are drawn evenly by their logarithm, from LEAST to MOST, and rounded to a multiple."""
    sides = np.exp(np.random.default_rng(seed).uniform(math.log(LEAST), math.log(MOST), (count, 3)))
    return [tuple(max(1, round(side / multiple)) * multiple for side in row) for row in sides]  # type: ignore[misc]


def _sets(kernels: Kernels, shape: Shape, transposed: str = "NN") -> list[tuple[Any, Any, Any]]:
    cupy = cupy_on_gpu()
    m, n, k = shape
    shapes = ((m, k), (k, n), (m, n))
    nbytes = sum(rows * columns for rows, columns in shapes) * np.dtype(kernels.dtype).itemsize

    def random(size: tuple[int, int], letter: str) -> Any:
        return cupy.random.uniform(-1, 1, size[:: -1 if letter == "T" else 1], dtype=np.float32).astype(kernels.dtype)

    return [
        (*map(random, shapes[:2], transposed), cupy.empty((m, n), kernels.dtype))
        for _ in range(sets_beyond_l2(nbytes, MOST_SETS))
    ]


def _exact(arrays: tuple[Any, Any, Any], transposed: str) -> list[tuple[slice, Any]]:
    """Return the first and the last rows of a product, in float64."""
    a, b = (x.T if letter == "T" else x for x, letter in zip(arrays[:2], transposed, strict=True))
    b = b.astype(np.float64)
    return [(some, a[some].astype(np.float64) @ b) for some in (slice(CHECKED_ROWS), slice(-CHECKED_ROWS, None))]


def wrong(kernels: Kernels, function: Callable[..., None], arrays: tuple[Any, Any, Any], exact: Sequence[Any]) -> str:
    """Run a product into poisoned memory; return what is wrong with it, "" if nothing."""
    import cupy

    c = arrays[2]
    c.fill(np.nan)
    function(*arrays)
    error = max(float(cupy.linalg.norm(c[some] - rows) / cupy.linalg.norm(rows)) for some, rows in exact)
    missing = int(cupy.isnan(c).sum())
    return "" if error < kernels.most_error and not missing else f"error {error:.2g}, {missing} left out"


def _library(kernels: Kernels, shape: Shape, sets: Sequence[tuple], transposed: str) -> Callable[..., None] | None:
    """Return the library's fastest algorithm for these sets; None where it has none."""
    try:
        product = cublaslt.Product(*shape, kernels.dtype, kernels.dtype, transposed)
    except Exception as error:  # of nvmath, whose class is not at hand without it
        if "cublas" not in type(error).__name__.lower():
            raise
        return None
    return functools.partial(product.launch, result=product.fastest(*sets)) if product.results else None


def _clocks(launch: Callable[..., None], sets: Sequence[tuple]) -> float:
    """Return clocks per second of all multiprocessors while a product runs again and again; 0 without `pynvml`."""
    try:
        import pynvml
    except ImportError:
        return 0
    import cupy

    pynvml.nvmlInit()
    seen = []
    for i in range(30):
        launch(*sets[i % len(sets)])
        if i % 5 == 4:  # some are queued, and the clock is that under load
            seen.append(pynvml.nvmlDeviceGetClockInfo(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.NVML_CLOCK_SM))
            cupy.cuda.get_current_stream().synchronize()
    return 1e6 * sorted(seen)[len(seen) // 2] * cupy.cuda.Device().attributes["MultiProcessorCount"]


def table(kernels: Kernels, shapes: Iterable[Shape]) -> list[dict[str, Any]]:
    """Return for each shape the cold times of all plans, in µs: `shape`, `library` (None where it refuses) and `plans`,
    each [*packed(plan), µs]. RuntimeError for a plan whose result is wrong."""
    found = []
    for shape in shapes:
        sets = _sets(kernels, shape)
        exact = _exact(sets[0], "NN")
        library = _library(kernels, shape, sets, "NN")
        row: dict[str, Any] = {"shape": list(shape), "library": None, "plans": []}
        if library:
            row["library"] = time_gpu(library, sets, runs=RUNS).seconds * 1e6
        for plan in kernels.rule.plans(shape):
            launch = functools.partial(kernels.launch, plan=plan)
            if reason := wrong(kernels, launch, sets[0], exact):
                raise RuntimeError(f"{plan} computes a wrong product of {shape}: {reason}")
            row["plans"].append([*packed(plan), time_gpu(launch, sets, runs=RUNS).seconds * 1e6])
        found.append(rounded(row))
    return found


def tuner(topic: str, kernels: Kernels, shapes: Sequence[Shape], doc: str, available: Callable[[], bool]) -> Autotuner:
    """Return the command that measures all plans of shapes and fits the rule's constants to half of them."""

    @functools.cache
    def rows() -> list[dict[str, Any]] | None:
        if not available():
            return None
        kernels.compile_ahead((plan, shape, "NN") for shape in shapes for plan in kernels.rule.plans(shape))
        return table(kernels, shapes)

    def rule() -> dict[str, Any] | None:
        return None if (found := rows()) is None else kernels.rule.fitted(found)

    return Autotuner(f"{topic}.tune_plans", kernels.rule.path, {"rule": rule, "rows": rows}, doc)


def compared(kernels: Kernels, cases: Iterable[Case], of: Sequence[str] = ("cold", "warm")) -> list[dict[str, Any]]:
    """Measure the chosen plan in turns with the library, by shape and what is transposed, cold and warm."""
    found = []
    for shape, transposed in cases:
        sets = _sets(kernels, shape, transposed)
        plan = kernels.rule.chosen(*shape, transposed)
        launch = functools.partial(kernels.launch, plan=plan, transposed=transposed)
        row: dict[str, Any] = {"shape": list(shape), "transposed": transposed, "plan": str(plan)}
        row["correct"] = not wrong(kernels, launch, sets[0], _exact(sets[0], transposed))
        for name, some in (("cold", sets), ("warm", sets[:1])):
            if name not in of:
                continue
            if name == "warm" and len(sets) == 1:  # more than the cache holds, in any case
                row["warm"] = row["cold"]
                continue
            library = _library(kernels, shape, some, transposed)
            candidates = {"ours": Candidate(launch, some)} | ({"library": Candidate(library, some)} if library else {})
            runs = RUNS if time_gpu(launch, some, runs=2).seconds < LONG else 2
            timings = time_together(candidates, rounds=4, runs=runs, warmup=1)
            row[name] = {key: each.seconds for key, each in timings.items()}
            if library:
                row[name]["ratio"] = timings["library"].seconds / timings["ours"].seconds
        if "warm" in of and row["cold"]["ours"] > LONG and (clocks := _clocks(launch, sets)):
            row["flop_per_clock"] = 2 * math.prod(shape) / (row["cold"]["ours"] * clocks)
        found.append(row)
    return found


def summary(rows: Iterable[dict[str, Any]], of: str = "cold") -> dict[str, Any]:
    """Return the geometric mean and the least ratio to the library, and how many are below 0.8."""
    ratios = [row[of]["ratio"] for row in rows if "ratio" in row[of]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {"shapes": len(ratios), "mean": mean, "least": min(ratios), "below_0.8": sum(r < 0.8 for r in ratios)}


def plain(shapes: Iterable[Shape]) -> list[Case]:
    """Return cases of which nothing is transposed."""
    return [(shape, "NN") for shape in shapes]


def drawn_again(kernels: Kernels, seed: int) -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    kernels.prepare(cases := plain(drawn(seed)))
    return summary(compared(kernels, cases, ("cold",)))


def every_shape(
    kernels: Kernels, seed: int, groups: Mapping[str, Sequence[Case]], again: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Measure groups of cases beside the library, and the shapes of networks and those drawn: `rows` by group,
    `summaries` of each, cold and warm, and the library's version.

    `again()`: `drawn_again` as a function of a module; `processes` has what it returns in two new processes.
    """
    groups = {"networks": plain(NETWORKS), "drawn": plain(drawn(seed)), **groups}
    kernels.prepare(case for cases in groups.values() for case in cases)
    rows = {name: compared(kernels, cases) for name, cases in groups.items()}
    return {
        "seed": seed,
        "cublaslt": cublaslt.version(),
        "summaries": {name: {of: summary(found, of) for of in ("cold", "warm")} for name, found in rows.items()},
        "processes": timing.in_new_processes(again),
        "rows": rows,
    }


def _regret(rule: Rule) -> tuple[str, str]:
    """Say how long the rule's choice takes for the shapes of plans.json that it is not fitted to."""
    rows, constants = rule.rows()[1::2], rule.table["rule"]["constants"]
    found = {row.shape: 100 * (regret(row, rule.best(constants, row.shape)) - 1) for row in rows}
    mean, worst = 100 * (rule.table["rule"]["regret_held_out"]["mean"] - 1), max(found, key=lambda each: found[each])
    return (
        f"for the other half, {len(rows)} shapes, its choice takes {mean:.1f} % more than the fastest plan, the mean,",
        f"more than 15 % for {sum(more > 15 for more in found.values())} of them, at worst {found[worst]:.0f} %: "
        f"{' × '.join(map(str, worst))} ({rule.table['device']}, {rule.table['date']})",
    )


def text(value: dict[str, Any], rule: Rule, limits: Iterable[str] = ()) -> str:
    """Return the tables of what `every_shape` gave. `limits`: what the lab says of the slowest, a line each."""
    lines = [f"cuBLASLt {value['cublaslt']}, its fastest algorithm = 1; the rule is fitted to half of plans.json:"]
    lines += [f"those of networks and of the lab are there, those drawn, with seed {value['seed']}, are not"]
    lines += [*_regret(rule), *limits, "FLOP/clock: of an SM, by the clock that the driver reports", ""]
    found = [
        {"group": name, "operands": of, **numbers}
        for name, both in value["summaries"].items()
        for of, numbers in both.items()
    ] + [{"group": f"drawn, process {i + 2}", "operands": "cold", **each} for i, each in enumerate(value["processes"])]
    headers = ("shapes", "L2", "number", "geometric mean", "least", "below 0.8")
    lines += [rows_table(headers, ("group", "operands", "shapes", "mean", "least", "below_0.8"), found), ""]

    def micro(of: str, who: str) -> Callable[[dict[str, Any]], Any]:
        return lambda row: row[of][who] * 1e6 if who in row[of] else "refused"

    columns = ("m × n × k", "", "µs", "library", "ratio", "warm µs", "library", "ratio", "FLOP/clock", "right")
    keys = (
        lambda row: " × ".join(map(str, row["shape"])),
        "transposed",
        *(micro("cold", "ours"), micro("cold", "library"), lambda row: row["cold"].get("ratio", "")),
        *(micro("warm", "ours"), micro("warm", "library"), lambda row: row["warm"].get("ratio", "")),
        lambda row: row.get("flop_per_clock", ""),
        "correct",
    )
    return "\n".join(lines + [rows_table(columns, keys, [row for group in value["rows"].values() for row in group])])
