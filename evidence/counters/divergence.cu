// Patterns of branches: how many of a warp's 32 lanes are active, instruction by instruction.

__device__ float work(float x, int steps) {
    for (int k = 0; k < steps; k++) x = x * 0.5f + sqrtf(x);
    return x;
}

__global__ void uniform(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work(in[i], steps);
}

__global__ void branch_by_lane(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (i % 2) {
        for (int k = 0; k < steps; k++) x = x * 0.5f + sqrtf(x);
    } else {
        for (int k = 0; k < steps; k++) x = x * 0.25f - sinf(x);
    }
    out[i] = x;
}

__global__ void branch_by_warp(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (i / 32 % 2) {
        for (int k = 0; k < steps; k++) x = x * 0.5f + sqrtf(x);
    } else {
        for (int k = 0; k < steps; k++) x = x * 0.25f - sinf(x);
    }
    out[i] = x;
}

// One lane of 32 does all the work.
__global__ void one_lane(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (i % 32 == 7) x = work(x, steps);
    out[i] = x;
}

__global__ void nested(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (i & 1) {
        x = work(x, steps);
        if (i & 2) {
            x = work(x + 1.0f, steps);
            if (i & 4) x = work(x + 2.0f, steps);
        }
    }
    out[i] = x;
}

// A few instructions under a condition: ptxas predicates them, so there is no branch.
__global__ void short_condition(const float *in, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (i % 2) x = 2.0f * x + 1.0f;
    if (i % 3 == 0) x -= 3.0f;
    out[i] = x;
}

__global__ void trips_by_lane(const float *in, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work(in[i], threadIdx.x % 32);
}

__global__ void trips_from_data(const float *in, const int *trips, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work(in[i], trips[i]);
}

__global__ void early_return(const float *in, float *out, int steps, int active) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 32 >= active) return;
    out[i] = work(in[i], steps);
}

__global__ void switch_by_lane(const float *in, float *out, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    switch (i % 4) {
    case 0: x = work(x, steps); break;
    case 1: for (int k = 0; k < steps; k++) x = cosf(x) + 1.0f; break;
    case 2: for (int k = 0; k < steps; k++) x = sqrtf(x + 3.0f); break;
    default: for (int k = 0; k < steps; k++) x = 1.0f / (x + 1.0f);
    }
    out[i] = x;
}

__global__ void collatz(int *out, int first) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned n = first + i;
    int steps = 0;
    while (n != 1) {
        if (n % 2) n = 3 * n + 1;
        else n /= 2;
        steps++;
    }
    out[i] = steps;
}

__global__ void mandelbrot(int *out, int width, int height, int limit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float cr = -2.2f + 3.2f * x / width, ci = -1.2f + 2.4f * y / height;
    float zr = 0, zi = 0;
    int k = 0;
    while (k < limit && zr * zr + zi * zi < 4.0f) {
        const float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        k++;
    }
    out[y * width + x] = k;
}

__global__ void binary_search(const int *sorted, const int *wanted, int *out, int n, int m) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

__global__ void gcd(const int *a, const int *b, int *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i], y = b[i];
    while (y != 0) {
        const unsigned rest = x % y;
        x = y;
        y = rest;
    }
    out[i] = x;
}

// A loop with `continue` and `break` by lane.
__global__ void search(const int *in, int *out, int n, int wanted) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int found = -1;
    for (int k = 0; k < n; k++) {
        const int x = in[(i + 7 * k) % n];
        if (x % 2) continue;
        if (x == wanted + i % 5) {
            found = k;
            break;
        }
    }
    out[i] = found;
}

// Rows of a sparse matrix, one thread per row: rows have different lengths.
__global__ void csr_rows(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const int end = start[row + 1];
        float sum = 0;
        for (int k = start[row]; k < end; k++) sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}

__global__ void csr_rows_not_unrolled(const int *start, const int *column, const float *value, const float *x, float *y,
                                      int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const int end = start[row + 1];
        float sum = 0;
#pragma unroll 1
        for (int k = start[row]; k < end; k++) sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}
