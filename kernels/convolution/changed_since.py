"""Kernels that are no longer what was timed: what tables say of their recordings until they are timed anew.

A note belongs to one recorded value, by its digest. A new recording has none, and its note here is to be deleted.
Launches whose counters are those of a former kernel are in `launches.NOT_COUNTED_YET`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

NOT_TIMED_SINCE: dict[str, str] = {}


def digest(value: Any) -> str:
    """Of a recorded value, in JSON types."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def note(value: Any) -> str:
    """What has changed since `value` was measured; "" if nothing, or if it is measured now."""
    return NOT_TIMED_SINCE.get(digest(value), "")
