// Divergence that comes from the data: each thread has a task, and no two tasks need the same number of passes.
//
// A warp is busy until its longest task ends, so its efficiency is about the mean of its tasks' passes over their
// maximum. Cures: neighbours with tasks of similar length (a sort; tiles in place of rows of an image), a whole warp for
// one task, or a queue from which a lane that is done takes its next task.
// Compiled with --fmad=false, so that the results are NumPy's bit by bit.
// Measured: NVIDIA H100 80GB HBM3, 2026-11-21; warp efficiencies are the simulator's.

constexpr unsigned ALL = 0xffffffff;

// 1. The plain case: task order[i] needs trips[order[i]] passes.
// Expected: efficiency = mean / maximum of the trips in a warp; sorted by trips, close to 1.
extern "C" __global__ void uneven(const int *trips, const int *order, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const int task = order[i];
        const int passes = trips[task];
        float y = 0;
#pragma unroll 1
        for (int k = 0; k < passes; k++) y = 0.5f * y + 1;
        out[task] = y;
    }
}

// 2. Collatz: how often n -> n / 2 (even) or 3 n + 1 (odd) until 1, for n = first + order[i].
// Expected: neighbours have different lengths, so about half the lanes idle; sorted by length, hardly any. The sort has
// to know the lengths, which only pays where they are known from before, or where the order is used again and again.
// Reached, 2^22 numbers from 2^20 on: neighbours 742.7 µs, efficiency 0.614; sorted
// 446.9 µs, efficiency 1.000, and 256.3 µs for the sort.
extern "C" __global__ void collatz(unsigned first, const int *order, int *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const int task = order[i];
        unsigned long long value = first + task;
        int steps = 0;
        while (value != 1) {
            value = value % 2 ? 3 * value + 1 : value / 2;
            steps++;
        }
        out[task] = steps;
    }
}

// A queue of the tasks 0, 1, 2, ... A warp takes `chunk` of them at a time (one atomic) and deals them out to its lanes
// as they ask. chunk >= 32.
struct Queue {
    unsigned *next, chunk;
    unsigned begin = 0, end = 0;  // what the warp has taken and not yet dealt out

    // A task for each lane that wants one; called by all lanes of the warp.
    __device__ unsigned take(bool wanted, unsigned task) {
        const unsigned lane = threadIdx.x % 32, lanes = __ballot_sync(ALL, wanted);
        const unsigned number = __popc(lanes), rank = __popc(lanes & ((1u << lane) - 1));
        const unsigned left = end - begin;
        unsigned mine = begin + rank;
        begin += number;
        if (number > left) {  // the same for all lanes
            unsigned fresh = lane == 0 ? atomicAdd(next, chunk) : 0;
            fresh = __shfl_sync(ALL, fresh, 0);
            if (rank >= left) mine = fresh + (rank - left);
            begin = fresh + (number - left);
            end = fresh + chunk;
        }
        return wanted ? mine : task;
    }
};

// 3. Collatz from a queue: a lane that has done takes another number, while the others go on with theirs. The warp
// looks for such lanes every PASSES passes only, since the dealing costs as much as some passes.
// Expected: an efficiency near 1 without knowing the lengths, for a few more instructions per pass.
// Reached: 517.4 µs, efficiency 0.997.
// Tried and slower than no queue (826 µs): an atomic for the lanes that ask together, not for `chunk` tasks.
constexpr int PASSES = 16;

extern "C" __global__ void collatz_queue(unsigned first, unsigned *next, unsigned chunk, int *out, unsigned n) {
    Queue queue = {next, chunk};
    unsigned task = queue.take(true, 0);
    unsigned long long value = first + task;
    int steps = 0;
    while (__any_sync(ALL, task < n)) {
#pragma unroll
        for (int k = 0; k < PASSES; k++) {  // no branch: a lane that has done passes its value on
            const bool busy = value != 1;
            const unsigned long long following = value % 2 ? 3 * value + 1 : value / 2;
            value = busy ? following : value;
            steps += busy;
        }
        const bool done = value == 1;
        if (__any_sync(ALL, done)) {
            if (done && task < n) out[task] = steps;
            task = queue.take(done, task);
            if (done) {
                value = first + task;
                steps = 0;
            }
        }
    }
}

// 4. Mandelbrot set: passes of z -> z * z + c until |z| >= 2, at most `limit`, for a pixel of the plane.
// The block's shape decides which pixels share a warp: with blocks of 32 x 8 a piece of a row, with 8 x 32 a tile of
// 8 x 4. Expected: lengths vary little from pixel to pixel except at the edge of the set, and a tile of 32 pixels meets
// the edge less often than a row of 32.
// Reached, SPIRAL of tasks.py, 2048 x 2048, limit 1000: rows 831.5 µs, efficiency 0.530;
// tiles 775.3 µs, efficiency 0.604.
__device__ bool inside(float re, float im) { return re * re + im * im < 4.0f; }

extern "C" __global__ void mandelbrot(int *out, int width, int height, int limit, float left, float bottom,
                                      float step) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        const float c_re = left + step * x, c_im = bottom + step * y;
        float re = 0, im = 0;
        int k = 0;
        while (k < limit && inside(re, im)) {
            const float next = re * re - im * im + c_re;
            im = 2.0f * re * im + c_im;
            re = next;
            k++;
        }
        out[y * width + x] = k;
    }
}

// 5. The same from a queue, as in step 3; pixels are taken in the order of the rows.
// Expected: a lane never waits for the longest pixel of its warp.
// Reached: 603.1 µs, efficiency 0.932.
extern "C" __global__ void mandelbrot_queue(unsigned *next, unsigned chunk, int *out, int width, int height, int limit,
                                            float left, float bottom, float step) {
    const unsigned pixels = width * height;
    Queue queue = {next, chunk};
    unsigned pixel = queue.take(true, 0);
    float c_re = left + step * (pixel % width), c_im = bottom + step * (pixel / width);
    float re = 0, im = 0;
    int k = 0;
    while (__any_sync(ALL, pixel < pixels)) {
        bool busy;
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            busy = k < limit && inside(re, im);
            const float next_re = re * re - im * im + c_re, next_im = 2.0f * re * im + c_im;
            re = busy ? next_re : re;
            im = busy ? next_im : im;
            k += busy;
        }
        if (__any_sync(ALL, !busy)) {
            if (!busy && pixel < pixels) out[pixel] = k;
            pixel = queue.take(!busy, pixel);
            if (!busy) {
                c_re = left + step * (pixel % width), c_im = bottom + step * (pixel / width);
                re = im = 0;
                k = 0;
            }
        }
    }
}

// 6. Sums of rows of different lengths: row r is value[start[r]] to value[start[r + 1] - 1]. One thread per row.
// Expected: a warp takes as long as its longest row, and its lanes read 32 places far apart: a sector each.
// Reached, 2^20 rows, most of them short: 261.2 µs, efficiency 0.095.
extern "C" __global__ void row_sums_thread(const int *start, const int *value, int *out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        int sum = 0;
        for (int k = start[row]; k < start[row + 1]; k++) sum += value[k];
        out[row] = sum;
    }
}

// 7. One warp per row: its lanes read 32 neighbours at a time, and their sums are added by shuffles.
// Expected: lanes idle only in the last pass of a row, so long rows are efficient; neighbours share sectors.
// Reached: 197.3 µs, efficiency 0.792.
extern "C" __global__ void row_sums_warp(const int *start, const int *value, int *out, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row < rows) {  // the same for all lanes
        const int end = start[row + 1];
        int sum = 0;
        for (int k = start[row] + lane; k < end; k += 32) sum += value[k];
        for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(ALL, sum, k);
        if (lane == 0) out[row] = sum;
    }
}
