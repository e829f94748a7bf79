"""Small kernels of which it can be said by hand how often each machine instruction runs."""

CODE = r"""
extern "C" __global__ void straight(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" __global__ void early_exit(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = 2.0f * x[i];
}
extern "C" __global__ void divergent(const int *x, int *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = x[i];
    if (v & 1) {
        #pragma unroll 1
        for (int k = 0; k < 5; k++) v = v * 3 + y[i];
        y[i] = v;
    } else {
        y[i + 1024] = v;
    }
}
extern "C" __global__ void predicated(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (i % 3 == 0) y[i] = v;
    y[i + 1024] = v + 1.0f;
}
extern "C" __global__ void rolled(const float *x, float *y, int n) {
    float s = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) s += x[k * 32 + threadIdx.x];
    y[threadIdx.x] = s;
}
extern "C" __global__ void unrolled(const float *x, float *y, int n) {
    float s = 0;
    #pragma unroll 4
    for (int k = 0; k < n; k++) s += x[k * 32 + threadIdx.x];
    y[threadIdx.x] = s;
}
extern "C" __global__ void unrolled_again(const float *x, float *y, int n) {
    float s = 0;
    for (int k = 0; k < n; k++) s += x[k];
    y[threadIdx.x] = s;
}
extern "C" __global__ void by_lane(const int *trips, int *y) {
    int a = trips[threadIdx.x], s = 1;
    #pragma unroll 1
    for (int k = 0; k < a; k++) s = s * 5 + y[threadIdx.x];
    y[threadIdx.x] = s;
}
extern "C" __global__ void root(const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = sqrtf(x[i]) / x[i + 32];
}
__device__ __noinline__ float twice(float x) { return x + x * x; }
extern "C" __global__ void call(const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = twice(x[i]) + twice(x[i + 32]);
}
"""
_NAMES = "straight early_exit divergent predicated rolled unrolled unrolled_again by_lane root call"
NAMES = tuple(_NAMES.split())
