// Patterns of global memory, one experiment each: strides and offsets, structures, bytes in flight, working sets.
// A warp's load is one request; it costs as many 32-byte sectors as its 32 addresses touch: at best 4 for floats.
// Measured: NVIDIA H100 80GB HBM3, 2026-11-21. GB/s count the bytes that the task needs, not those that are moved.

// Strides and offsets. out[i] = in[i * stride + offset]: the loads step through memory, the stores do not.
// Sectors a load request: 4 for stride 1, 8 for 2, 16 for 4, 32 from 8 on; 5 where a warp does not start on a sector.
// Reached with 2^25 floats: 2318 GB/s with stride 1, 1231 with 4, 684 with 8, 359 with 16, 329 with 32. It falls beyond
// stride 8, where no request has more sectors: memory moves two sectors at a time. With offset 1: 0.97 of offset 0.
extern "C" __global__ void copy_strided(const float *in, float *out, size_t n, int stride, int offset) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i * stride + offset];
    }
}

// An array of structures (aos) against a structure of arrays (soa): four floats per point.
struct Point {
    float x, y, z, w;
};

// One field of an array of structures: neighbouring threads are 16 bytes apart, 16 sectors per request, and three
// quarters of every sector are fetched for nothing.
// Reached: 1242 GB/s.
extern "C" __global__ void aos_field(const Point *points, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = points[i].x * points[i].x;
    }
}

// The same field of a structure of arrays: 4 sectors per request, all of them used.
// Reached: 2378 GB/s.
extern "C" __global__ void soa_field(const float *x, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] * x[i];
    }
}

// All fields of an array of structures: four requests of 16 sectors. They are the same sectors, so the L1 cache serves
// all requests but one, as long as the lines stay in it.
// Reached: 3104 GB/s.
extern "C" __global__ void aos_norm(const Point *points, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        const Point p = points[i];
        out[i] = p.x * p.x + p.y * p.y + p.z * p.z + p.w * p.w;
    }
}

// The same, one load of 16 bytes per thread: one request of 16 sectors, all used. Addresses are multiples of 16.
// Reached: 3106 GB/s.
extern "C" __global__ void aos_norm_float4(const float4 *points, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        const float4 p = points[i];
        out[i] = p.x * p.x + p.y * p.y + p.z * p.z + p.w * p.w;
    }
}

// All fields of a structure of arrays: `points` holds n x, then n y, n z and n w. Four requests of 4 sectors.
// Reached: 3100 GB/s.
extern "C" __global__ void soa_norm(const float *points, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        const float x = points[i], y = points[i + n], z = points[i + 2 * n], w = points[i + 3 * n];
        out[i] = x * x + y * y + z * z + w * w;
    }
}

// Bytes in flight. A copy by a grid as large as fits on the GPU at once, or smaller: each thread has ITEMS loads
// under way before it stores the first. Little's law: bandwidth = bytes in flight / latency, until memory is full.
// Reached with 2^27 floats:
// 331 GB/s with 512 bytes in flight per multiprocessor, 2853 with 16 KiB, no more with 128 KiB.
template <typename T, int ITEMS> __global__ void copy_in_flight(const T *in, T *out, size_t n) {
    const size_t threads = size_t(gridDim.x) * blockDim.x;
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (ITEMS - 1) * threads < n; i += ITEMS * threads) {
        T items[ITEMS];
        for (int k = 0; k < ITEMS; k++) {
            items[k] = in[i + k * threads];
        }
        for (int k = 0; k < ITEMS; k++) {
            out[i + k * threads] = items[k];
        }
    }
    for (; i < n; i += threads) {
        out[i] = in[i];
    }
}

// Working sets. Every thread makes `loads` loads of 16 bytes that together pass over in[0 .. n) again and again;
// __ldcg keeps them out of the L1 caches, so they are served by the L2 cache or by memory. out: a sum per thread.
// Reached: 8019 GB/s for 8 MiB, 7323 for 40 MiB, 3083 for 1 GiB; the L2 cache has 50 MiB.
extern "C" __global__ void read_again(const float4 *in, unsigned n, int loads, float *out) {
    const unsigned threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned step = threads % n;
    unsigned i = thread % n;
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < loads; k++) {
        const float4 v = __ldcg(in + i);
        sum += (v.x + v.y) + (v.z + v.w);
        i += step;
        i -= i >= n ? n : 0;
    }
    out[thread] = sum;
}

// Latency. One thread follows a chain of indices from `at` on; each load waits for the one before.
// Measured: 22 ns in the L1 cache, 144 ns in the L2 cache (1 MiB), 353 ns in memory (1 GiB).
extern "C" __global__ void chase(const unsigned *next, unsigned at, int steps, unsigned *end) {
    for (int k = 0; k < steps; k++) {
        at = next[at];
    }
    *end = at;
}
