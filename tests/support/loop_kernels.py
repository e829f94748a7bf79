"""Kernels in which one lane goes round a loop, and what is compared of launches by two engines."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.support.ptx_harness import ptx_of
from warplab import simulator
from warplab.simulator.run import machine_runs, narrow_runs
from warplab.simulator.translate.machine_blocks import MachineBlocks

SOURCE = """
KERNEL hash_(unsigned* out, int n) {
    unsigned x = 1;
    for (int i = 0; i < n; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7; x = (x << 3) | (x >> 29); }
    out[0] = x;
}
KERNEL prefix(const int* a, int* out, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { s += a[i]; out[i] = s; }
}
KERNEL horner(const float* a, float* out, int n) {
    float s = 0, t = 1;
    for (int i = 0; i < n; i++) { s = s * 0.75f + a[i]; t = fmaxf(t, s) / 1.5f; }
    out[0] = s; out[1] = t;
}
KERNEL horner_double(const double* a, double* out, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s = s * 0.75 + sqrt(fabs(a[i]));
    out[0] = s;
}
KERNEL sort(int* a, int n) {
    for (int i = 1; i < n; i++) {
        int v = a[i], j = i - 1;
        while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; }
        a[j + 1] = v;
    }
}
KERNEL histogram(const int* a, int* out, int n) {
    __shared__ int bins[16];
    for (int i = 0; i < 16; i++) bins[i] = 0;
    for (int i = 0; i < n; i++) { if (a[i] % 3 == 0) bins[a[i] & 15] += 2; else bins[a[i] & 15]++; }
    for (int i = 0; i < 16; i++) out[i] = bins[i];
}
KERNEL local_array(const int* a, int* out, int n) {
    int last[8];
    for (int i = 0; i < 8; i++) last[i] = 0;
    for (int i = 0; i < n; i++) last[a[i] & 7] = i;
    for (int i = 0; i < 8; i++) out[i] = last[i];
}
KERNEL vectors(const float4* a, float4* out, int n) {
    for (int i = 0; i < n; i++) { float4 v = a[i]; v.x += v.w; v.y *= v.z; out[i] = v; }
}
KERNEL bytes(const unsigned char* a, unsigned char* out, int n) {
    for (int i = 0; i < n; i++) out[i] = (unsigned char)(a[i] * 3 + (signed char)a[n - 1 - i]);
}
KERNEL one_of_many(const int* a, int* out, int n) {
    __shared__ int sum;
    if (threadIdx.x == 5) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; sum = s; }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
KERNEL between_barriers(int* a, int n) {  // what some read, others have written before the barrier
    __shared__ int s[64];
    for (int k = 0; k < 3; k++) {
        s[threadIdx.x] = a[threadIdx.x] + k;
        __syncthreads();
        if (threadIdx.x == 0) for (int i = 1; i < n; i++) { s[i] += s[i - 1]; a[i] = s[i]; }
        __syncthreads();
    }
}
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int total;
KERNEL variables(const int* a, int* out, int n) {
    for (int i = 0; i < n; i++) { if (a[i] & 1) total += table[a[i] & 7]; out[i] = total; }
    total = 0;
}
KERNEL triangle(int* out, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) { if ((i ^ j) & 1) continue; count += j; }
    out[0] = count;
}
KERNEL both_forms(const float* a, float* out, int n) {  // bits of a register as a number and as an integer, often
    float s = 1;
    int count = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        float x = a[i];
        unsigned bits = __float_as_uint(x);
        count += bits < 0x3f800000u ? 1 : 0;
        count += bits < 0x3f000000u ? 3 : 0;
        count += bits < 0x40000000u ? 5 : 0;
        count ^= bits < 0xbf800000u ? i : 0;
        s = s * x; s += x * 3.f; s = s * x; s += x * 5.f; s = s * x;
        s += x * 7.f; s = s * x; s += x * 9.f; s = s * x; s += x * 11.f;
        s = fmaxf(fminf(s, 1.f), -1.f);
        out[i] = s + count;
    }
}
KERNEL logarithms(const float* a, float* out, int n) {
    for (int i = 0; i < n; i++) out[i] = logf(1 + fabsf(a[i])) + atan2f(a[i], 2.f);
}
KERNEL backwards(float* out, int n) {  // the compiler adds a constant to a base below the array
    __shared__ float s[320];
    if (threadIdx.x == 0) for (int i = 0; i < n; i++) s[319 - i] = i + 0.5f;
    __syncthreads();
    out[threadIdx.x] = s[319 - threadIdx.x];
}
KERNEL too_far(const int* a, int* out, int n) { for (int i = 0; i < 2 * n; i++) out[i] = a[i]; }
KERNEL unwritten(int* out, int* other, int n) { int s = 0; for (int i = 0; i < n; i++) s += out[i]; other[0] = s; }
KERNEL misaligned(char* a, int n) { for (int i = 0; i < n; i++) *(int*)(a + 4 * i + (i == n / 2)) = i; }
KERNEL shared_too_far(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < n; i++) s[i] = i;
    out[0] = s[3];
}
KERNEL shared_unwritten(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < 40; i++) s[i] = i;
    int t = 0;
    for (int i = 0; i < n; i++) t += s[i];
    out[0] = t;
}
KERNEL endless(int* out, int n) { while (out[0] == 0) out[1] += n; }
KERNEL race_of_writes(int* out, int n) {
    if (threadIdx.x == 40) out[n / 2] = 7;
    if (threadIdx.x == 0) for (int i = 0; i < n; i++) out[i] = i;
}
KERNEL race_of_reads(int* a, int* out, int n) {
    if (threadIdx.x == 0) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; out[0] = s; }
    if (threadIdx.x == 40) a[n / 2] = 7;
}
KERNEL race_of_shared(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    if (threadIdx.x == 0) { int t = 0; for (int i = 0; i < n; i++) t += s[i]; out[0] = t; }
}
KERNEL race_after(int* a, int* out, int n) {  // who comes last finds what the loop has done
    if (threadIdx.x == 0) { int t = 0; for (int i = 0; i < n; i++) { t += a[i]; if (i & 1) a[i] = 2 * t; } out[0] = t; }
    __syncwarp();
    if (threadIdx.x == 1) a[n / 2] = 7;
    if (threadIdx.x == 40) a[n / 2 + 1] = 7;
}
""".replace("KERNEL", 'extern "C" __global__ void')

N = 300
_rng = np.random.default_rng(1)
INTEGERS = _rng.integers(0, 1000, N).astype(np.int32)
FLOATS = _rng.standard_normal(N).astype(np.float32)


def zeros(n: int, dtype=np.int32) -> np.ndarray:
    return np.zeros(n, dtype)


LAUNCHES = {
    "hash_": (1, 1, lambda: (zeros(1, np.uint32), 2000)),
    "both_forms": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N)),
    "logarithms": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N)),
    "backwards": (1, 64, lambda: (zeros(64, np.float32), 200)),
    "prefix": (1, 1, lambda: (INTEGERS, zeros(N), N)),
    "horner": (1, 1, lambda: (FLOATS, zeros(2, np.float32), N)),
    "horner_double": (1, 1, lambda: (FLOATS.astype(np.float64), zeros(1, np.float64), N)),
    "sort": (1, 1, lambda: (INTEGERS[:120].copy(), 120)),
    "histogram": (1, 1, lambda: (INTEGERS, zeros(16), N)),
    "local_array": (1, 1, lambda: (INTEGERS, zeros(8), N)),
    "vectors": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N // 4)),
    "bytes": (1, 1, lambda: (INTEGERS.astype(np.uint8), zeros(N, np.uint8), N)),
    "one_of_many": (1, 64, lambda: (INTEGERS, zeros(64), N)),
    "between_barriers": (1, 64, lambda: (INTEGERS[:64].copy(), 64)),
    "variables": (1, 1, lambda: (INTEGERS, zeros(N), N)),
    "triangle": (1, 1, lambda: (zeros(1), 60)),
    "too_far": (1, 1, lambda: (INTEGERS, zeros(2 * N), N)),
    "misaligned": (1, 1, lambda: (zeros(4 * N, np.int8), N)),
    "shared_too_far": (1, 1, lambda: (zeros(1), 70)),
    "shared_unwritten": (1, 1, lambda: (zeros(1), 60)),
    "endless": (1, 1, lambda: (zeros(2), 3)),
    "race_of_writes": (1, 64, lambda: (zeros(N), N)),
    "race_of_reads": (1, 64, lambda: (INTEGERS.copy(), zeros(1), N)),
    "race_of_shared": (1, 64, lambda: (zeros(1), 64)),
    "race_after": (1, 64, lambda: (INTEGERS.copy(), zeros(1), N)),
}
ONE_LANE_ERRORS = {"too_far", "misaligned", "shared_too_far", "shared_unwritten", "endless"} | {
    name for name in LAUNCHES if name.startswith("race")
}
MODES = {
    "all": {},
    "checks off": {"checks": False},
    "nothing": {"checks": False, "counters": False},
    "no races": {"races": False, "trace_events": 100},
    "used reads only": {"used_reads_only": True, "trace_events": 7},
    "pascal": {"scheduling": "pascal", "trace_warps": 1},
}


def at_once(monkeypatch) -> list[bool]:
    """Let everything become machine code at once. Returns whether blocks could run as such, run by run."""
    monkeypatch.setattr(MachineBlocks, "times", 0)
    monkeypatch.setattr(machine_runs, "FEWEST", 1)
    for name in ("_WARM", "_FIRST", "_NEXT", "_EACH", "_WORTH"):
        monkeypatch.setattr(narrow_runs, name, 0)
    ran, runs = machine_runs.MachineRuns._ran, list[bool]()

    def noted(self, *args):
        runs.append(ran(self, *args))
        return runs[-1]

    monkeypatch.setattr(machine_runs.MachineRuns, "_ran", noted)
    return runs


def seen_of(profile) -> dict:
    """All that a profile holds, as values that can be compared."""
    found = {f.name: getattr(profile, f.name) for f in dataclasses.fields(simulator.LaunchProfile) if f.compare}
    found["accesses"] = [
        tuple(v.tolist() if isinstance(v, np.ndarray) else v for v in vars(a).values()) for a in profile.accesses
    ]
    found["accesses"] = [row[:-1] + (row[-3][0] - row[-1],) for row in _relative(found["accesses"])]
    steps = profile.steps
    if steps is not None:
        found["steps"] = steps.complete, [steps.of(*warp) for warp in steps.traced]
    if profile.flow is not None:
        found["flow"] = {k: v for k, v in vars(profile.flow).items() if k != "translation"}
    if profile.reuse is not None:
        found["reuse"] = vars(profile.reuse)
    return found


def _relative(rows: list[tuple]) -> list[tuple]:
    """Addresses as distances from the start of their array, which each launch puts elsewhere."""
    return [(*row[:-3], [a - row[-1] for a in row[-3]], *row[-2:]) for row in rows]


def in_a_loop(body: str, input_types: list[str], output_type: str) -> str:
    """`ptx_of`, for one thread that goes through the elements."""
    text = ptx_of(body, input_types, output_type)
    head, rest = text.split("    mov.u32 %i, %ctaid.x;")
    _, rest = rest.split("    add.u32 %i, %i, %t;")
    rest = rest.replace("ret;", "add.u32 %i, %i, 1;\n    bra LOOP;\nEND:\n    ret;").replace("bra DONE;", "bra END;")
    return f"{head}    mov.u32 %i, 0;\nLOOP:{rest}"
