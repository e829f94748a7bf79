"""The check of a kernel: right results on adversarial inputs, nothing outside its arrays, counters within limits.

Every launch runs in the simulator, also where there is a GPU, so that a grade does not depend on the card.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any, Literal

import numpy as np

from warplab.checks import outputs
from warplab.checks.cases import DEFAULT_SIZES, Launch, MakeCase, Size, cover
from warplab.checks.counter_limits import Limit, Limits, float64_line
from warplab.checks.errors import CheckFailed
from warplab.checks.kernel_run import KernelRun, Printed, counted
from warplab.checks.launch_failures import Launched, launch
from warplab.checks.session import fresh_seed
from warplab.checks.shared_work import SharedWork
from warplab.compile import cuda_mistakes
from warplab.compile.kernel_mistakes import lost_result, never_set, swapped_range
from warplab.launch.kernel_source import source_of

Language = Literal["Numba", "CUDA C++"]
LaunchOfSize = Launch | Callable[[Any], Launch]

DEFAULT_LAUNCHES = (cover(32), cover(128))
_SAID: set[str] = set()  # of kernels that pass: the lines in float64


def kernel(
    kernel: Any,
    make_case: MakeCase,
    *,
    sizes: Iterable[Size] | Callable[[np.random.Generator], Iterable[Size]] = DEFAULT_SIZES,
    launches: Iterable[LaunchOfSize] | Callable[[np.random.Generator], Iterable[LaunchOfSize]] = DEFAULT_LAUNCHES,
    limits: Mapping[str, Limit] | None = None,
    least: Mapping[str, Limit] | None = None,
    products: Mapping[str, Limit] | None = None,
    per_thread: Mapping[str, Limit] | None = None,
    shared: SharedWork | None = None,
    language: Language | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    seed: int | None = None,
    sample_blocks: int | None = None,
) -> None:
    """Check a kernel on every size and launch; raise `CheckFailed` at the first thing that is wrong.

    `kernel`: a kernel made by `@cuda.jit`, `%%cuda` or `cp.RawModule`.
    `make_case(rng, n)`: returns the arguments and the expected result for size n, as `elementwise` does. A size is an
    integer or a tuple of integers, such as (rows, columns); failures name the fields of a named tuple.
    `sizes`: these sizes, or a function of a random generator that draws them.
    `launches`: (blocks, threads per block), each an integer or up to three of them; or functions of n that return it;
    or a function of a random generator that draws them.
    `limits`: maps a counter of `Counts`, or a derived property such as "sectors_per_load_request", to the most that a
    launch may reach: a number or a function of n. `least`: the same for the least that it must reach. Both may name
    one of `thread_work.TOTALS`, such as "writing_threads", too. With a limit on
    loads or stores, atomics and bulk copies, which also load and store, are allowed only if "atomics" and
    "bulk_copies" have limits, too.
    `products`: maps a key of `LaunchProfile.tensor_operations`, such as "m16n16k16.f32.f16", to the exact number of
    these matrix products that a launch makes on tensor cores. It may make no others.
    `per_thread`: maps a kind of work (`thread_work.KINDS`, such as "instructions" or "bytes_written") to the most that
    one thread may do. This is what a serial kernel cannot meet.
    `shared`: what `shared_work` returns: the limits of a kernel whose threads share its work.
    `language`: what the kernel must be written in.
    `rtol`, `atol`: tolerance for floating-point results; the default asks for equal values.
    `seed`: repeats an earlier run; each failure names its seed.
    `sample_blocks`: about how many blocks of a launch run, the first and the last among them, on cases of `at_the_end`.
    """
    name = kernel_name(kernel, language)
    _refuse_unset_sums(kernel, name)
    seed = fresh_seed() if seed is None else seed
    chosen_sizes = sizes(np.random.default_rng(seed)) if callable(sizes) else sizes
    # Largest first: mistakes that look alike on one element can be told apart on many.
    sizes = sorted(set(chosen_sizes), key=lambda n: (np.prod(n), n), reverse=True)
    launches = list(launches(np.random.default_rng([seed, 1])) if callable(launches) else launches)
    if not sizes or not launches:
        raise ValueError("no sizes or no launches to check")

    def run(n: Size, number: int) -> KernelRun:
        chosen = launches[number]
        grid, block = chosen(n) if callable(chosen) else chosen
        case = make_case(np.random.default_rng([seed, *np.atleast_1d(n), number]), n)
        return KernelRun(kernel, name, case, n, grid, block, seed, rtol, atol, sample_blocks, printed=printed)

    printed, given = Printed(), Limits(limits or {}, least or {}, products, per_thread or {})

    def wanted(launch: KernelRun) -> list[Limits]:
        return [given, shared.limits(launch, given)] if shared else [given]

    in_float64 = ""
    with printed.shown():
        smallest = run(sizes[-1], 0)
        launched = _launch_unless_endless(smallest, wanted(smallest))
        for n in sizes:
            for number in range(len(launches)):
                if (n, number) == (sizes[-1], 0):
                    in_float64 = _check(smallest, wanted(smallest), launched) or in_float64
                else:
                    next_run = run(n, number)
                    in_float64 = _check(next_run, wanted(next_run)) or in_float64
    print(f"{name}: right for {counted(len(sizes), 'size')} and {counted(len(launches), 'launch shape')}.")
    if in_float64:
        why = "as said before." if in_float64 in _SAID else f"with inputs and results that are not.\n{in_float64}"
        print(f"But it computes in float64, {why}")
        _SAID.add(in_float64)


def kernel_name(kernel: Any, language: Language | None) -> str:
    """Return a kernel's name. Raise `CheckFailed` for what is none, for an empty one and for another language."""
    if isinstance(kernel, FunctionType) or getattr(kernel, "_warplab_on_the_host", False):
        raise CheckFailed(
            f"{kernel.__name__} is a Python function, which runs on the host.",
            expected="a kernel, which runs on the device",
            look_at="the line above its definition: @cuda.jit turns a function into a kernel",
            kind="no kernel",
        )
    try:
        source = source_of(kernel)
    except TypeError as error:
        raise CheckFailed("This is not a kernel.", got=str(error), kind="no kernel") from None
    # Numba 0.30 cannot compile an empty kernel that has a docstring and line information.
    if source.blank:
        raise CheckFailed(f"{source.name} is not written yet: its body is empty.", kind="not written")
    if language is not None and source.language != language:
        raise CheckFailed(
            f"{source.name} is written in the wrong language.",
            expected=language,
            got=source.language,
            kind="wrong language",
        )
    return source.name


def _refuse_unset_sums(kernel: Any, name: str) -> None:
    """Refuse sums that may start at anything; the simulator runs the compiler's code, which does not show it."""
    code = getattr(source_of(kernel), "code", "")
    if found := _in_source(never_set, kernel) or cuda_mistakes.never_set(code):
        line, meant = found.split("\n", 1)
        raise CheckFailed(
            f"{name} adds to what was never set.", got=meant, look_at=line, line=line, kind="uninitialized"
        )


def _in_source(find: Callable[[Callable], str], kernel: Any) -> str:
    """Return what `find`, of kernel_mistakes, sees in a Python kernel; "" for others."""
    function = getattr(kernel, "py_func", None)
    return find(function) if function is not None else ""


def _other_order(run: KernelRun) -> str:
    """Return a sentence on parameters of the names that the check passes, in another order; "" if they are not."""
    named, passed = list(getattr(source_of(run.kernel), "parameters", ())), list(run.case.arguments)
    if named == passed or sorted(named) != sorted(passed):
        return ""
    return f"the order of the parameters: {run.name} has ({', '.join(named)}) and gets ({', '.join(passed)})"


def _launch_unless_endless(smallest: KernelRun, limits: list[Limits]) -> Launched | CheckFailed:
    """Launch the kernel on the smallest size. Raise `CheckFailed` if it does not end; return any other failure.

    An endless loop runs up to its limit: for seconds on many elements, for a tenth of that on the fewest.
    """
    try:
        return _launch(smallest, limits)
    except CheckFailed as error:
        if error.kind == "endless" and not smallest.active_lanes.asked:
            raise
        return error


def _launch(run: KernelRun, limits: list[Limits]) -> Launched:
    return launch(
        run,
        counters=any(limits),
        by_thread=any(some.by_thread for some in limits),
        path_limit=max(some.serial_path(run) for some in limits),
    )


def _check(run: KernelRun, limits: list[Limits], launched: Launched | CheckFailed | None = None) -> str:
    """Check one launch. `launched`: what came of it, if it was made before.

    Returns the line that was seen to compute in float64 without need, and why; "" if none was.
    """
    try:
        return _check_once(run, limits, launched)
    except CheckFailed as error:
        code = getattr(source_of(run.kernel), "code", "")
        if look_at := _other_order(run) or _in_source(swapped_range, run.kernel) or cuda_mistakes.chained(code):
            raise error.but(look_at=look_at) from None
        if not run.active_lanes.asked:
            raise
        try:
            _check_once(replace(run, lanes_apart=False), limits, None)
        except CheckFailed:
            raise error from None
        raise error.but(
            problem=f"{run.name} is right only where `__activemask()` happens to name several lanes, as CUDA does not "
            "promise.",
            look_at="`__activemask()` and `coalesced_threads()`, which asks it: it may name this lane alone. Use "
            "`__ballot_sync`, `__match_any_sync` or a full mask.",
            missed="`__activemask()` may name this lane alone",
        ) from None


def _check_once(run: KernelRun, limits: list[Limits], launched: Launched | CheckFailed | None) -> str:
    """Check one launch as the lanes of a warp run it: apart, or together."""
    if isinstance(launched, CheckFailed):
        raise launched
    profile, buffers, work, uncounted = launched or _launch(run, limits)
    if not any(limits):
        try:
            outputs.check(run, buffers)
            return ""
        except CheckFailed:  # the counters help to tell why
            profile, buffers, work, uncounted = launch(run, counters=True)
    counts = profile.counts
    if not (counts.global_store_bytes or counts.atomics or counts.bulk_copies):
        raise run.failed(
            f"{run.name} wrote nothing. Either it is not written yet, or its result is never stored.",
            expected=f"values in {', '.join(run.case.expected)}",
            got="no store to global memory",
            look_at=_in_source(lost_result, run.kernel),
            kind="not written",
        )
    outputs.check(run, buffers, profile.counts)
    for some in limits:
        some.check(run, profile, work, uncounted)
    given = [*run.case.arguments.values(), *run.case.expected.values()]
    needed = any(getattr(value, "dtype", None) == np.float64 for value in given)
    return "" if needed else float64_line(run, profile)
