"""The arrays after a launch: inputs unmodified, outputs written, values right."""

from collections.abc import Mapping

import numpy as np

from warplab.checks import explain_fragments, explain_outputs, relations
from warplab.checks.cases import poisoned, same_bits
from warplab.checks.kernel_run import KernelRun
from warplab.simulator.count.counters import Counts

_LOCAL = "cuda.local.array, if there is one: each thread has its own, without what other threads stored"


def check(run: KernelRun, buffers: Mapping[str, np.ndarray | np.generic], counts: Counts | None = None) -> None:
    """Check all arrays of a launch; raise `CheckFailed` at the first that is wrong.

    `buffers`: the arguments after the launch. `counts`: of the launch, which help to find the cause.
    """
    for name, value in run.case.arguments.items():
        if isinstance(value, np.ndarray) and name not in run.case.expected:
            _check_input(run, name, np.asarray(buffers[name]), value)
    for name, expected in run.case.expected.items():
        _check_output(run, name, np.asarray(buffers[name]), expected, counts)


def _check_input(run: KernelRun, name: str, got: np.ndarray, given: np.ndarray) -> None:
    changed = np.flatnonzero(~same_bits(got, given).ravel())
    if changed.size:
        at = changed[0]
        element = name + explain_outputs.place(at, given.shape)
        raise run.failed(
            f"{run.name}: the input {name} was modified.",
            expected=f"{element} = {given.ravel()[at]}",
            got=f"{element} = {got.ravel()[at]}",
            look_at="the left-hand side of each assignment",
            kind="input modified",
        )


def _check_output(run: KernelRun, name: str, got: np.ndarray, expected: np.ndarray, counts: Counts | None) -> None:
    flat, wanted = got.ravel(), expected.ravel()
    untouched = np.zeros(got.shape, bool)
    if run.case.arguments[name] is None:
        poison = poisoned(expected)
        # Of a right value that looks like the poison, as one of 256 in int8 does, nobody can tell.
        written = ~same_bits(got, poison) | same_bits(expected, poison)
        # And a few bytes that look like it may be wrong values.
        untouched = ~written
        doubtful = got.itemsize == 1 and 16 * np.count_nonzero(~written) <= got.size
        if not written.all() and not doubtful:
            at = np.flatnonzero(~written)[0]
            what, look_at = explain_outputs.unwritten(written, run.blocks, run.threads_per_block)
            raise run.failed(
                f"{run.name}: in {name}, {what}.",
                expected=f"{name}{explain_outputs.place(at, got.shape)} = {wanted[at]}",
                got="what was in memory before the launch",
                look_at=look_at,
                kind="not written",
            )
    # Either way NaN is equal to nothing.
    exact = not run.rtol and not run.atol
    right = flat == wanted
    if not exact:
        right[~right] = np.isclose(flat[~right], wanted[~right], rtol=run.rtol, atol=run.atol)
    wrong = np.flatnonzero(~right)
    if wrong.size:
        at = wrong[0]
        place = explain_outputs.place(at, got.shape)
        look_at = explain_outputs.wrong_values(flat, wanted, wrong, got.shape, counts)
        if counts and counts.tensor_operations and look_at.startswith(explain_outputs.READS):
            look_at = explain_fragments.look_at(run.case.arguments, expected, got)
        garbage = ""
        if counts and counts.atomics and run.case.arguments[name] is None:
            garbage = explain_outputs.added_to_garbage(name, flat[wrong], wanted[wrong], poison.ravel()[wrong])
        relation = relations.relation(got, expected, run.case.arguments, run.rtol, run.atol)
        if relation and look_at.startswith(explain_outputs.READS):
            look_at = explain_outputs.EXPRESSION
        stored = relations.stored(got, expected, run.rtol, run.atol)
        look_at = garbage or stored or "\n".join(filter(None, (look_at, relation)))
        if counts and counts.local_load_requests and hasattr(run.kernel, "py_func"):
            look_at = f"{look_at}\n{_LOCAL}"
        known = (where for where, wrongly in run.case.mistakes.items() if _alike(run, got, wrongly()))
        look_at = next(known, look_at)
        raise run.failed(
            f"{run.name}: {name} is wrong in {wrong.size} of {wanted.size} elements, the first at "
            f"{f'index {at}' if got.ndim == 1 else place}.",
            expected=f"{name}{place} = {wanted[at]}",
            got=f"{name}{place} = {flat[at]}" + (", as in memory before the launch" if untouched.flat[at] else ""),
            look_at=look_at,
        )


def _alike(run: KernelRun, got: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are the same within a check's tolerance; that of another output has another shape."""
    if got.shape != other.shape:
        return False
    unlike = got != other  # NumPy's allclose would make three arrays more of a long vector
    return np.allclose(got[unlike], other[unlike], rtol=run.rtol, atol=run.atol, equal_nan=True)
