"""What lab 06 measures on a GPU, by the keys of `recordings.json`. The functions are in `measured`.

Values are numbers, texts, lists and dicts in JSON types; keys end in their unit: `seconds`, `bytes`, `tflops` (1e12
operations per second). Times are medians of random data in buffers that take turns beyond the L2; what is compared
runs in turns. `relative_error`: against float64, in the Frobenius norm, over a sample (`operands.error_of`). `cudnn`:
the library's version.
"""

import functools
from collections.abc import Callable
from typing import Any

from kernels.convolution.measured import algorithms, every_shape, network, plans, ratios, rnn

MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "forward": functools.partial(ratios.resnet50, "forward"),
    "fused": ratios.fused,
    "backward_data": functools.partial(ratios.resnet50, "backward_data"),
    "backward_filter": functools.partial(ratios.resnet50, "backward_filter"),
    "depthwise": ratios.depthwise,
    "every_shape": every_shape.every_shape,
    "algorithms": algorithms.algorithms,
    "searches": plans.searches,
    "whole_table": plans.whole_table,
    "plan_tables": plans.plan_tables,
    "layouts": plans.layouts,
    "network": network.configurations,
    "folded_network": network.folded,
    "older_networks": network.older,
    "lstm": rnn.lstm,
}
