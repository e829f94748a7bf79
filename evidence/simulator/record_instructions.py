"""Run the cases of `instruction_cases` and `math_cases` on this machine's GPU and write the results to `recorded/`.

    python -m evidence.simulator.record_instructions [--folder FOLDER] [--ptx FOLDER]

Needs CuPy. `--ptx`: a folder with compiled math.ptx and math_fast.ptx, for a machine without NVRTC's headers. Cases
that the driver's assembler refuses are listed in the JSON file and left out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from pathlib import Path

import numpy as np

from tests.support.instruction_cases import cases
from tests.support.math_cases import math_cases, math_ptx
from tests.support.ptx_harness import ptx_of
from tests.support.recorded import RECORDED, save


def execute(kernel, inputs: list[np.ndarray], dtype: str) -> np.ndarray:
    """Return the bit patterns of the results, one per element."""
    import cupy

    n = inputs[0].size
    out = cupy.zeros(n, dtype)
    kernel((-(-n // 64),), (64,), (*(cupy.asarray(v) for v in inputs), out, np.uint32(n)))
    return cupy.asnumpy(out)


def record_instructions(scratch: Path) -> tuple[dict, dict]:
    import cupy

    results, refused = {}, {}
    for number, case in enumerate(cases()):
        path = scratch / f"case{number}.ptx"  # CuPy remembers modules by path
        path.write_text(ptx_of(case.body, case.input_types, case.output_type))
        try:
            kernel = cupy.RawModule(path=str(path)).get_function("kernel")
        except cupy.cuda.driver.CUDADriverError as error:
            refused[case.body] = str(error)
        else:
            results[case.body] = execute(kernel, case.values(), case.output_dtype)
    return results, refused


def record_math(path: Path, fast: bool) -> dict:
    import cupy

    module = cupy.RawModule(path=str(path))
    return {c.name: execute(module.get_function(c.name), c.values(), c.output_dtype) for c in math_cases(fast)}


def compiled(folder: Path) -> None:
    """Write math.ptx and math_fast.ptx."""
    for name, fast in (("math", False), ("math_fast", True)):
        (folder / f"{name}.ptx").write_text(math_ptx(fast))


def main() -> None:
    import cupy

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=RECORDED)
    parser.add_argument("--ptx", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        results, refused = record_instructions(Path(scratch))
        save(folder / "instructions.npz", results)
        ptx = arguments.ptx
        if ptx is None:
            ptx = Path(scratch)
            compiled(ptx)
        for fast in (False, True):
            name = "math_fast" if fast else "math"
            save(folder / f"{name}.npz", record_math(ptx / f"{name}.ptx", fast))
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    note = {
        "device": device,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "date": datetime.date.today().isoformat(),
        "refused": refused,
    }
    (folder / "instructions.json").write_text(json.dumps(note, indent=1) + "\n")
    print(f"{len(results)} instructions recorded on {device}; {len(refused)} refused", *refused, sep="\n  ")


if __name__ == "__main__":
    main()
