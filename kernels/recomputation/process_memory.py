"""Peak memory of a fresh process that trains a chain for one step, as Linux counts it.

    python -m kernels.recomputation.process_memory LAYERS SEGMENT_LENGTH

prints a line of JSON: `before_bytes`, resident before the step, and `peak_bytes`, the most since then (VmRSS and VmHWM
of /proc/self/status; the kernel forgets its peak when 5 is written to /proc/self/clear_refs). Where that is not
allowed, the peak of the whole life of the process stands in, and `reset` is false.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from warpcourse.paths import COURSE

BATCH = 16_384  # an activation of 4 MiB
LIMIT_SECONDS = 300


def measure(layers: int, length: int) -> dict[str, Any]:
    """Run a process for one step with segments of `length` layers (all of them: everything is kept); return its line.

    RuntimeError with what the process said if it fails.
    """
    # Large blocks go back to the system as soon as they are freed.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-m", __name__, str(layers), str(length)]
    done = subprocess.run(command, cwd=COURSE, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"the measured process failed with code {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])


def status(field: str) -> int:
    """Return a size in bytes from /proc/self/status, such as VmRSS."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(f"/proc/self/status has no {field}; this measurement needs Linux")


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def main(layers: int, length: int) -> None:
    """Measure this process."""
    from kernels.recomputation import plan as plans
    from kernels.recomputation import segments

    small, given = segments.chain(2), segments.chain(layers, batch=BATCH)
    segments.cpu_seconds(small, plans.even(2, 1), runs=1)  # TensorFlow starts its threads
    reset = _reset_peak()
    before = status("VmRSS")
    segments.cpu_seconds(given, plans.even(layers, length), runs=1)
    found = {"layers": layers, "length": length, "activation_bytes": given.activation_bytes, "before_bytes": before}
    print(json.dumps(found | {"peak_bytes": status("VmHWM"), "reset": reset}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
