// Stencils: each element from its neighbours.

// One step of Jacobi's iteration for Laplace's equation; the border stays.
extern "C" __global__ void jacobi_2d(const float *a, float *b, int rows, int columns)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= columns - 1 || y >= rows - 1) return;
    const float *p = a + (size_t)y * columns + x;
    b[(size_t)y * columns + x] = 0.25f * (p[-1] + p[1] + p[-columns] + p[columns]);
}

// Heat in three dimensions, seven points, a thread per element.
extern "C" __global__ void heat_3d(const float *a, float *b, int nz, int ny, int nx, float k)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
    const int plane = nx * ny, i = z * plane + y * nx + x;
    const float c = a[i];
    b[i] = c + k * (a[i - 1] + a[i + 1] + a[i - nx] + a[i + nx] + a[i - plane] + a[i + plane] - 6.0f * c);
}

// Eighth order in space: a block marches along z, with the plane in shared memory and the column in registers.
// The volume has a border of 4 on each side; nx and ny are multiples of the block.
extern "C" __global__ void march_3d(const float *a, float *b, int nz, int ny, int nx)
{
    const int R = 4;
    const float w[R + 1] = {-2.5f, 1.6f, -0.2f, 0.025f, -0.0018f};
    __shared__ float tile[16 + 2 * R][32 + 2 * R];
    const int row = nx + 2 * R, plane = row * (ny + 2 * R);
    const int tx = threadIdx.x + R, ty = threadIdx.y + R;
    const int x = blockIdx.x * 32 + tx, y = blockIdx.y * 16 + ty;
    int i = y * row + x;
    float before[R], after[R], here;
    for (int k = 0; k < R; k++) before[R - 1 - k] = a[i + k * plane];
    here = a[i + R * plane];
    for (int k = 0; k < R; k++) after[k] = a[i + (R + 1 + k) * plane];
    i += R * plane;
    for (int z = 0; z < nz; z++) {
        __syncthreads();
        if (threadIdx.y < R) {
            tile[threadIdx.y][tx] = a[i - R * row];
            tile[threadIdx.y + 16 + R][tx] = a[i + 16 * row];
        }
        if (threadIdx.x < R) {
            tile[ty][threadIdx.x] = a[i - R];
            tile[ty][threadIdx.x + 32 + R] = a[i + 32];
        }
        tile[ty][tx] = here;
        __syncthreads();
        float sum = w[0] * here;
        for (int k = 1; k <= R; k++) {
            sum += w[k] * (before[k - 1] + after[k - 1] + tile[ty - k][tx] + tile[ty + k][tx] + tile[ty][tx - k] +
                           tile[ty][tx + k]);
        }
        b[i] = sum;
        for (int k = R - 1; k > 0; k--) before[k] = before[k - 1];
        before[0] = here;
        here = after[0];
        for (int k = 0; k < R - 1; k++) after[k] = after[k + 1];
        if (z + 1 < nz) after[R - 1] = a[i + (R + 1) * plane];
        i += plane;
    }
}
