"""What Nsight Compute reads of the matrix products: traffic at each level of memory, and which kernels cuBLAS launches.

`python -m kernels.matmul.hardware steps SIDE` and `... cublas M,N,K ...` are the programs that `ncu` runs.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warplab.paths import COURSE

MARKER = "next_shape"  # a kernel between the shapes
METRICS = {
    "dram_bytes": "dram__bytes.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "warp_instructions": "smsp__inst_executed.sum",
    "ffma_threads": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "registers": "launch__registers_per_thread",
    "issue_active_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_pipe_percent": "smsp__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "lsu_data_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "warps_active_percent": "smsp__warps_active.avg.pct_of_peak_sustained_active",
    "clock_hz": "smsp__cycles_active.avg.per_second",
    "stalled_long_scoreboard": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "stalled_short_scoreboard": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "stalled_barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "stalled_mio": "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "stalled_math": "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    "stalled_dispatch": "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
    "stalled_not_selected": "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
}


def traffic(side: int) -> list[dict[str, Any]] | None:
    """METRICS of each step, and of cuBLAS, at side³; None where there is no ncu. RuntimeError when ncu fails."""
    from kernels.matmul.steps import STEPS

    rows = _under_ncu(["steps", str(side)], METRICS)
    if rows is None:
        return None
    names = [*STEPS, "cublas"]
    if len(rows) != len(names):
        raise RuntimeError(f"ncu saw {len(rows)} launches instead of {len(names)}: {[row['kernel'] for row in rows]}")
    return [{"name": name, "kernel": row["kernel"], **row["values"]} for name, row in zip(names, rows, strict=True)]


def library_kernels(shapes: Sequence[tuple[int, int, int]]) -> list[dict[str, Any]] | None:
    """Kernels that cuBLAS launches for each shape (m, n, k), with grid and block; None where there is no ncu."""
    rows = _under_ncu(["cublas", *(",".join(map(str, shape)) for shape in shapes)], {"registers": METRICS["registers"]})
    if rows is None:
        return None
    result: list[dict[str, Any]] = []
    for row in rows:
        if row["kernel"].startswith(MARKER):
            result.append({"shape": list(shapes[len(result)]), "kernels": []})
        else:
            result[-1]["kernels"].append({key: row[key] for key in ("kernel", "grid", "block")})
    return result


def _under_ncu(arguments: list[str], metrics: dict[str, str]) -> list[dict[str, Any]] | None:
    """Runs this module under ncu; a row a launch: `kernel`, `grid`, `block`, `values` by name."""
    if shutil.which("ncu") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"]
        command += ["--print-units", "base", "--log-file", str(log), "--metrics", ",".join(metrics.values())]
        command += [sys.executable, "-m", "kernels.matmul.hardware", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=COURSE)
        output = log.read_text() if log.exists() else ""
    if done.returncode:
        raise RuntimeError(f"ncu ended with code {done.returncode}:\n{output[-2000:]}\n{done.stdout}\n{done.stderr}")
    return parse(output, metrics)


def parse(output: str, metrics: dict[str, str]) -> list[dict[str, Any]]:
    """Rows of ncu's raw page as CSV: names, units, then one a launch."""
    lines = output.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise RuntimeError(f"there is no table in ncu's output:\n{output}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[first:]))))[1:]
    return [
        {
            "kernel": row["Kernel Name"],
            "grid": row["Grid Size"],
            "block": row["Block Size"],
            "values": {name: float(row[metric].replace(",", "")) for name, metric in metrics.items()},
        }
        for row in rows
    ]


def _steps(side: int) -> None:
    """Each step and cuBLAS once, compiled before the profiler starts."""
    import cupy

    from kernels.matmul.measurements import cublas, operands
    from kernels.matmul.steps import STEPS

    a, b, c = operands(side, side, side)
    functions = [*(step.launch for step in STEPS.values()), cublas]
    for function in functions:
        function(*operands(256, 256, 256))
    STEPS["tuned"].launch(a, b, c)
    cublas(a, b, c)
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    for function in functions:
        function(a, b, c)
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.stop()


def _cublas(shapes: list[str]) -> None:
    """cuBLAS once for each shape; before each a kernel that marks where it begins."""
    import cupy

    from kernels.matmul.measurements import cublas, operands

    marker = cupy.RawKernel(f'extern "C" __global__ void {MARKER}() {{}}', MARKER)
    for shape in shapes:
        a, b, c = operands(*map(int, shape.split(",")))
        cublas(a, b, c)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        marker((1,), (1,), ())
        cublas(a, b, c)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


if __name__ == "__main__":
    what, *values = sys.argv[1:]
    _steps(int(values[0])) if what == "steps" else _cublas(values)
