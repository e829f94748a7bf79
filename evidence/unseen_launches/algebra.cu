// Linear algebra, dense and sparse.

// out = a x, a warp per row.
extern "C" __global__ void gemv_rows(const float *a, const float *x, float *out, int rows, int n)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = lane; i < n; i += 32) sum += a[(size_t)row * n + i] * x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) out[row] = sum;
}

// A product of matrices in FP64 by tiles of 16 x 16 in shared memory; n is a multiple of 16.
extern "C" __global__ void dgemm_tiles(const double *a, const double *b, double *c, int n, int depth)
{
    __shared__ double left[16][16], right[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    double sum = 0.0;
    for (int k = 0; k < depth; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[(size_t)row * depth + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(size_t)(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
    }
    c[(size_t)row * n + column] = sum;
}

// A step of LU outside the panel: every element less its row's factor times the pivot row's.
extern "C" __global__ void rank_one_update(float *a, const float *left, const float *top, int rows, int columns)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < columns && y < rows) a[(size_t)y * columns + x] -= left[y] * top[x];
}

// LU without pivoting of panels of 128 x 32, a block per panel, in shared memory.
extern "C" __global__ void lu_panel(const float *a, float *out)
{
    __shared__ float panel[128][33];
    const float *mine = a + (size_t)blockIdx.x * 128 * 32;
    const int row = threadIdx.x;
    for (int i = row; i < 128 * 32; i += 128) panel[i / 32][i % 32] = mine[i];
    __syncthreads();
    for (int k = 0; k < 32; k++) {
        if (row > k) {
            const float factor = panel[row][k] / panel[k][k];
            panel[row][k] = factor;
            for (int j = k + 1; j < 32; j++) panel[row][j] -= factor * panel[k][j];
        }
        __syncthreads();
    }
    for (int i = row; i < 128 * 32; i += 128) out[(size_t)blockIdx.x * 128 * 32 + i] = panel[i / 32][i % 32];
}

// Sparse matrix times vector, compressed rows, a warp per row.
extern "C" __global__ void spmv_csr(const int *start, const int *column, const float *value, const float *x, float *y,
                                    int rows)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * x[column[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) y[row] = sum;
}

// Small systems with three diagonals by Thomas's algorithm, a thread per system, stored with systems side by side.
extern "C" __global__ void tridiagonal(const float *low, const float *middle, const float *high, const float *right,
                                       float *c, float *x, int n, int systems)
{
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    float before = high[s] / middle[s], value = right[s] / middle[s];
    c[s] = before;
    x[s] = value;
    for (int i = 1; i < n; i++) {
        const size_t at = (size_t)i * systems + s;
        const float m = 1.0f / (middle[at] - low[at] * before);
        before = high[at] * m;
        value = (right[at] - low[at] * value) * m;
        c[at] = before;
        x[at] = value;
    }
    for (int i = n - 2; i >= 0; i--) {
        const size_t at = (size_t)i * systems + s;
        value = x[at] - c[at] * value;
        x[at] = value;
    }
}
