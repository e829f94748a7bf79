"""What can be wrong with a launch before it runs."""

from __future__ import annotations

from warplab.compile.short_traceback import short_traceback


class ArgumentError(TypeError):
    """Arguments of a launch that do not fit the kernel's parameters."""

    _render_traceback_ = short_traceback


def check_number(kernel: str, parameters: int, args: tuple) -> None:
    """Raise ArgumentError unless there is one argument for each of the kernel's parameters."""
    if len(args) != parameters:
        raise ArgumentError(
            f"{kernel} takes {parameters} argument{'s' * (parameters != 1)}, "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )
