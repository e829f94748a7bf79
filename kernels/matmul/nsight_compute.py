"""What Nsight Compute measures of the matrix products: traffic at each level of memory, and the kernels of cuBLAS."""

import shutil
from collections.abc import Sequence
from typing import Any

from warpcourse.bench import nsight_compute
from warpcourse.processes import isolated_call

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
    """Return METRICS of each step, and of cuBLAS, at side³; None where there is no ncu. RuntimeError when ncu fails."""
    from kernels.matmul.ladder import STEPS

    if shutil.which("ncu") is None:
        return None
    rows = nsight_compute.profiled(isolated_call.command(f"{__name__}:run_steps", side), METRICS.values())
    names = [*STEPS, "cublas"]
    if len(rows) != len(names):
        raise RuntimeError(f"ncu saw {len(rows)} launches instead of {len(names)}: {[row.kernel for row in rows]}")
    return [
        {"name": name, "kernel": row.kernel, **{key: row.metrics[metric] for key, metric in METRICS.items()}}
        for name, row in zip(names, rows, strict=True)
    ]


def library_kernels(shapes: Sequence[tuple[int, int, int]]) -> list[dict[str, Any]] | None:
    """Return kernels that cuBLAS launches for each shape (m, n, k), with grid and block; None where there is no ncu."""
    if shutil.which("ncu") is None:
        return None
    command = isolated_call.command(f"{__name__}:run_cublas", [list(shape) for shape in shapes])
    result: list[dict[str, Any]] = []
    for row in nsight_compute.profiled(command, [METRICS["registers"]]):
        if row.kernel.startswith(MARKER):
            result.append({"shape": list(shapes[len(result)]), "kernels": []})
        else:
            result[-1]["kernels"].append({"kernel": row.kernel, "grid": row.grid, "block": row.block})
    return result


def run_steps(side: int) -> None:
    """Launch, under ncu, each step and cuBLAS once, compiled before the profiler starts."""
    import cupy

    from kernels.matmul.cublas_product import cublas, operands
    from kernels.matmul.ladder import STEPS

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


def run_cublas(shapes: list[list[int]]) -> None:
    """Launch, under ncu, cuBLAS once for each shape; before each a kernel that marks where it begins."""
    import cupy

    from kernels.matmul.cublas_product import cublas, operands

    marker = cupy.RawKernel(f'extern "C" __global__ void {MARKER}() {{}}', MARKER)
    for shape in shapes:
        a, b, c = operands(*shape)
        cublas(a, b, c)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        marker((1,), (1,), ())
        cublas(a, b, c)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()
