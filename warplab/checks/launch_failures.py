"""A launch of the kernel under check, and what a learner is told if it ends with an error."""

import re

import numpy as np

from warplab.checks import illegal_access, outputs
from warplab.checks.errors import CheckFailed, kind_of, line_of
from warplab.checks.kernel_run import KernelRun
from warplab.checks.thread_work import ThreadWork
from warplab.checks.uncounted import Uncounted
from warplab.compile.kernel_mistakes import without_effect
from warplab.compile.short_traceback import first_line
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.errors import DataRace, IllegalAddress, InstructionLimit, SimulatorError, SimulatorFailure

_C_TYPES = {
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
}

# The arguments after the launch, by name; what each thread did; what the counters leave out.
Launched = tuple[LaunchProfile, dict[str, np.ndarray | np.generic], ThreadWork | None, Uncounted]


def launch(run: KernelRun, *, counters: bool, by_thread: bool = False, path_limit: int = 0) -> Launched:
    """Launch the kernel; return its profile, its arguments afterwards, with `by_thread` the work of each thread,
    and with `counters` what they leave out.

    The arrays have no room to spare: everything beyond them is illegal. `path_limit`: instructions of one path that
    are no reason to call the kernel endless. Raises `CheckFailed`.
    """
    buffers, work, uncounted = run.case.buffers(), ThreadWork() if by_thread else None, Uncounted()
    observers = (*[work] * by_thread, *[uncounted, uncounted.flags] * counters)
    try:
        profile = run.simulate(tuple(buffers.values()), path_limit=path_limit, counters=counters, observers=observers)
        return profile, buffers, work, uncounted
    except IllegalAddress as error:
        raise illegal_access.failure(run, error) from None
    except DataRace as error:
        raise _data_race(run, error) from None
    except InstructionLimit as error:
        raise run.failed(
            f"{run.name} does not end.",
            got=error.without_advice(),
            look_at="the loop: does its index reach the end?",
            kind=kind_of(error),
            line=line_of(error),
        ) from None
    except SimulatorError as error:
        raise run.failed(
            f"{run.name} was stopped by the simulator.", got=str(error), kind=kind_of(error), line=line_of(error)
        ) from None
    except (MemoryError, SimulatorFailure):  # says nothing about the kernel
        raise
    except Exception as error:  # the compilers raise classes of their own
        known = getattr(error, "__notes__", ())
        if isinstance(error, TypeError | ValueError) and not known:
            raise _unfit(run, error) from None
        raise _uncompiled(run, error, "\n".join(known)) from None


def _data_race(run: KernelRun, error: DataRace) -> CheckFailed:
    """Return what the race did to the result, with the race as its likely cause; the race alone if it is right."""
    buffers = run.case.buffers()
    try:
        profile = run.simulate(tuple(buffers.values()), races=False)
        outputs.check(run, buffers, profile.counts)
    except CheckFailed as wrong:
        cause = f"There is also a data race: {error.what.removeprefix('race: ')} ({line_of(error)})."
        return wrong.but(look_at=f"{wrong.look_at}\n{cause}", line=line_of(error))
    except SimulatorError:
        pass
    look_at = "which thread owns which element"
    if "shared memory" in str(error):
        look_at = "what must be done before that line, by which threads, and what makes the others wait for it"
    function = getattr(run.kernel, "py_func", None)
    look_at = (without_effect(function) if function else "") or look_at
    return run.failed(
        f"{run.name} has a data race.", got=str(error), look_at=look_at, kind=kind_of(error), line=line_of(error)
    )


def _uncompiled(run: KernelRun, error: Exception, known: str) -> CheckFailed:
    """Return the failure for a compiler's error. `known`: what was meant; then the compiler's own words, of which Numba
    has many, would only hide it."""
    text = first_line(error) if known else f"{type(error).__name__}: {error}"
    return run.failed(f"{run.name} does not compile.", got=text, look_at=known, kind="compile")


def _unfit(run: KernelRun, error: Exception) -> CheckFailed:
    """Return the failure for arguments that do not fit. The check makes them, so only the kernel can change."""
    got, look_at = str(error), ""
    mistyped = re.fullmatch(r"(.* points to \w+, but the array holds (\w+)): convert it .*", got, re.DOTALL)
    if mistyped:
        declared = _C_TYPES.get(mistyped[2], mistyped[2])
        got, look_at = mistyped[1], f"the declared type of that parameter: it must be {declared}*"
    problem = f"{run.name} cannot be launched with ({', '.join(run.case.arguments)})."
    return run.failed(problem, got=got, look_at=look_at, kind="arguments")
