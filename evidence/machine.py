"""Names the machine that processor times were measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def machine() -> str:
    """Return its cores, its processor where Linux tells that, and its architecture."""
    about = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", about.read_text(), re.M) if about.exists() else []
    of = f" of {models[0]}" if models else ""
    return f"{os.cpu_count()} cores{of} ({platform.machine()})"
