"""All steps of lab 06 by pass and name. `convolve` checks arguments and calls them.

Each table runs from slow to fast: of the steps that can compute a convolution here, step="auto" takes the last.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.convolution.beside import depthwise, few_filters, fft, patch, winograd
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import backward_data, backward_filter, forward, padded
from kernels.convolution.steps import direct, gemm_backward, gemm_steps, mma_backward, mma_step
from warpcourse.bench import hopper
from warpcourse.bench.lab_kernels import by_name

FORWARD: dict[str, Step] = by_name(
    *fft.FORWARD,
    *direct.FORWARD,
    *gemm_steps.FORWARD,
    *winograd.FORWARD,
    *mma_step.FORWARD,
    *padded.FORWARD,
    *forward.FORWARD,
    *patch.FORWARD,
    *depthwise.FORWARD,
)
BACKWARD_DATA: dict[str, Step] = by_name(
    *gemm_backward.BACKWARD_DATA,
    *mma_backward.BACKWARD_DATA,
    *padded.BACKWARD_DATA,
    *backward_data.BACKWARD_DATA,
    *patch.BACKWARD_DATA,
    *depthwise.BACKWARD_DATA,
)
BACKWARD_FILTER: dict[str, Step] = by_name(
    *gemm_backward.BACKWARD_FILTER,
    *mma_backward.BACKWARD_FILTER,
    *padded.BACKWARD_FILTER,
    *backward_filter.BACKWARD_FILTER,
    *few_filters.BACKWARD_FILTER,
    *depthwise.BACKWARD_FILTER,
)
STEPS: dict[str, dict[str, Step]] = {
    "forward": FORWARD,
    "backward_data": BACKWARD_DATA,
    "backward_filter": BACKWARD_FILTER,
}


def step(name: str | int, of: str = "forward") -> Any:
    """Return the step of that name or number in the table of a pass; ValueError names the others."""
    for known in STEPS[of].values():
        if name is not None and name in (known.name, known.number):
            return known
    choices = ", ".join(f"{known.name!r}" for known in STEPS[of].values())
    raise ValueError(f"there is no step {name!r} for {of}; choose 'auto' or one of {choices}")


class Plan(NamedTuple):
    """A step, and what to know of its speed here: "" where it takes at most three times as long as cuDNN's fastest plan
    on an H200, as far as was measured (`measured.every_shape`)."""

    step: Any
    remark: str


def planned(conv: Convolution, layout: str, dtype: Any, of: str = "forward", address: int = 0) -> Plan:
    """Return the plan of "auto"; arguments and errors as of `fastest`."""
    chosen = fastest(conv, layout, dtype, of, address)
    remark = chosen.remark(conv, of)
    if chosen.name == "mma_nhwc" and hopper.available():
        alignment = "arrays do not begin at multiples of 16 bytes"
        reason = step(padded.NAME, of).refuses(conv, layout, dtype) or alignment
        remark = f"mma_nhwc may take more than three times as long as cuDNN, but {reason}"
    return Plan(chosen, remark)


def fastest(conv: Convolution, layout: str, dtype: Any, of: str = "forward", address: int = 0) -> Any:
    """Return the step that "auto" stands for: the last of a pass's table that can compute `conv` on this machine.

    `address`: the bitwise or of the arrays' addresses, which some steps want to be multiples of 16. ValueError if no
    step can.
    """
    for known in reversed(STEPS[of].values()):
        refused = known.refuses(conv, layout, dtype) or known.missing()
        if not refused and address % known.alignment == 0 and known.preferred(conv, dtype):
            return known
    formats = dict.fromkeys(pair for known in STEPS[of].values() for pair in known.formats)
    takes = " or ".join(f"{known} in {order}" for order, known in formats)
    raise ValueError(f"no step takes {np.dtype(dtype).name} in {layout}: convert the arrays to {takes}")
