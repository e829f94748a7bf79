"""Where the course is on this machine."""

from __future__ import annotations

from pathlib import Path

# The folder that holds notebooks/, kernels/, exercises/ and the package `warplab`.
COURSE = Path(__file__).resolve().parent.parent
