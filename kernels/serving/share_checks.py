"""The check of exercise 11's prediction: what three samples show, counted here so that the notebook does not tell."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warplab.checks import predictions

MS, SMS, WARPS = 1000, 40, 32
SAMPLES: dict[str, Sequence[tuple[int, int, int, int]]] = {  # kernels: begin, end, SMs, warps on each
    "spinning": [(0, 800, 1, 1)],
    "in turn": [(8 * i, 8 * i + 8, 8, 8) for i in range(100)],
    "together": [(8 * i, 8 * i + 8, 8, 8) for i in range(25) for _ in range(4)],
}


def check_shares(prediction: Mapping[str, Any]) -> None:
    """Check percentages by "sample: figure": NVML utilisation, SM activity, occupancy. Raise CheckFailed if wrong."""
    right = {}
    for sample, kernels in SAMPLES.items():
        active, resident = np.zeros(MS), np.zeros(MS)
        for begin, end, sms, warps in kernels:
            active[begin:end] += sms
            resident[begin:end] += sms * warps
        right[f"{sample}: NVML utilisation"] = 100 * float(np.mean(active > 0))
        right[f"{sample}: SM activity"] = 100 * float(active.mean()) / SMS
        if sample == "together":
            right[f"{sample}: occupancy"] = 100 * float(resident.sum() / active.sum()) / WARPS
    predictions(prediction, right)
