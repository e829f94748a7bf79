"""What numba-cuda's own tests ask of kernels beyond launching them; see evidence/numba_tests."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cuda.core._utils.cuda_utils import CUDAError, NVRTCError
from numba.cuda import launchconfig, types
from numba.cuda.core.errors import NumbaInvalidConfigWarning, NumbaPerformanceWarning

from warplab import simulator
from warplab.compile.errors import CompileError
from warplab.dropin import numba_cuda as cuda
from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray, DeviceRecord, auto_device, from_record_like
from warplab.dropin.numba_cuda.kernels.transpose import transpose
from warplab.dropin.numba_cuda.memory_management import rtsys


def store(out, x):
    out[0] = x


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_a_pointer_is_an_address():
    @cuda.jit(types.void(types.CPointer(types.int32), types.uint32))
    def add_one(x, n):
        i = cuda.grid(1)
        if i < n:
            x[i] += 1

    x = cuda.to_device(np.arange(40, dtype=np.int32))
    add_one[2, 32](x.__cuda_array_interface__["data"][0], len(x))
    np.testing.assert_array_equal(x.copy_to_host(), np.arange(40) + 1)


def test_extensions_change_arguments_and_clean_up():
    seen = []

    class Doubled:
        def prepare_args(self, ty, val, stream, retr):
            retr.append(lambda: seen.append("after"))
            return (ty, val) if isinstance(ty, types.Array) else (ty, 2 * val)

    kernel = cuda.jit(extensions=[Doubled()])(store)
    out = np.zeros(1)
    kernel[1, 1](out, 1.5)
    assert out[0] == 3
    assert seen == ["after", "after"]
    kernel.extensions.append(Doubled())
    kernel[1, 1](out, 1.5)
    assert out[0] == 6


def test_an_extension_may_choose_how_an_array_is_copied():
    class OnlyIn:
        def prepare_args(self, ty, val, **kwargs):
            return ty, cuda.In(val) if isinstance(val, np.ndarray) else val

    kernel, out = cuda.jit(store), np.zeros(1)
    kernel.extensions.append(OnlyIn())
    kernel[1, 1](out, 1.0)
    assert out[0] == 0


def test_an_array_of_another_library_without_elements():
    class Foreign:
        __cuda_array_interface__ = cuda.device_array(0).__cuda_array_interface__

    @cuda.jit
    def add_one(x):
        if cuda.grid(1) < x.shape[0]:
            x[cuda.grid(1)] += 1

    add_one[1, 32](Foreign())


# -- what a launch refuses ---------------------------------------------------------------------------------------------


def test_a_refused_launch_is_an_error_of_the_driver():
    kernel = cuda.jit(launch_bounds=128)(store)
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        kernel[1, 256](np.zeros(1), 1.0)
    assert isinstance(caught.value, simulator.InvalidLaunch)
    assert "compiled for at most 128" in str(caught.value)


def test_a_device_function_is_no_kernel():
    @cuda.jit(device=True)
    def double(x):
        return 2 * x

    with pytest.raises(RuntimeError, match="Cannot compile a device function as a kernel"):
        double[1, 1](1)
    with pytest.raises(RuntimeError, match="Cannot inspect SASS of a device function"):
        double.inspect_sass((types.int32,))
    with pytest.raises(ValueError, match=r"double is a device function: kernels call it.*double\.py_func\(x\)"):
        double(1)


# -- the launch's configuration ----------------------------------------------------------------------------------------


def test_the_configuration_is_known_while_a_kernel_is_compiled():
    kernel = cuda.jit(store)
    with launchconfig.capture_compile_config(kernel) as capture:
        kernel[3, 32](np.zeros(1), 1.0)
    assert (capture["config"].griddim, capture["config"].blockdim) == ((3, 1, 1), (32, 1, 1))
    assert launchconfig.current_launch_config() is None


def test_callbacks_before_a_launch():
    called = []
    configured = cuda.jit(store)[1, 1]
    configured.pre_launch_callbacks.append(lambda kernel, configuration: called.append((kernel, configuration)))
    with pytest.raises(pickle.PicklingError, match="callbacks"):
        configured.__getstate__()
    configured(np.zeros(1), 1.0)
    ((kernel, configuration),) = called
    assert kernel.argument_types == (types.float64[::1], types.float64)
    assert configuration is configured


def test_warnings_of_performance_are_off_until_asked_for(monkeypatch, recwarn):
    kernel = cuda.jit(store)
    kernel[1, 1](np.zeros(1), 1.0)
    assert not recwarn
    monkeypatch.setattr(cuda.config, "CUDA_LOW_OCCUPANCY_WARNINGS", 1)
    with pytest.warns(NumbaPerformanceWarning, match="Grid size 2 .* low occupancy"):
        configured = kernel[2, 32]
    monkeypatch.setattr(cuda.config, "CUDA_WARN_ON_IMPLICIT_COPY", 1)
    with pytest.warns(NumbaPerformanceWarning, match="Host array used in CUDA kernel"):
        configured(np.zeros(1), 1.0)
    count = len(recwarn)
    configured(cuda.to_device(np.zeros(1)), 1.0)
    configured(cuda.mapped_array(1), 1.0)
    assert len(recwarn) == count


def test_debug_and_lines_exclude_each_other():
    with pytest.warns(NumbaInvalidConfigWarning, match="mutually exclusive"):
        cuda.jit(debug=True, opt=False, lineinfo=True)(store)


@pytest.mark.parametrize("carveout", [101, -2, "most"])
def test_a_carveout_is_checked(carveout):
    with pytest.raises(ValueError, match=r"arveout"):
        cuda.jit(shared_memory_carveout=carveout)(store)


# -- what was compiled -------------------------------------------------------------------------------------------------


def test_kernels_of_overloads():
    kernel = cuda.jit("void(float64[::1], float64)")(store)
    (compiled,) = kernel.overloads.values()
    assert compiled.signature.args == (types.float64[::1], types.float64)
    assert compiled.cooperative is False
    assert compiled.max_cooperative_grid_blocks((16, 16)) == compiled.max_cooperative_grid_blocks(256) == 8
    assert kernel.nopython_signatures == [compiled.signature]
    with pytest.raises(RuntimeError, match="already specialized"):
        kernel.specialize(np.zeros(1), 1.0)


def test_compiling_again_reads_globals_again():
    namespace = {"cuda": cuda, "FACTOR": 2}
    exec("def scale(x):\n    x[0] = FACTOR", namespace)
    kernel, x = cuda.jit(namespace["scale"]), np.zeros(1)
    kernel[1, 1](x)
    namespace["FACTOR"] = 5
    kernel[1, 1](x)
    assert x[0] == 2
    kernel.recompile()
    kernel[1, 1](x)
    assert x[0] == 5


CACHED = """
from warplab.dropin import numba_cuda as cuda

@cuda.jit(cache=True)
def fill(x):
    x[0] = {value}
"""


def test_a_cache_is_read_until_the_source_changes(tmp_path):
    def run(value: int, number: int) -> tuple[float, int, int]:
        file, namespace = tmp_path / "cached_kernel.py", {"__name__": "cached_kernel"}
        file.write_text(CACHED.format(value=value) + "\n" * number)
        exec(compile(file.read_text(), str(file), "exec"), namespace)
        kernel, x = namespace["fill"], np.zeros(1)
        kernel[1, 1](x)
        return x[0], sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())

    assert run(3, 0) == (3, 0, 1)
    assert run(3, 0)[0] == 3
    assert run(4, 1) == (4, 0, 1)
    assert list((tmp_path / "__pycache__").glob("*.simulated*"))


def test_a_kernel_that_links_code_is_not_cached():
    kernel = cuda.jit("void(float64[::1], float64)", link=[cuda.CUSource("__device__ int nothing;")])(store)
    assert kernel.overloads
    with pytest.raises(RuntimeError, match="Cannot pickle CUDACodeLibrary with linking files"):
        cuda.jit("void(float64[::1], float64)", link=[cuda.CUSource("__device__ int nothing;")], cache=True)(store)


# -- linked code -------------------------------------------------------------------------------------------------------


def test_a_function_in_c_that_returns_nothing():
    source = cuda.CUSource('extern "C" __device__ void fill(int* x) { *x = 42; }')
    fill = cuda.declare_device("fill", types.void(types.CPointer(types.int32)), link=source, abi="c")

    @cuda.jit(types.void(types.CPointer(types.int32)))
    def kernel(x):
        fill(x)

    x = cuda.to_device(np.zeros(1, np.int32))
    kernel[1, 1](x.gpu_data.device_pointer)
    assert x[0] == 42


def test_linked_code_that_does_not_compile():
    source = cuda.CUSource('extern "C" __device__ int broken(int* x) { SYNTAX ERROR }', name="broken.cu")
    with pytest.raises(NVRTCError, match=r'NVRTC_ERROR_COMPILATION in the compilation of "broken\.cu"') as caught:
        cuda.jit("void(float64[::1], float64)", link=[source])(store)
    assert isinstance(caught.value, CompileError)
    assert 'identifier "SYNTAX" is undefined' in str(caught.value)


def test_warnings_of_linked_code_are_passed_on():
    source = cuda.CUSource('extern "C" __device__ int one(int* x) { int unused; *x = 1; return 0; }', name="one.cu")
    with pytest.warns(UserWarning, match=r"NVRTC log messages: one\.cu, line 1: warning .*never referenced"):
        cuda.jit("void(float64[::1], float64)", link=[source])(store)


def test_linked_code_finds_headers_in_the_folders_named_to_numba(tmp_path, monkeypatch):
    (tmp_path / "answer.cuh").write_text("#define ANSWER 42\n")
    monkeypatch.setattr(cuda.config, "CUDA_NVRTC_EXTRA_SEARCH_PATHS", str(tmp_path))
    source = cuda.CUSource(
        '#include <answer.cuh>\nextern "C" __device__ int answer(int* x) { *x = ANSWER; return 0; }', name="answer.cu"
    )
    answer = cuda.declare_device("answer", "int32()", link=source)

    @cuda.jit
    def kernel(out):
        out[0] = answer()

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 42


@pytest.mark.parametrize("file", ["header.cuh", "data"])
def test_files_of_unknown_kinds_are_not_linked(file):
    with pytest.raises(RuntimeError, match="Don't know how to link file with"):
        cuda.jit("void(float64[::1], float64)", link=[file])(store)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_a_kernel_allocates_and_frees(monkeypatch):
    monkeypatch.setattr(cuda.config, "CUDA_ENABLE_NRT", True)
    monkeypatch.setattr(cuda.config, "CUDA_NRT_STATS", True)

    @cuda.jit
    def sums(out):
        for i in range(out.size):
            values = np.empty(i + 1)
            for j in range(values.size):
                values[j] = j
            out[i] = values.sum()

    rtsys.memsys_enable_stats()
    before, out = rtsys.get_allocation_stats(), np.zeros(5)
    sums[1, 1](out)
    after = rtsys.get_allocation_stats()
    np.testing.assert_array_equal(out, [0, 1, 3, 6, 10])
    assert after.alloc - before.alloc == after.free - before.free == 5
    rtsys.memsys_disable_stats()
    with pytest.raises(RuntimeError, match="NRT stats are disabled"):
        rtsys.get_allocation_stats()


def test_records_and_arrays_of_the_device_by_their_classes():
    dtype = np.dtype([("a", np.int32), ("b", np.float32)], align=True)
    host = np.zeros(1, dtype)[0]
    record = DeviceRecord(dtype)
    host["a"], host["b"] = 10, 11
    record.copy_to_device(host)
    back = np.zeros(1, dtype)[0]
    record.copy_to_host(back)
    assert back == host
    assert from_record_like(record).gpu_data != record.gpu_data
    device, new = auto_device(host)
    assert new
    assert device["a"] == 10
    assert auto_device(device) == (device, False)
    array = DeviceNDArray((2, 3), (24, 8), np.float64)
    assert array.is_c_contiguous()
    assert array.gpu_data.size == 48


def test_an_array_keeps_its_stream():
    stream = cuda.stream()
    arrays = (cuda.device_array(3, stream=stream), cuda.to_device(np.zeros(3), stream=stream))
    for array in (*arrays, cuda.mapped_array(3, stream=stream)):
        assert array.__cuda_array_interface__["stream"] == int(stream)
    imported = cuda.from_cuda_array_interface(arrays[0].__cuda_array_interface__)
    assert imported.stream.external
    assert int(imported.stream) == int(stream)
    assert cuda.device_array(3).__cuda_array_interface__["stream"] is None


def test_a_matrix_is_transposed_into_another():
    matrix, other = np.arange(6.0).reshape(2, 3), cuda.device_array((3, 2))
    assert transpose(cuda.to_device(matrix), other) is other
    np.testing.assert_array_equal(other.copy_to_host(), matrix.T)
    np.testing.assert_array_equal(transpose(matrix).copy_to_host(), matrix.T)


def test_a_shape_may_be_an_array():
    assert cuda.device_array(np.array([2, 3])).shape == (2, 3)
    with pytest.raises(TypeError, match="shape must be"):
        cuda.device_array(np.array([2.5, 3]))
