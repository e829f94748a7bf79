"""The check of a kernel: right results on adversarial inputs, nothing outside its arrays, counters within limits.

Every launch runs in the simulator, also where there is a GPU, so that a grade does not depend on the card.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal

import numpy as np

from warplab.checks import explain, fragments
from warplab.checks.cases import (
    DEFAULT_SIZES,
    POISON_BYTE,
    Case,
    Dimensions,
    Launch,
    MakeCase,
    Size,
    cover,
    poisoned,
    same_bits,
)
from warplab.checks.errors import CheckFailed, kind_of, line_of
from warplab.checks.session import device, fresh_seed
from warplab.simulator.count.counters import COUNTERS, Counts, LaunchProfile
from warplab.simulator.errors import DataRace, IllegalAddress, InstructionLimit, SimulatorError, SimulatorFailure

Limit = float | Callable[[Size], float]
Language = Literal["Numba", "CUDA C++"]
ALIGNMENT = 512  # bytes, as of every allocation
BAND_ELEMENTS = 8192  # at least, on each side of an array
_C_TYPES = {
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
}
_DESCRIPTIONS = {counter.name: counter.description for counter in COUNTERS}


@dataclass(frozen=True)
class _Run:
    """One launch of the kernel under test."""

    kernel: Any
    name: str
    case: Case
    n: Size
    grid: Dimensions
    block: Dimensions
    seed: int
    rtol: float
    atol: float

    @property
    def blocks(self) -> int:
        return int(np.prod(self.grid))

    @property
    def threads_a_block(self) -> int:
        return int(np.prod(self.block))

    def where(self) -> str:
        size = f"n = {self.n}" if isinstance(self.n, int) else f"size {_times(self.n)}"
        return f"{size}, {_dimensions(self.grid, 'block')} of {_dimensions(self.block, 'thread')}, seed {self.seed}"

    def failed(self, problem: str, **details: str) -> CheckFailed:
        return CheckFailed(f"{self.name}: {problem}", where=self.where(), **details)


def kernel(
    kernel: Any,
    make_case: MakeCase,
    *,
    sizes: Iterable[Size] = DEFAULT_SIZES,
    launches: Iterable[Launch | Callable[[Size], Launch]] = (cover(32), cover(128)),
    limits: Mapping[str, Limit] | None = None,
    least: Mapping[str, Limit] | None = None,
    products: Mapping[str, Limit] | None = None,
    language: Language | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    seed: int | None = None,
) -> None:
    """Check a kernel on every size and launch; raise `CheckFailed` at the first thing that is wrong.

    `kernel`: a kernel made by `@cuda.jit`, `%%cuda` or `cp.RawModule`.
    `make_case(rng, n)`: the arguments and the expected result for size n, such as `elementwise` makes. A size is an
    integer or a tuple of them, (rows, columns) for example.
    `launches`: (blocks, threads a block), each an integer or up to three of them, or functions of n that return it.
    `limits`: counter of `Counts`, or derived property such as "sectors_per_load_request" -> the most that a launch
    may reach, a number or a function of n. `least`: the same for what a launch must reach at least.
    `products`: name of `LaunchProfile.tensor_operations`, such as "m16n16k16.f32.f16" -> how many of these matrix
    products a launch makes on tensor cores, exactly and no others.
    `language`: what the kernel must be written in.
    `rtol`, `atol`: tolerance of floating-point results; the default asks for equal values.
    `seed`: repeats an earlier run; each failure names its seed.
    """
    name = _name(kernel, language)
    seed = fresh_seed() if seed is None else seed
    # Largest first: on many elements mistakes can be told apart that look alike on one.
    sizes, launches = sorted(set(sizes), key=lambda n: (np.prod(n), n), reverse=True), list(launches)
    if not sizes or not launches:
        raise ValueError("no sizes or no launches to check")

    def run(n: Size, number: int) -> _Run:
        grid, block = launches[number](n) if callable(launches[number]) else launches[number]
        case = make_case(np.random.default_rng([seed, *np.atleast_1d(n), number]), n)
        return _Run(kernel, name, case, n, grid, block, seed, rtol, atol)

    if len(sizes) > 1:
        _fail_if_endless(run(sizes[-1], 0))
    for n in sizes:
        for number in range(len(launches)):
            _check(run(n, number), limits or {}, least or {}, products)
    print(f"{name}: right for {_count(len(sizes), 'size')} and {_count(len(launches), 'launch shape')}.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _times(numbers: tuple[int, ...]) -> str:
    return " × ".join(map(str, numbers))


def _dimensions(value: Dimensions, what: str) -> str:
    return _count(value, what) if isinstance(value, int) else f"{_times(value)} {what}s"


def _name(kernel: Any, language: Language | None) -> str:
    from warplab.launch.kernel_source import source_of

    if isinstance(kernel, FunctionType) or getattr(kernel, "_warplab_on_the_host", False):
        raise CheckFailed(
            f"{kernel.__name__} is a Python function, which runs on the host.",
            expected="a kernel, which runs on the device",
            look_at="the line above its definition: @cuda.jit makes a kernel of a function",
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
            f"{source.name} is in the wrong language.",
            expected=language,
            got=source.language,
            kind="wrong language",
        )
    return source.name


def _fail_if_endless(smallest: _Run) -> None:
    """An endless loop runs up to its limit, seconds on many elements. On the fewest it takes a tenth of that.

    Whatever else is wrong there is told in its turn.
    """
    try:
        _launch(smallest, counters=False)
    except CheckFailed as error:
        if error.kind == "endless":
            raise


def _check(
    run: _Run, limits: Mapping[str, Limit], least: Mapping[str, Limit], products: Mapping[str, Limit] | None
) -> None:
    counted = bool(limits or least or products is not None)
    profile, buffers = _launch(run, counters=counted)
    if not counted:
        try:
            return _check_arrays(run, buffers)
        except CheckFailed:  # the counters help to tell why
            profile, buffers = _launch(run, counters=True)
    if not profile.counts.global_store_bytes and not profile.counts.atomics:
        raise run.failed(
            "it wrote nothing. Either it is not written yet, or its result is never stored.",
            expected=f"values in {', '.join(run.case.expected)}",
            got="no store to global memory",
            kind="not written",
        )
    _check_arrays(run, buffers, profile.counts)
    if products is not None:
        _check_products(run, profile, products)
    _check_limits(run, profile, limits)
    _check_least(run, profile, least)


def _launch(run: _Run, counters: bool) -> tuple[LaunchProfile, dict[str, np.ndarray]]:
    """Run the kernel: its profile, and its arrays afterwards. They have no room to spare: all beyond is illegal."""
    buffers = run.case.buffers()
    try:
        return _simulate(run, tuple(buffers.values()), counters=counters), buffers
    except IllegalAddress as error:
        raise run.failed(**_outside(run, error), **_kind(error)) from None
    except DataRace as error:
        raise _race(run, error) from None
    except InstructionLimit as error:
        raise run.failed(
            "does not come to an end.",
            got=error.without_advice(),
            look_at="the loop: does its index reach the end?",
            **_kind(error),
        ) from None
    except SimulatorError as error:
        raise run.failed("is stopped by the simulator.", got=str(error), **_kind(error)) from None
    except (TypeError, ValueError) as error:
        raise run.failed(**_unfit(run, error), kind="arguments") from None
    except (MemoryError, SimulatorFailure):  # says nothing about the kernel
        raise
    except Exception as error:  # the compilers raise classes of their own
        text = f"{type(error).__name__}: {error}"
        raise run.failed("does not compile.", got=text, look_at=explain.not_compiled(text), kind="compile") from None


def _kind(error: SimulatorError) -> dict[str, str]:
    return {"kind": kind_of(error), "line": line_of(error)}


def _simulate(run: _Run, arguments: tuple, **options: int | bool) -> LaunchProfile:
    from warplab.launch.simulate import simulate

    elements = max(np.size(value) for value in arguments)
    # The trace is for pictures. A shared array made volatile is a wrong answer to a missing barrier.
    options = {"path_limit": 10_000 + 64 * elements, "trace_warps": 0, "volatile_orders": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbgrader takes anything on stderr for a failed test
        return simulate(run.kernel, run.grid, run.block, arguments, device=device(), **options)


def _unfit(run: _Run, error: Exception) -> dict[str, str]:
    """What arguments that do not fit are about. The check makes them, so only the kernel can change."""
    failure = {"problem": f"cannot be launched with ({', '.join(run.case.arguments)}).", "got": str(error)}
    mistyped = re.fullmatch(r"(.* points to \w+, but the array holds (\w+)): convert it .*", failure["got"], re.DOTALL)
    if mistyped:
        declared = _C_TYPES.get(mistyped[2], mistyped[2])
        failure |= {"got": mistyped[1], "look_at": f"the declared type of that parameter: it must be {declared}*"}
    return failure


def _outside(run: _Run, error: IllegalAddress) -> dict[str, str]:
    """What an illegal address was about: the access first, then what the kernel writes where it belongs to the same.

    For that the launch runs again with room around the arrays.
    """
    arrays = {name: value for name, value in run.case.buffers().items() if isinstance(value, np.ndarray)}
    access = explain.Outside.of(error.what, arrays)
    look_at = access.look_at("") if access else "the index, and the size that it is compared with"
    failure = {
        "problem": access.problem() if access else "reaches outside its arrays.",
        "got": str(error),
        "look_at": look_at,
    }
    if fragments.LOAD_OR_STORE in str(error):
        return failure | {"look_at": fragments.PAST_THE_END}
    threads = run.blocks * run.threads_a_block
    guarded = {
        name: _Guarded(value, threads, POISON_BYTE + number) for number, (name, value) in enumerate(arrays.items())
    }
    arguments = tuple(guarded[name].array if name in guarded else value for name, value in run.case.buffers().items())
    trace = {"trace_warps": -(-threads // 32), "trace_events": min(4096, 2**22 // threads)}
    try:
        profile = _simulate(run, arguments, path_limit=64 * BAND_ELEMENTS, races=False, **trace)
    except SimulatorError:
        return failure  # further out than the bands
    odd = explain.odd_width(profile.accesses, {name: value.itemsize for name, value in guarded.items()}, access)
    if odd:
        return failure | {"look_at": odd}
    store = _next_store(profile, _linear(error.block, run.grid), _linear(error.thread, run.block), guarded)
    if store is None:
        return failure
    name, index = store
    value, tiles = guarded[name], bool(profile.counts.shared_store_requests + profile.counts.shared_copy_wavefronts)
    before, after = value.written_around()
    if 0 <= index < value.size and not (access and access.op != "load"):
        if access is None:
            return failure
        got = str(error).removesuffix(f"\n  {error.reason}")  # it asks for a guard, which such a thread does not need
        return failure | {"got": got, "look_at": access.look_at(f"{name}[{index}]", tiles)}
    if not (before.any() or after.any()):
        return failure
    widths = [traced.width for traced in profile.accesses if traced.op == "store" and traced.array == name]
    what, look_at = explain.overrun(before, after, value.size, threads, max(widths, default=0) // value.itemsize)
    if tiles and access and access.op == "load":  # a guard of the store alone does not help
        look_at = f"{access.look_at(name, tiles)}\nand {look_at}"
    return failure | {"got": f"{error}\nAllowed to go on, the kernel {what} ({name}).", "look_at": look_at}


def _linear(place: tuple[int, int, int] | None, size: Dimensions) -> int | None:
    """Number of a block in its grid, or of a thread in its block."""
    x, y, *_ = (*np.atleast_1d(size).tolist(), 1)
    return None if place is None else place[0] + x * (place[1] + y * place[2])


def _next_store(
    profile: LaunchProfile, block: int | None, thread: int | None, guarded: dict[str, _Guarded]
) -> tuple[str, int] | None:
    """Array and index of the store that the illegal access belongs to: itself, or the next of the same thread."""
    if block is None or thread is None:
        return None
    met = False
    for access in profile.accesses:
        lanes = np.flatnonzero((access.block == block) & (access.thread == thread))
        if access.space != "global" or not lanes.size:
            continue
        address = int(access.address[lanes[0]])
        name = next((name for name, value in guarded.items() if value.holds(address)), None)
        if name is None:
            continue
        index = guarded[name].index(address)
        elements = access.width // guarded[name].itemsize
        met = met or index < 0 or index + elements > guarded[name].size
        if met and access.op == "store":
            # Of a wide store that starts inside, the last element says that it ends outside.
            return name, index if index < 0 else index + max(elements, 1) - 1
    return None


def _race(run: _Run, error: DataRace) -> CheckFailed:
    """The failure for a data race: what it did to the result, where it shows, and the race as its likely cause."""
    buffers = run.case.buffers()
    try:
        profile = _simulate(run, tuple(buffers.values()), races=False)
        _check_arrays(run, buffers, profile.counts)
    except CheckFailed as wrong:
        cause = f"There is a data race, too: {error.what.removeprefix('race: ')} ({line_of(error)})."
        return CheckFailed(
            wrong.problem,
            expected=wrong.expected,
            got=wrong.got,
            where=wrong.where,
            look_at=f"{wrong.look_at}\n{cause}",
            kind=wrong.kind,
            line=line_of(error),
        )
    except SimulatorError:
        pass
    look_at = "which thread owns which element"
    if "shared memory" in str(error):
        look_at = "what must be done before that line, by whom, and what makes the others wait for it"
    return run.failed("has a data race.", got=str(error), look_at=look_at, **_kind(error))


class _Guarded:
    """A device array between two guard bands of its own allocation: a pattern that any write into them destroys.

    `pattern`: a byte, another for each array: of equal bands a * b + c would be the band of c again.
    """

    def __init__(self, values: np.ndarray, threads: int, pattern: int) -> None:
        from warplab.launch.device_memory import Buffer, DeviceArray

        self.size, self.itemsize = values.size, values.itemsize
        elements = max(2 * threads, 2 * values.size, BAND_ELEMENTS)
        self._band = -(-elements * self.itemsize // ALIGNMENT) * ALIGNMENT
        self._buffer = Buffer(values.nbytes + 2 * self._band, device())
        self._pattern = pattern % 256
        self._buffer.bytes[:] = self._pattern
        view = np.ndarray(values.shape, values.dtype, self._buffer.bytes, self._band)
        view[...] = values
        device().memory.mark_initialized(self._buffer.address, self._buffer.nbytes)
        self.array = DeviceArray(self._buffer, view)

    def holds(self, address: int) -> bool:
        """Whether an address is in the array or its bands."""
        return self._buffer.address <= address < self._buffer.address + self._buffer.nbytes

    def index(self, address: int) -> int:
        """The element of the array at an address, negative in front of it."""
        return (address - self._buffer.address - self._band) // self.itemsize

    def written_around(self) -> tuple[np.ndarray, np.ndarray]:
        """Which elements were written in front of the array and behind it (1-D bool, in the order of addresses)."""
        bands = self._buffer.bytes[: self._band], self._buffer.bytes[-self._band :]
        before, after = ((band != self._pattern).reshape(-1, self.itemsize).any(axis=1) for band in bands)
        return before, after


def _check_arrays(run: _Run, buffers: dict[str, np.ndarray], counts: Counts | None = None) -> None:
    """Inputs unmodified, outputs written, finite where they must be, and right. `counts` help to tell why not."""
    for name, value in run.case.arguments.items():
        if isinstance(value, np.ndarray) and name not in run.case.expected:
            changed = np.flatnonzero(~same_bits(buffers[name], value).ravel())
            if changed.size:
                at = changed[0]
                element = name + explain.place(at, value.shape)
                raise run.failed(
                    f"the input {name} was modified.",
                    expected=f"{element} = {value.ravel()[at]}",
                    got=f"{element} = {buffers[name].ravel()[at]}",
                    look_at="what stands to the left of =",
                    kind="input modified",
                )
    for name, expected in run.case.expected.items():
        _check_output(run, name, buffers[name], expected, counts)


def _check_output(run: _Run, name: str, got: np.ndarray, expected: np.ndarray, counts: Counts | None) -> None:
    flat, wanted = got.ravel(), expected.ravel()
    if run.case.arguments[name] is None:
        written = ~same_bits(flat, poisoned(wanted))
        if not written.all():
            at = np.flatnonzero(~written)[0]
            if got.ndim == 1:
                what, look_at = explain.unwritten(written, run.blocks, run.threads_a_block)
            else:
                what, look_at = explain.unwritten_places(written.reshape(got.shape))
            raise run.failed(
                f"{name}: {what}.",
                expected=f"{name}{explain.place(at, got.shape)} = {wanted[at]}",
                got="what was in memory before the launch",
                look_at=look_at,
                kind="not written",
            )
    # Either way NaN is equal to nothing.
    exact = not run.rtol and not run.atol
    right = flat == wanted if exact else np.isclose(flat, wanted, rtol=run.rtol, atol=run.atol)
    wrong = np.flatnonzero(~right)
    if wrong.size:
        at = wrong[0]
        place = explain.place(at, got.shape)
        look_at = explain.wrong_values(flat, wanted, wrong, got.shape, counts)
        if counts and counts.tensor_operations and look_at.startswith(explain.READS):
            look_at = fragments.look_at(run.case.arguments, expected, got)
        raise run.failed(
            f"{name} is wrong in {wrong.size} of {wanted.size} elements, the first at "
            f"{f'index {at}' if got.ndim == 1 else place}.",
            expected=f"{name}{place} = {wanted[at]}",
            got=f"{name}{place} = {flat[at]}",
            look_at=look_at,
        )


def _check_products(run: _Run, profile: LaunchProfile, products: Mapping[str, Limit]) -> None:
    wanted = {name: count(run.n) if callable(count) else count for name, count in products.items()}
    got = profile.tensor_operations
    if got == wanted:
        return
    if not got:
        problem, look_at = "the tensor cores do nothing.", "what computes the sums: the ordinary cores?"
    elif got.keys() - wanted.keys():
        problem = "it makes matrix products of another kind on the tensor cores."
        look_at = "the shape, and the types of the factors and of the sums"
    else:
        many = sum(got.values()) > sum(wanted.values())
        problem = f"too {'many' if many else 'few'} matrix products on the tensor cores."
        look_at = "how many tiles there are, how many steps each takes, and whether " + (
            "one of them is made twice" if many else "each of them is made"
        )
    raise run.failed(
        problem,
        expected=explain.products(wanted),
        got=explain.products(got),
        look_at=look_at,
        kind="limit",
        counter="tensor_operations",
    )


def _check_limits(run: _Run, profile: LaunchProfile, limits: Mapping[str, Limit]) -> None:
    for counter, limit in limits.items():
        most = limit(run.n) if callable(limit) else limit
        got = getattr(profile.counts, counter)
        if got is None or math.isnan(got) or got > most:
            raise run.failed(
                f"too many {counter.replace('_', ' ')}{_meaning(counter)}.",
                expected=f"at most {explain.number(most)}",
                got="none were counted" if got is None else explain.number(got),
                look_at=explain.over_limit(profile, counter, got or math.nan, most),
                kind="limit",
                counter=counter,
            )


def _meaning(counter: str) -> str:
    return f" ({_DESCRIPTIONS[counter]})" if counter in _DESCRIPTIONS else ""


def _amount(counter: str) -> str:
    """Counters of `Counts` are numbers of things; what is derived from them is not."""
    return "few" if counter in _DESCRIPTIONS else "little"


def _check_least(run: _Run, profile: LaunchProfile, least: Mapping[str, Limit]) -> None:
    for counter, limit in least.items():
        wanted = limit(run.n) if callable(limit) else limit
        got = getattr(profile.counts, counter)
        if got is None or math.isnan(got) or got < wanted:
            raise run.failed(
                f"too {_amount(counter)} {counter.replace('_', ' ')}{_meaning(counter)}.",
                expected=f"at least {explain.number(wanted)}",
                got="none was counted" if got is None else explain.number(got),
                look_at=explain.under_limit(profile, counter),
                kind="limit",
                counter=counter,
            )
