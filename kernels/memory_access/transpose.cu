// Transpose of a matrix of floats: out[x][y] = in[y][x], in of rows × columns, out of columns × rows, of any size.
// 8 bytes of memory traffic per element and no arithmetic: the limit is a copy.
// Measured: 16384 × 16384, NVIDIA H100 80GB HBM3, 2026-11-21; copy 3002 GB/s. ncu: Nsight Compute, same day.

constexpr int TILE = 32;  // side of a tile
constexpr int STEP = 8;   // rows that a block of 32 × 8 threads moves at a time

// 1. One thread per element: a warp loads 32 neighbours of a row and stores them into a column.
// Expected: 4 sectors per load request, 32 per store request; sectors are written a float at a time: far from the copy.
// Reached: 413 GB/s, 0.14 of the copy. ncu: the L2 cache takes eight times as many sectors as from step 2.
extern "C" __global__ void transpose_naive(const float *in, float *out, int rows, int columns) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < columns && y < rows) {
        out[size_t(x) * rows + y] = in[size_t(y) * columns + x];
    }
}

// 2. A tile of 32 × 32 through shared memory: rows of in are loaded, rows of out are stored.
// Expected: 4 sectors both ways. But a column of the tile lies in one bank: 32 wavefronts per load.
// Reached: 1752 GB/s, 0.58 of the copy. ncu: the way to shared memory is busy for 95 % of the time.
extern "C" __global__ void transpose_tile(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;  // in out
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

// 3. Step 2 with rows of 33 words: the words of a column lie in 32 banks.
// Expected: no conflict; 4 % more shared memory.
// Reached: 2783 GB/s, 0.93 of the copy. ncu: that way is busy for 21 % of the time.
extern "C" __global__ void transpose_padded(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

// 4. Step 2 with column c of row r kept in place c ^ r: for a fixed c the 32 rows give 32 different banks.
// Expected: as step 3, without the unused words.
// Reached: 2776 GB/s, 0.92 of the copy.
extern "C" __global__ void transpose_swizzled(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x ^ (threadIdx.y + k)] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][(threadIdx.y + k) ^ threadIdx.x];
        }
    }
}

constexpr int SIDE = 64;      // of the tiles of steps 5 and 6
constexpr int THREADS = 256;  // a block of steps 5 and 6, in one dimension

// 5. Step 3 with tiles of 64 × 64: 16 elements per thread, loaded before the first is stored. The grid has one
// dimension and runs down the columns of in, so blocks that follow each other continue the same rows of out.
// Expected: four times the bytes in flight for each thread, and 256 bytes in a row where there were 128.
// Reached: 2893 GB/s, 0.96 of the copy.
extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_large(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[SIDE][SIDE + 1];
    const int down = (rows - 1) / SIDE + 1;
    const int row = blockIdx.x % down * SIDE, column = blockIdx.x / down * SIDE;  // of in, where the tile starts
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / SIDE) {
        if (column + x < columns && row + y + k < rows) {
            tile[y + k][x] = in[size_t(row + y + k) * columns + column + x];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / SIDE) {
        if (row + x < rows && column + y + k < columns) {
            out[size_t(column + y + k) * rows + row + x] = tile[x][y + k];
        }
    }
}

// 6. Step 5 with 16 bytes per access. Each thread loads 4 × 4 elements, transposes them in its registers and stores
// four float4 into the tile, swizzled as in step 4. Rows and columns are multiples of 4, addresses multiples of 16.
// Expected: a quarter of the requests and of the wavefronts; some bandwidth, if requests still cost any.
// Reached: 2916 GB/s, 0.97 of the copy; 0.89 for 16380 × 20004, whose rows start inside sectors. Step 5 reaches 0.71
// for 16381 × 20011, two primes.
// Tried and left out: tiles of 32 × 128 to 128 × 32 in step 5 (at most 0.94), tiles in groups of 4 to 16 rows (0.96),
// loads and stores with cache hints (0.96).
extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_float4(const float *in, float *out, int rows, int columns) {
    constexpr int VECTORS = SIDE / 4;  // in a row of the tile
    __shared__ float4 tile[SIDE][VECTORS];
    const int down = (rows - 1) / SIDE + 1;
    const int row = blockIdx.x % down * SIDE, column = blockIdx.x / down * SIDE;
    const int x = threadIdx.x % VECTORS, y = threadIdx.x / VECTORS;
    if (row + 4 * y < rows && column + 4 * x < columns) {
        float4 a[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            a[k] = *reinterpret_cast<const float4 *>(in + size_t(row + 4 * y + k) * columns + column + 4 * x);
        }
        tile[4 * x][y ^ x] = make_float4(a[0].x, a[1].x, a[2].x, a[3].x);
        tile[4 * x + 1][y ^ x] = make_float4(a[0].y, a[1].y, a[2].y, a[3].y);
        tile[4 * x + 2][y ^ x] = make_float4(a[0].z, a[1].z, a[2].z, a[3].z);
        tile[4 * x + 3][y ^ x] = make_float4(a[0].w, a[1].w, a[2].w, a[3].w);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / VECTORS) {
        const int r = y + k;  // of the tile, and of out from `column` on
        if (row + 4 * x < rows && column + r < columns) {
            *reinterpret_cast<float4 *>(out + size_t(column + r) * rows + row + 4 * x) = tile[r][x ^ (r / 4)];
        }
    }
}
