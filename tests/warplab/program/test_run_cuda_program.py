"""`warplab run prog.cu`: right programs end as on a GPU, wrong ones with the defect at its line.

What each program in `programs/` does wrong, and where, stands in its first line.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.warplab.running.programs import python
from warplab.compile.headers import include_folders
from warplab.program import build, runtime
from warplab.simulator.translate import kept_code

PROGRAMS = Path(__file__).with_name("programs")
# Some four seconds each, most of them g++'s and NVRTC's: `make test` runs three of them, and test_host_code.py.
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def run(tmp_path: Path, *words: str, folder: Path = PROGRAMS, **variables: str):
    """Return the process that ran, and its report."""
    file = tmp_path / "report.json"
    done = python(folder, "-m", "warplab", "run", f"--json={file}", *words, **variables)
    return done, json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def test_arguments_and_the_report_of_a_right_program(tmp_path):
    done, report = run(tmp_path, "vector_add.cu", "700")
    assert (done.returncode, done.stdout) == (0, "0 of 700 wrong\n"), done.stderr
    (kernel,) = report["kernels"]
    assert (kernel["kernel"], kernel["launches"], kernel["grid"]) == ("add", 1, [3, 1, 1])
    assert kernel["counters"]["global_load_requests"] == 2 * 22  # two arrays, 22 warps with work
    assert kernel["estimates"][0]["card"] == "H100"
    assert "warp instructions: vector_add.cu:8" in done.stderr


@pytest.mark.thorough
def test_an_older_card_is_compiled_for(tmp_path):
    (tmp_path / "arch.cu").write_text(
        "#include <cstdio>\n__global__ void tell(int* x) {\n#ifdef __CUDA_ARCH__\n  *x = __CUDA_ARCH__;\n#endif\n}\n"
        "int main() {\n  int* x; int y;\n  cudaMalloc(&x, 4); tell<<<1, 1>>>(x);\n"
        '  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); printf("%d\\n", y);\n}\n'
    )
    own = "--card=mine = T4, sms=20"
    done, report = run(tmp_path, "--card=T4", own, "arch.cu", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "750\n"), done.stderr
    assert [one["card"] for one in report["kernels"][0]["estimates"]] == ["T4", "mine"]
    assert "Not validated for the T4 or the mine: rates" in " ".join(done.stderr.split())
    done, _ = run(tmp_path, own, "arch.cu", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "750\n"), done.stderr


@pytest.mark.thorough
def test_a_program_without_a_line_to_check_errors_ends_with_its_own_exit_code(tmp_path):
    done, report = run(tmp_path, "vector_add.cu", "--", "0")
    assert done.returncode == 1, done.stderr  # a grid of 0 blocks
    assert "cudaErrorInvalidConfiguration" in done.stdout
    assert [defect["error"] for defect in report["defects"]] == ["InvalidLaunch"]


@pytest.mark.thorough
def test_templates_overloads_namespaces_and_variables_of_the_device(tmp_path):
    done, report = run(tmp_path, "language.cu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "thread 0 of plain\nf 355 310 121 1\n"
    names = {kernel["kernel"]: kernel["launches"] for kernel in report["kernels"]}
    assert names == {
        "inner::combine<(Op)0, float>": 1,
        "scale(float*, double)": 2,
        "scale(int*, int)": 1,
        "plain": 1,
    }


@pytest.mark.thorough
def test_a_class_with_functions_for_the_host_and_for_the_device(tmp_path):
    done, report = run(tmp_path, "class_of_both.cu")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert [line["line"] for line in report["kernels"][0]["lines"]][:1] == [25]


def test_a_type_with_a_string_in_it(tmp_path):
    done, _ = run(tmp_path, "strings.cu")
    assert (done.returncode, done.stdout) == (0, "seven of 7: 7, 1\n"), done.stderr


def test_variables_that_host_and_kernels_share(tmp_path):
    done, _ = run(tmp_path, "managed_variables.cu")
    assert (done.returncode, done.stdout) == (0, "4 32640\n11 56897 9\n"), done.stderr


@pytest.mark.thorough
def test_graphs_of_what_was_captured(tmp_path):
    done, report = run(tmp_path, "graphs.cu")
    # Of even and odd i in 0 to 31 the sums are 240 and 256; each is added twice, once with 1 more for each of 16.
    assert (done.returncode, done.stdout) == (0, "-1 0\n496 528 1\n976 1040 2\n"), done.stderr
    assert report["kernels"][0]["launches"] == 4


@pytest.mark.thorough
def test_managed_pinned_and_pitched_memory_streams_and_events(tmp_path):
    done, _ = run(tmp_path, "--card=A100", "memory_kinds.cu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("16 3 1 A100"), done.stdout
    assert "108 SMs, 8 blocks, time unknown" in done.stdout
    assert done.stderr.count("no GPU here") == 1
    assert re.search(r"memory_kinds\.cu:\d+: RuntimeWarning: .* only NaN.*\n +cudaEventElapsedTime", done.stderr)


@pytest.mark.thorough
@pytest.mark.parametrize("files", [["main.cu", "second.cu", "host.cpp"], ["host.cpp", "main.cu", "second.cu"]])
def test_several_files_and_macros(tmp_path, files: list[str]):
    done, report = run(tmp_path, *files, "-DSTEP=3", "--", "hello", folder=PROGRAMS / "parts")
    assert (done.returncode, done.stdout) == (4, "7 8 hello\n"), done.stderr
    assert [Path(kernel["file"]).name for kernel in report["kernels"]] == ["kernels.cuh", "second.cu"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "error", "line", "launched", "words"),
    [
        ("missing_barrier", "DataRace", 6, 12, "element 63 of `s`"),
        ("out_of_bounds", "IllegalAddress", 4, 9, "4 bytes past the end of array `x`"),
        ("unchecked_error", "InvalidLaunch", 0, 8, "block dimension x is 2,048"),
        ("too_much_shared", "InvalidLaunch", 0, 8, "50,000 bytes of dynamic shared memory"),
        ("use_after_free", "IllegalAddress", 2, 8, "array `x` (256 bytes), which has been freed"),
        ("device_libraries", "AssertFailed", 21, 37, "assertion failed: x[i] < 63"),
        ("host_pointer", "HostPointer", 2, 5, "that is host memory"),
        ("copy_direction", "InvalidCall", 6, 6, "cudaMemcpyHostToDevice, but the target"),
        ("host_read", "InvalidCall", 6, 6, "host code reads or writes"),
    ],
)
def test_a_defect_is_reported_at_its_line(tmp_path, name, error, line, launched, words):
    done, report = run(tmp_path, f"{name}.cu")
    (defect,) = report["defects"]
    assert (defect["error"], defect["line"]) == (error, line), defect
    assert words in defect["what"]
    assert defect["launched_at"] == [str(PROGRAMS / f"{name}.cu"), launched]
    assert done.returncode == 1
    assert f"{name}.cu" in done.stderr
    assert "Numba" not in done.stderr
    assert "cp." not in done.stderr
    assert defect["path"] == (str(PROGRAMS / f"{name}.cu") if line else "")


@pytest.mark.thorough
def test_after_a_fault_every_call_returns_its_error(tmp_path):
    done, report = run(tmp_path, "after_a_fault.cu")
    assert done.stdout == "700 " * 18 + "0 3\n", done.stderr
    assert [(defect["error"], defect["line"]) for defect in report["defects"]] == [("IllegalAddress", 5)]
    assert done.returncode == 1


@pytest.mark.parametrize(("name", "printed"), [("shared_memory", "20000\n"), ("launch_attributes", "20 21 20 21\n")])
def test_what_a_launch_asks_for(tmp_path, name, printed):
    done, report = run(tmp_path, f"{name}.cu")
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert report["defects"] == []


@pytest.mark.thorough
def test_clusters_of_16_blocks_run_where_the_program_asks_for_them(tmp_path):
    done, report = run(tmp_path, "wide_clusters.cu", "asked")
    assert (done.returncode, done.stdout) == (0, "15 15\n"), done.stderr
    assert report["defects"] == []
    done, report = run(tmp_path, "wide_clusters.cu")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert [defect["error"] for defect in report["defects"]] == ["InvalidLaunch"]


@pytest.mark.thorough
def test_tensor_maps_concepts_and_constants_of_the_device(tmp_path):
    options = "-std=c++20", "-arch=sm_90a"
    done, report = run(tmp_path, "tensor_map.cu", *options)
    assert (done.returncode, done.stdout) == (0, "36 137 531\n"), done.stderr
    assert report["defects"] == []
    assert report["kernels"][0]["estimates"][0]["seconds"]  # machine code for sm_90a
    done, report = run(tmp_path, "tensor_map.cu", *options, "--", "narrow")
    assert done.returncode == 1, done.stderr
    assert "globalStrides is (72,)" in report["defects"][0]["message"]


@pytest.mark.thorough
def test_a_file_in_c_is_compiled_as_c(tmp_path):
    """Rodinia's are of the 1980s: types of parameters after the list, a variable `new`."""
    (tmp_path / "old.c").write_text("int twice(n)\nint n;\n{\n  int new = 2 * n;\n  return new;\n}\n")
    (tmp_path / "main.cu").write_text(
        '#include <cstdio>\nextern "C" int twice(int);\n__global__ void add(int* x, int n) { *x += n; }\nint main() {\n'
        "  int* x; int y = 1;\n  cudaMalloc(&x, 4); cudaMemcpy(x, &y, 4, cudaMemcpyHostToDevice);\n"
        '  add<<<1, 1>>>(x, twice(20));\n  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);\n  printf("%d\\n", y);\n}\n'
    )
    done, _ = run(tmp_path, "main.cu", "old.c", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "41\n"), done.stderr


@pytest.mark.thorough
def test_functions_of_cub_and_curand_for_the_device(tmp_path):
    done, report = run(tmp_path, "device_libraries.cu")
    assert done.stdout == f"{32767 + 63 * 32} 1\n", done.stderr
    assert [kernel["kernel"] for kernel in report["kernels"]] == ["total", "draw"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["not_there.cu"], "the program calls cudaGraphCreate, which Warp Lab's CUDA runtime does not have"),
        (["does_not_compile.cu"], 'does_not_compile.cu, line 2: error: identifier "undeclared" is undefined'),
        (["does_not_compile.cu"], "error: a kernel could not be compiled or run: "),
        (["nested_launch.cu"], "A kernel that launches kernels (dynamic parallelism) is not supported: launch from"),
        (["vector_add.cu", "gone.cpp"], "error: there is no file gone.cpp"),
        (["no_main.cu"], "error: the program has no main; name the file that has it, too"),
        (["vector_add.cu", "-lcublas"], "cannot find -lcublas"),
    ],
)
def test_what_cannot_run_is_refused_with_a_sentence(tmp_path, words, sentence):
    done, _ = run(tmp_path, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "No kernel was launched" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#include <cublas_v2.h>\nint main() {}", "the program uses cublas, which Warp Lab does not have (prog.cu:1:"),
        (
            "#include <cub/cub.cuh>\nint main() { cub::DeviceSpmv(); }",
            "uses more of CUB than Warp Lab has (prog.cu:2",
        ),
        (
            "#include <cub/cub.cuh>\nint main() { cub::DeviceScan::Up(); }",
            "uses more of CUB than Warp Lab has",
        ),
        (
            'extern "C" int far();\nint main() { return far(); }',
            "the program calls far, which no file that was named has",
        ),
        (
            'extern "C" int omp_get_max_threads();\nint main() { return omp_get_max_threads(); }',
            "the program calls omp_get_max_threads, which no file that was named has; -fopenmp brings OpenMP",
        ),
        (
            "#include <curand_none.h>\nint main() {}",
            "curand_none.h, which is not installed: pip install",
        ),
        ("texture<float> t;\nint main() {}", "texture references, texture<...>, which CUDA 12 has taken away"),
        ("int main() { return undeclared; }", "the C++ compiler refuses the program: prog.cu:1:21: error: "),
        (
            "struct S { __device__ int f() { return threadIdx.x; } };\nint main() { S().f(); }",
            "code for the device alone",
        ),
        (
            "template <class F> __global__ void k(F f) { f(); }\nint main() { k<<<1, 1>>>([] __device__() {}); }",
            "kernel k takes a lambda (nvcc's --extended-lambda): give it a struct with operator()",
        ),
    ],
    ids=["header", "function", "member", "elsewhere", "openmp", "curand", "texture", "host", "device", "lambda"],
)
def test_what_the_host_lacks_is_named(tmp_path, text: str, said: str):
    (tmp_path / "prog.cu").write_text(text)
    done, _ = run(tmp_path, "prog.cu", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert said in done.stderr


def test_thrust_and_cub_run_on_the_host_between_kernels(tmp_path):
    done, report = run(tmp_path, "host_libraries.cu")
    assert (done.returncode, done.stdout) == (0, "10100 5050 4384 50 3 -2\n"), done.stderr
    assert [kernel["kernel"] for kernel in report["kernels"]] == ["fill", "blocksum", "cplx"]
    assert report["defects"] == []


@pytest.mark.thorough
def test_what_no_library_has_touched_stays_out_of_the_hosts_reach(tmp_path):
    done, report = run(tmp_path, "host_libraries.cu", "1")
    (defect,) = report["defects"]
    line = (PROGRAMS / "host_libraries.cu").read_text().splitlines()[defect["line"] - 1]
    assert (done.returncode, defect["error"], line) == (1, "InvalidCall", "  if (argc > 1) return *own;"), defect
    assert "host code reads or writes" in defect["what"]


ITSELF = """
#include <cstdlib>
#include <unistd.h>
int main() { cudaFree(0); return execl("/proc/self/exe", "again", nullptr); }
"""


def test_a_program_that_starts_itself_anew_is_told_that_it_has_no_device(tmp_path):
    (tmp_path / "itself.cu").write_text(ITSELF)
    done, report = run(tmp_path, "itself.cu", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "error: this program runs under python -m warplab run, and not where it starts itself" in done.stderr
    assert report["exit_code"] == 2


def test_texts_of_errors_are_those_of_libcudart():
    libraries = [file for folder in include_folders() for file in Path(folder).parent.glob("lib/libcudart.so.*")]
    if not libraries:
        pytest.skip("needs libcudart, which numba-cuda brings")
    library = ctypes.CDLL(str(libraries[0]))
    library.cudaGetErrorString.restype = ctypes.c_char_p
    known = {code: library.cudaGetErrorString(code).decode() for code in runtime._TEXTS}
    assert known == runtime._TEXTS


def test_without_a_compiler_a_sentence(tmp_path):
    done, _ = run(tmp_path, "vector_add.cu", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "needs a C++ compiler, and there is none (g++ or clang++); install one" in done.stderr


@pytest.mark.parametrize(
    ("call", "numbers", "said"),
    [
        ("cudaMemset", (0, 0, 0, -1, 1), "cudaMemset of 18,446,744,073,709,551,615 x 1 bytes"),
        ("cudaMemcpy2D", (0, 4, 0, 8, 8, 2, 0), "of rows of 8 bytes with a pitch of 4"),
        ("occupancy", (0, 0, 0), "occupancy of blocks of 0 threads"),
    ],
)
def test_sizes_that_cannot_be_are_refused(call, numbers, said):
    served = runtime.Runtime(SimpleNamespace(instances={}), runtime.simulator.Device(), None)
    with pytest.raises(runtime.InvalidCall, match=said):
        getattr(served, call)(*numbers)


@pytest.mark.thorough
def test_names_with_blanks_and_umlauts_exit_codes_above_128_and_what_is_left_running(tmp_path):
    """g++ and LLVM escape such names, addr2line adds words to a line, and shells say 128 + a number of signals."""
    folder = tmp_path / "ö dir"
    folder.mkdir()
    code = """#include <cstdlib>
    __global__ void add(int* p) { p[0] = p[0] + threadIdx.x; }
    int main() {
        int* p;
        cudaMalloc(&p, 4);
        cudaMemset(p, 0, 4);
        system("sleep 600 > /dev/null 2>&1 & echo $!");
        add<<<1, 64>>>(p);
        cudaFree((void*)12345);
        return 207;
    }"""
    (folder / "prög ä.cu").write_text(code, encoding="utf-8")
    done, report = run(tmp_path, f"--sarif={tmp_path / 'o.sarif'}", "prög ä.cu", folder=folder)
    os.kill(int(done.stdout), signal.SIGTERM)  # it still runs
    assert done.returncode == 1, done.stderr
    assert "signal" not in done.stderr
    found = [(defect["error"], Path(defect["path"]).name, defect["line"]) for defect in report["defects"]]
    assert found == [("DataRace", "prög ä.cu", 2), ("InvalidCall", "prög ä.cu", 9)]
    results = json.loads((tmp_path / "o.sarif").read_text())["runs"][0]["results"]
    uris = {at["physicalLocation"]["artifactLocation"]["uri"] for result in results for at in result["locations"]}
    assert all(uri.endswith("pr%C3%B6g%20%C3%A4.cu") for uri in uris), uris


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [False, True])
def test_device_code_of_another_file_is_called_and_its_variables_are_shared(tmp_path, wrong):
    done, report = run(tmp_path, "main.cu", "other.cu", *["--", "wrong"] * wrong, folder=PROGRAMS / "joined")
    if not wrong:
        assert (done.returncode, done.stdout) == (0, "101 143 51\n"), done.stderr
        assert report["kernels"][0]["estimates"][0]["seconds"] > 0
        return
    (defect,) = report["defects"]
    assert (done.returncode, defect["error"], defect["file"], defect["line"]) == (1, "IllegalAddress", "other.cu", 6)


@pytest.mark.thorough
def test_device_code_that_no_file_has_is_refused(tmp_path):
    text = "__device__ int f(int);\n__global__ void k(int* x) { *x = f(1); }\nint main() { int* x; cudaMalloc(&x, 4);"
    (tmp_path / "a.cu").write_text(f"{text} k<<<1, 1>>>(x); cudaDeviceSynchronize(); }}")
    done, _ = run(tmp_path, "a.cu", folder=tmp_path)
    assert done.returncode == 2
    assert "function f has no body" in done.stderr


def test_the_runtime_is_compiled_once_for_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("WARPLAB_KEEP_CODE", raising=False)
    kept_code._folder.cache_clear()
    compiled = []

    def compile_one(self, arguments):
        compiled.append(self.compiler)
        Path(arguments[-1]).write_bytes(b"code")

    monkeypatch.setattr(build._Build, "_run", compile_one)
    for compiler in (["g++"], ["g++"], ["g++", "-m64"]):
        (folder := tmp_path / f"{len(compiled)}{len(compiler)}").mkdir(exist_ok=True)
        assert build._Build(compiler, (), folder).runtime().read_bytes() == b"code"
    assert compiled == [["g++"], ["g++", "-m64"]]
    kept_code._folder.cache_clear()
