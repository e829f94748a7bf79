"""Kernels that are no longer what was timed: what tables say of their recordings until they are timed anew.

A note belongs to one recorded value, by its digest. A new recording has none, and its note here is to be deleted.
Launches whose counters are those of a former kernel are in `launches.NOT_COUNTED_YET`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_DEPTHWISE = (
    "Timed with a forward kernel that tested for each element whether ReLU is wanted. Since 2026-11-23 a bound says so "
    "(header of depthwise.cu); that kernel has not been timed."
)
NOT_TIMED_SINCE = {
    "67d08ccddef47d56": _DEPTHWISE,  # depthwise: forward, float16
    "bcea981aad27f0bc": _DEPTHWISE,  # depthwise: forward, float32
    "55edd4238ff6d967": (  # fused
        "Timed with a ReLU that made NaN 0. It keeps NaN since 2026-11-22, later that day, by HMNMX2.NAN in place of "
        "HMNMX2, in machine code that is the same but for that; this kernel has not been timed."
    ),
    "aee40d9aa9cbac64": (  # algorithms
        "mma_nhwc: timed in a version of 1,949 and 1,249 instructions for its two tiles (sm_90). That of today, which "
        "finds elements also with millions of rows of padding, has 1,877 and 1,229, and has not been timed."
    ),
}


def digest(value: Any) -> str:
    """Of a recorded value, in JSON types."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def note(value: Any) -> str:
    """What has changed since `value` was measured; "" if nothing, or if it is measured now."""
    return NOT_TIMED_SINCE.get(digest(value), "")
