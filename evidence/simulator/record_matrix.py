"""Run the kernels of `matrix_cases` and `warpgroup_cases` on this machine's GPU and write the results to
`recorded/matrix_h100.npz` and `recorded/wgmma_h100.npz`.

    python -m evidence.simulator.record_matrix [--folder FOLDER]

Needs CuPy and a GPU of compute capability 9.0 with a driver for CUDA 13.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from pathlib import Path

import numpy as np

from tests.support.matrix_cases import Case, cases
from tests.support.recorded import RECORDED
from tests.support.warpgroup_cases import execute_warpgroups, recordings


def execute(name: str, case: Case, scratch: Path) -> np.ndarray:
    import cupy

    path = scratch / f"{name}.ptx"
    path.write_text(case.ptx)
    kernel = cupy.RawModule(path=str(path)).get_function(name)
    out = cupy.zeros(case.size, np.uint8)
    kernel((case.grid,), (32,), (*(cupy.asarray(data) for data in case.inputs), out))
    return cupy.asnumpy(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=RECORDED)
    folder = parser.parse_args().folder
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    # Each file as soon as it is there: a kernel that the GPU refuses ends the context, and with it all that follow.
    for file, kernels, run in (
        ("wgmma_h100.npz", recordings(), execute_warpgroups),
        ("matrix_h100.npz", {case.name: case for case in cases()}, execute),
    ):
        recorded = {}
        with tempfile.TemporaryDirectory() as scratch:
            for name, kernel in kernels.items():
                try:
                    recorded[name] = run(name, kernel, Path(scratch))
                except Exception as error:
                    raise RuntimeError(f"{name} did not run on this GPU; {file} is not written") from error
        recorded["device"] = np.array(f"{device}, {datetime.date.today()}")
        np.savez_compressed(folder / file, **recorded)
        print(f"{file}: {len(recorded) - 1} kernels on {recorded['device']}", flush=True)


if __name__ == "__main__":
    main()
