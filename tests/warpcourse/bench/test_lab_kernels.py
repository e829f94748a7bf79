"""Kernels of a lab: compiled once, found by name, launched in CUDA C++ and in Numba."""

from types import SimpleNamespace

import numpy as np
import pytest

from warpcourse.bench import lab_kernels
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose
from warplab import cp, profile
from warplab.dropin import choice
from warplab.hardware import backend

CUDA = """
extern "C" __global__ void plain(int *out) { out[threadIdx.x] = 1; }
template <int VALUE>
__global__ void filled(int *out) { out[threadIdx.x] = VALUE; }
__global__ void shared(int *out) {
    extern __shared__ int memory[];
    memory[threadIdx.x] = 10 * threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = memory[31 - threadIdx.x];
}
"""
NUMBA = """
from warplab import cuda


@cuda.jit
def ones(out):
    out[cuda.grid(1)] = 1
"""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """The sources of a package "made_kernels" elsewhere."""
    folder = tmp_path / f"made_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "all.cu").write_text(CUDA)
    (folder / "numba_kernels.py").write_text(NUMBA)
    monkeypatch.setattr(lab_kernels, "COURSE", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return Sources(folder.name, templates={"all.cu": ["filled<2>", "filled<3>", "shared"]}, options={"all.cu": ["-DX"]})


def result(kernel, shared_bytes=0):
    out = cp.zeros(32, np.int32)
    kernel.launch(1, 32, (out,), shared_bytes)
    return cp.asnumpy(out).tolist()


@pytest.mark.parametrize(
    ("file", "entry", "expected", "language"),
    [
        ("all.cu", "plain", [1] * 32, "CUDA C++"),
        ("all.cu", "filled<2>", [2] * 32, "CUDA C++"),
        ("all.cu", "filled<3>", [3] * 32, "CUDA C++"),
        ("all.cu", "filled<7>", [7] * 32, "CUDA C++"),
        ("numba_kernels.py", "ones", [1] * 32, "Numba"),
    ],
)
def test_kernels_are_found_in_their_files(sources, file, entry, expected, language):
    kernel = Kernel("a_name", sources, file, entry)
    assert kernel.language == language
    assert result(kernel) == expected


def test_dynamic_shared_memory_is_given(sources):
    assert result(Kernel("a_name", sources, "all.cu", "shared"), 128) == [10 * (31 - k) for k in range(32)]


def test_a_file_is_compiled_once_for_all_listed_instances(sources, monkeypatch):
    compiled = []

    class Module:
        def __init__(self, code, options, name_expressions):
            compiled.append((options[-1], name_expressions))

        def get_function(self, name):
            return object()

    monkeypatch.setattr(choice, "load", lambda name: type("cupy", (), {"RawModule": Module}))
    functions = [sources.function("all.cu", entry) for entry in ("plain", "filled<2>", "filled<3>", "filled<7>")]
    assert compiled == [("-DX", ("filled<2>", "filled<3>", "shared")), ("-DX", ("filled<7>",))]
    assert sources.function("all.cu", "plain") is functions[0]
    assert len(compiled) == 2


def test_headers_of_the_toolkit_are_found_where_asked_for(sources):
    assert not [option for option in sources.options("all.cu") if option.startswith("-I")]
    assert [option for option in Sources("kernels", cuda_headers=True).options("x.cu") if option.startswith("-I")]


def test_an_unknown_name_gives_those_alike(sources):
    table = by_name(*(Kernel(name, sources, "all.cu", "plain") for name in ("cuda_sum", "cuda_sum_fast", "numba_scan")))
    assert choose(table, "numba_scan").name == "numba_scan"
    with pytest.raises(ValueError, match=r"there is no kernel 'numba_sum'; choose one of cuda_sum, cuda_sum_fast$"):
        choose(table, "numba_sum")
    with pytest.raises(ValueError, match=r"there is no kernel 'x'; choose one of cuda_sum, cuda_sum_fast, numba_scan$"):
        choose(table, "x")


def test_a_name_is_given_once(sources):
    with pytest.raises(ValueError, match="two kernels are called same; give each a name of its own"):
        by_name(Kernel("same", sources, "all.cu", "plain"), Kernel("same", sources, "all.cu", "shared"))


def test_a_kernel_with_asynchronous_copies_is_counted_but_not_timed_on_an_older_card(sources, monkeypatch):
    (sources.folder / "ahead.cu").write_text(CUDA + '// asm volatile("cp.async.wait_all;");')
    monkeypatch.setattr(lab_kernels, "card", lambda: (75, 64 * 1024))
    with pytest.raises(lab_kernels.NotOnThisCard, match=r"ahead.cu copies by cp.async, of .* 8.0 .*; this GPU has 7.5"):
        lab_kernels.launch(sources.function("ahead.cu", "plain"), 1, 32, (), shared_bytes=64)
    out = cp.zeros(32, np.int32)
    with profile() as p:
        lab_kernels.launch(sources.function("ahead.cu", "plain"), 1, 32, (out,), shared_bytes=64)
    assert out.get().all()
    assert p.counts.global_store_bytes == 128
    assert sources.function("all.cu", "plain")


def test_a_card_is_asked_for_what_it_has_and_the_simulator_is_like_an_h100(monkeypatch):
    device = SimpleNamespace(compute_capability="89", attributes={"MaxSharedMemoryPerBlockOptin": 99 * 1024})
    cupy = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: device))
    monkeypatch.setattr(choice, "load", {"cp": cupy}.__getitem__)
    for name, found in (("gpu", (89, 99 * 1024)), ("simulator", (90, 227 * 1024))):
        monkeypatch.setattr(backend, "name", lambda name=name: name)
        assert lab_kernels.card.__wrapped__() == found
