"""What can be wrong with a launch before it runs."""

from __future__ import annotations

from warplab.compile.short_traceback import short_traceback


class ArgumentError(TypeError):
    """Arguments of a launch that do not fit the kernel's parameters."""

    _render_traceback_ = short_traceback
