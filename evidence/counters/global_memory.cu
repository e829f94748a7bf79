// Patterns of global memory: what a warp's 32 addresses cost in requests and 32-byte sectors.

// Element i * stride + offset of both arrays, for every width of an access (T of 1, 2, 4, 8 and 16 bytes).
template <typename T> __global__ void copy_strided(const T *in, T *out, int n, int stride, int offset) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i * stride + offset] = in[i * stride + offset];
    }
}

template <typename T> __global__ void gather(const T *in, const int *index, T *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[index[i]];
    }
}

template <typename T> __global__ void scatter(const T *in, const int *index, T *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[index[i]] = in[i];
    }
}

__global__ void broadcast(const float *in, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[blockIdx.x];
    }
}

__global__ void reverse(const float *in, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[n - 1 - i] = in[i];
    }
}

__global__ void saxpy_grid_stride(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = a * x[i] + y[i];
    }
}

// An array of structures against a structure of arrays.
struct Point {
    float x, y, z;
};
struct __align__(16) Pixel {
    float r, g, b, a;
};

__global__ void aos_one_field(const Point *p, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = p[i].x;
    }
}

__global__ void aos_norm(const Point *p, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z;
    }
}

__global__ void aos_scale(Point *p, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i].x *= factor;
        p[i].y *= factor;
        p[i].z *= factor;
    }
}

__global__ void aos_aligned(const Pixel *p, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const Pixel q = p[i];
        out[i] = q.r + q.g + q.b + q.a;
    }
}

__global__ void soa_norm(const float *x, const float *y, const float *z, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] * x[i] + y[i] * y[i] + z[i] * z[i];
    }
}

// Rows and columns of an n × n matrix.
__global__ void row_sums(const float *a, float *out, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[row * n + k];
        out[row] = sum;
    }
}

__global__ void column_sums(const float *a, float *out, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < n) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[k * n + column];
        out[column] = sum;
    }
}

__global__ void transpose_naive(const float *in, float *out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) {
        out[x * n + y] = in[y * n + x];
    }
}

__global__ void stencil(const float *in, float *out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= 1 && x < n - 1 && y >= 1 && y < n - 1) {
        const int i = y * n + x;
        out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
    }
}

__global__ void matmul_naive(const float *a, const float *b, float *c, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
        c[y * n + x] = sum;
    }
}

// An array indexed at run time lies in local memory.
__global__ void local_array(const float *in, const int *index, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const int first = index[i];
        float a[64];
        for (int k = 0; k < 64; k++) a[(first + k) & 63] = k;
        float sum = in[i];
        for (int k = 0; k < 3; k++) sum += a[(first * k) & 63];
        out[i] = sum;
    }
}

__constant__ float weights[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

__global__ void constant_uniform(const float *in, float *out, int n, int terms) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0;
        for (int k = 0; k < terms; k++) sum = sum * in[i] + weights[k];
        out[i] = sum;
    }
}

__global__ void constant_by_lane(const float *in, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i] * weights[i & 15];
    }
}
