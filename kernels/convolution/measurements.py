"""What lab 06 measures on a GPU, by the keys of `recordings.json`. The functions are in the modules `measured_*`.

Values are numbers, texts, lists and dicts in JSON types; keys end in their unit: `seconds`, `bytes`, `tflops` (1e12
operations per second). Times are medians of random data in buffers that take turns beyond the L2; what is compared
runs in turns. `relative_error`: against float64, in the Frobenius norm, over a sample (`operands.error_of`). `cudnn`:
the library's version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernels.convolution import measured_algorithms, measured_network, measured_plans, measured_ratios, measured_rnn

MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "forward": measured_ratios.forward,
    "fused": measured_ratios.fused,
    "backward_data": measured_ratios.backward_data,
    "backward_filter": measured_ratios.backward_filter,
    "depthwise": measured_ratios.depthwise,
    "algorithms": measured_algorithms.algorithms,
    "searches": measured_plans.searches,
    "whole_table": measured_plans.whole_table,
    "plan_tables": measured_plans.plan_tables,
    "layouts": measured_plans.layouts,
    "network": measured_network.configurations,
    "folded_network": measured_network.folded,
    "lstm": measured_rnn.lstm,
}
