"""Run the kernels of `matrix_cases` and `warpgroup_cases` on this machine's GPU and write the results to
`recorded/matrix_h100.npz` and `recorded/wgmma_h100.npz`.

    python -m tools.record_matrix [--folder FOLDER]

Needs CuPy and a GPU of compute capability 9.0 with a driver for CUDA 13.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from pathlib import Path

import numpy as np

from tests.support.matrix_cases import Case, cases
from tests.support.warpgroup_cases import Launch, recordings
from warplab.paths import COURSE

RECORDED = COURSE / "tests" / "simulator" / "run" / "recorded"


def execute(case: Case, scratch: Path) -> np.ndarray:
    import cupy

    path = scratch / f"{case.name}.ptx"
    path.write_text(case.ptx)
    kernel = cupy.RawModule(path=str(path)).get_function(case.name)
    out = cupy.zeros(case.size, np.uint8)
    kernel((case.grid,), (32,), (*(cupy.asarray(data) for data in case.inputs), out))
    return cupy.asnumpy(out)


def execute_warpgroups(name: str, launch: Launch, scratch: Path) -> np.ndarray:
    import cupy

    path = scratch / f"{name}.ptx"
    path.write_text(launch.ptx)
    kernel = cupy.RawModule(path=str(path)).get_function("wgmma")
    out = cupy.zeros(launch.size, np.uint8)
    arguments = *(cupy.asarray(data) for data in launch.inputs), out, *launch.numbers
    kernel((launch.blocks,), (launch.threads,), arguments)
    return cupy.asnumpy(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=RECORDED)
    folder = parser.parse_args().folder
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    with tempfile.TemporaryDirectory() as scratch:
        results = {case.name: execute(case, Path(scratch)) for case in cases()}
        products = {name: execute_warpgroups(name, it, Path(scratch)) for name, it in recordings().items()}
    for file, recorded in (("matrix_h100.npz", results), ("wgmma_h100.npz", products)):
        recorded["device"] = np.array(f"{device}, {datetime.date.today()}")
        np.savez_compressed(folder / file, **recorded)
        print(f"{file}: {len(recorded) - 1} kernels on {recorded['device']}")


if __name__ == "__main__":
    main()
