"""Signatures of CUDA C++ kernels, read from source."""

import numpy as np

from warplab.compile import cuda_signature


def test_signatures_are_read_from_source():
    source = r"""
    // __global__ void in_a_comment(float* a);
    #define MAKE(name) \
      __global__ void name(int x)
    /* __global__ void also(int) */
    template <typename T, int N = (3 > 2)> __global__ void __launch_bounds__(256, 2) t(T* a, int n) {}
    extern "C" __global__ void c(float const *a, double b[], unsigned long long m, real *r, float2 v) {
      const char* s = "__global__ void in_a_string(int)";
    }
    extern "C" {
      static __global__ void
      block (const uint8_t *__restrict__ q, void *p) { if (1) { } }
    }
    __global__ void plain(void);
    __global__ void plain() {}
    """
    found = cuda_signature.kernels(source)
    assert list(found) == ["t", "c", "block", "plain"]
    assert [(s.extern_c, s.template) for s in found.values()] == [
        (False, True),
        (True, False),
        (True, False),
        (False, False),
    ]
    c = found["c"].parameters
    assert [(p.name, p.pointer, p.dtype, p.count) for p in c] == [
        ("a", True, np.float32, 1),
        ("b", True, np.float64, 1),
        ("m", False, np.uint64, 1),
        ("r", True, None, 1),
        ("v", False, np.float32, 2),
    ]
    assert str(found["block"]) == "block(const uint8_t *__restrict__ q, void *p)"
    assert found["plain"].parameters == ()
