"""What `device_code` keeps of a program."""

from warplab.compile.device_code import device_code

PROGRAM = r"""
#include <stdio.h>
#include <cooperative_groups.h>
#include "helper.h"
#define SIZE 32 // of a tile
/* A comment with __global__ in it. */
typedef unsigned int uint;
namespace cg = cooperative_groups;
const char *name = "sample { ; }";
static const char *const other = "x";
const int radius = 3;
static double const root = 2.5;
int const *of_the_host = nullptr;
float *d_data;
struct __align__(16) Four { float v[4]; };
typedef struct __attribute__((aligned(4))) { unsigned char r, g, b, a; }
Pixel;
typedef struct alignas(32)
{ int s[8]; }
Eight;
typedef struct { int x; } Site __attribute__ ((aligned)), *Sites;
enum Mode { NEAREST, LINEAR };
template <int n> using Aligned = int[(n + 7) / 8];
template <class T> struct alignas(4 * sizeof(T)) Packed { T part[4]; __device__ T sum() { return part[0]; } };
template <class T, int n = (1 << 5)> struct __attribute__((aligned(n * sizeof(T)))) Vector { T part[n]; };
__constant__ float weights[2 * radius + 1];
__device__ Four twice(Four x);
extern "C" {
__global__ void first(uint *out, int n)
{
    if (n) { out[0] = SIZE; } // }
}
void host_in_c(int n) { printf("{"); }
}
template <typename T, int N> __global__ void second(T *out) { out[threadIdx.x] = N; }
template <class T> void launch(T *out) { second<T, 3><<<1, 1>>>(out); }
static int iDivUp(int a, int b) { return a / b; }
int main(int argc, char **argv) { first<<<1, 1>>>(nullptr, 0); return 0; }
namespace inner {
__device__ int third(int n) { return n; }
void run_third(int n) { third_of_host<<<1, n>>>(); }
}
using inner::third;
using inner::run_third;
namespace outer::within {
__device__ int fourth(int n) { return n; }
std::vector<int> of_vectors(const std::string& name) { return {}; }
}
namespace {
__device__ int fifth(int n) { return n; }
std::string of_strings() { return ""; }
}
#ifdef FAST
#pragma once
#endif
"""


def test_what_is_for_the_device_stays():
    code = device_code(PROGRAM)
    for part in (
        "#include <cooperative_groups.h>",
        "#define SIZE 32",
        "typedef unsigned int uint;",
        "namespace cg",
        "const int radius",
        "static double const root",
        "struct __align__(16) Four",
        "a; }\nPixel;",
        "s[8]; }\nEight;",
        "Site __attribute__ ((aligned)), *Sites;",
        "enum Mode",
        "using Aligned = int[(n + 7) / 8];",
        "struct alignas(4 * sizeof(T)) Packed",
        "struct __attribute__((aligned(n * sizeof(T)))) Vector",
        "__constant__ float weights",
        "__device__ Four twice",
        "__global__ void first",
        "__global__ void second",
        "namespace inner {",
        "__device__ int third",
        "using inner::third;",
        "namespace outer::within {",
        "__device__ int fourth",
        "namespace {",
        "__device__ int fifth",
        "#ifdef FAST",
        "#endif",
    ):
        assert part in code
    assert code.count("{") == code.count("}")


def test_what_is_for_the_host_goes():
    code = device_code(PROGRAM)
    for part in (
        "stdio",
        "helper.h",
        "*name",
        "*const other",
        "d_data",
        "host_in_c",
        "launch",
        "iDivUp",
        "main",
        "<<<",
        "run_third",
        "of_vectors",
        "of_strings",
    ):
        assert part not in code


def test_lines_keep_their_numbers():
    before, after = PROGRAM.splitlines(), device_code(PROGRAM).splitlines()
    for text in ("__global__ void first", "__global__ void second", "#endif", "struct alignas"):
        assert next(k for k, line in enumerate(after) if text in line) == next(
            k for k, line in enumerate(before) if text in line
        )
