"""What can be wrong with a launch before it runs."""

from warplab.compile.short_traceback import short_traceback


class ArgumentError(TypeError):
    """Arguments of a launch that do not fit the kernel's parameters. `in_report`: as of a SimulatorError."""

    in_report = False
    _render_traceback_ = short_traceback


class NoKernel(ValueError, RuntimeError):
    """A name that no kernel of a source has. CuPy's own error is a RuntimeError."""

    _render_traceback_ = short_traceback


def check_number(kernel: str, parameters: int, args: tuple) -> None:
    """Raise ArgumentError unless there is one argument for each of the kernel's parameters."""
    if len(args) != parameters:
        raise ArgumentError(
            f"{kernel} takes {parameters} argument{'s' * (parameters != 1)}, "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )


class CallError(TypeError):
    """A kernel that is launched with the syntax of the other language."""

    _render_traceback_ = short_traceback


def launch_of_numba(kernel: str, parameters: str = "...") -> str:
    """Return how a Numba kernel is launched, for one that was called as kernels of CuPy are."""
    return (
        f"{kernel} is a Numba kernel, whose launch has square brackets: {kernel}[blocks, threads]({parameters}). "
        "(Kernels of %%cuda and CuPy are called with a grid, a block and a tuple of arguments.)"
    )


def launch_of_cuda(kernel: str) -> str:
    """Return how a kernel in CUDA C++ is launched, for one that was called as Numba's are."""
    return (
        f"{kernel} is a kernel in CUDA C++, called with a grid, a block and a tuple of arguments: "
        f"{kernel}((blocks,), (threads,), (a, b, ...)). (Numba's kernels are launched with [blocks, threads].)"
    )
