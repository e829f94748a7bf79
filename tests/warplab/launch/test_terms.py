"""Errors in the terms of those who wrote the kernel: nothing of Numba's is said to authors of CUDA C++ or Triton."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.launch.terms import tell
from warplab.simulator.check import race_report

NUMBAS = re.compile(r"Numba|\bcuda\.(?!bindings|texture)\w|device_array|`if [^(]")
ENGINE = Path(simulator.__file__).parent


def _texts() -> set[str]:
    """Return the messages in the simulator's code that have words of Numba's, with x for what is put in."""
    found = set()
    for file in ENGINE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if id(node) not in documents and isinstance(parts[0], ast.Constant | ast.FormattedValue):
                texts = [part.value if isinstance(part, ast.Constant) else "x" for part in parts]
                found.add("".join(map(str, texts)))
    return {text for text in found if NUMBAS.search(text) and " " in text}


@pytest.mark.parametrize(("language", "file"), [("CUDA C++", "cell [5]"), ("", "kernel.cu"), ("Numba", "helpers.cuh")])
def test_authors_of_cuda_cpp_hear_nothing_of_numba(language: str, file: str) -> None:
    texts = _texts()
    assert len(texts) >= 9
    for text in texts:
        error = simulator.SimulatorError("wrong", reason=text, file=file, line=1)
        tell(error, language)
        assert not NUMBAS.search(str(error)), str(error)
        python = simulator.SimulatorError("wrong", reason=text, file="kernel.py", line=1)
        tell(python, "Numba")
        assert text in str(python)


def test_a_race_is_told_in_the_terms_of_each() -> None:
    reason = "Is a __syncthreads() missing between them (or a __syncwarp() within a warp)? "
    reason += "In Numba: cuda.syncthreads(), cuda.syncwarp()."
    said = {}
    for language in ("CUDA C++", "Triton", "Numba"):
        error = simulator.DataRace("race", other_line=1, other_thread=None, reason=reason)
        tell(error, language)
        said[language] = error.reason
    assert said == {
        "CUDA C++": reason.partition(" In Numba")[0],
        "Triton": "Is a tl.debug_barrier() missing between them?",
        "Numba": reason,
    }


def test_a_fence_that_is_missing_is_told_in_the_terms_of_each() -> None:
    said = []
    for language in ("CUDA C++", "Triton"):
        error = simulator.DataRace("race", other_line=1, other_thread=None, reason=race_report._LAST)
        tell(error, language)
        said.append(error.reason.partition("? ")[2])
    assert said == ["Then put a __threadfence() before it.", "Then give it sem='acq_rel'."]


def test_a_kernel_without_a_file_of_its_own_is_told_in_cpp() -> None:
    source = CudaSource("__global__ void f(float* x) { x[threadIdx.x] = 1; }", "f", file="cell [5]")
    with pytest.raises(simulator.IllegalAddress, match=r"`if \(i < n\)`"):
        simulate(source, 1, 32, (np.zeros(8, np.float32),))
