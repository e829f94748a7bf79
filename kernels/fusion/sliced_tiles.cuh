// The matrix product of a CBR on ordinary cores: pixels × depth by depth × filters, for layers from a few hundred
// results on. A block computes BM × BN of them, a thread TM × TN.
//
// SLICES: the threads of a block are so many groups, and each takes every SLICES-th 16 deep chunk of the same tile; in
// the end their sums are added, always in the same order. A layer of one image has few tiles and a long depth: slices
// give a multiprocessor warps where tiles do not, and shorten the chain of loads and waits that is the layer's time.
//
// ALONG_DEPTH: lanes that bring x go along the depth (r, s, c), for NHWC, where channels lie side by side; else along
// the pixels, for NCHW. Filters lie as depth × K: lanes go along K. Results pass through shared memory, so that lanes
// write along what lies side by side in y.
#pragma once
#include "cbr.cuh"

constexpr int BK = 16;  // depth of a chunk

template <int BM_, int BN_, int TM_, int TN_, int SLICES_, bool ALONG_DEPTH_> struct Tiles {
    static constexpr int BM = BM_, BN = BN_, TM = TM_, TN = TN_, SLICES = SLICES_;
    static constexpr int ROWS = BM / TM, COLUMNS = BN / TN;  // threads of a group, along pixels and along filters
    static constexpr int GROUP = ROWS * COLUMNS, THREADS = GROUP * SLICES;
    static constexpr bool ALONG_DEPTH = ALONG_DEPTH_;
    static constexpr int LINE = BM + ALONG_DEPTH;  // one more word: lanes that store along the depth meet 32 banks
    static constexpr int PITCH = BN + 1;           // likewise of results, for lanes that read along the pixels
    static constexpr int CHUNK = BK * (LINE + BN), RESULT = BM * PITCH;  // words of a group
    static constexpr int SHARED = SLICES * (CHUNK > RESULT ? CHUNK : RESULT);
    static_assert(BM % TM == 0 && BN % TN == 0, "a thread has whole rows and columns");
    static_assert(GROUP % BM == 0 && GROUP % BN == 0 && GROUP % BK == 0, "a group loads whole lines at a time");
    static_assert(SHARED * 4 <= 48 * 1024, "static shared memory");
};

// sum += a * b, for float32 and for four INT8 in a word.
__device__ __forceinline__ void multiply_add(float &sum, float a, float b) { sum = fmaf(a, b, sum); }
__device__ __forceinline__ void multiply_add(int &sum, int a, int b) { sum = __dp4a(a, b, sum); }

// An element as it is multiplied: float, or a word of four INT8.
template <class V> struct As;
template <> struct As<float> {
    template <class X> __device__ __forceinline__ static float from(X value) { return to_float(value); }
};
template <> struct As<int> {
    __device__ __forceinline__ static int from(int value) { return value; }
};

struct Tap {
    int h, w, offset;  // rows and columns into the window, and the element there relative to the window's first
    __device__ __forceinline__ Tap(int depth, const Cbr &g) {
        const int tap = depth / g.c, c = depth - tap * g.c, r = tap / g.s, down = r * g.dilation_h;
        h = depth < g.depth ? down : OUTSIDE;
        w = (tap - r * g.s) * g.dilation_w;
        offset = down * g.x.row + w * g.x.column + c * g.x.channel;
    }
};

struct Start {
    int h, w, offset;
    __device__ __forceinline__ Start(int pixel, const Cbr &g) {
        const Window window = window_of(pixel, g);
        h = pixel < g.pixels ? window.h : OUTSIDE;
        w = window.w;
        offset = g.x.at(window.n, 0, window.h, w);
    }
};

// What a thread brings of a chunk of x: COPIES elements, of several pixels at one depth, or of one pixel at several
// depths.
template <class T, class V> struct PixelChunk {
    static constexpr bool ALONG_DEPTH = T::ALONG_DEPTH;
    static constexpr int LANES = ALONG_DEPTH ? BK : T::BM, STEP = T::GROUP / LANES, COPIES = T::BM * BK / T::GROUP;
    static constexpr int STARTS = ALONG_DEPTH ? COPIES : 1;
    int lane, line;
    int h[STARTS], w[STARTS], offset[STARTS];
    V value[COPIES];

    __device__ __forceinline__ PixelChunk(int thread, int first_pixel, const Cbr &g)
        : lane(thread % LANES), line(thread / LANES) {
#pragma unroll
        for (int i = 0; i < STARTS; i++) {
            const Start start(first_pixel + (ALONG_DEPTH ? line + i * STEP : lane), g);
            h[i] = start.h, w[i] = start.w, offset[i] = start.offset;
        }
    }
    template <class X> __device__ __forceinline__ void load(const X *x, int depth, const Cbr &g) {
        Tap tap(depth + (ALONG_DEPTH ? lane : line), g);
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            if (!ALONG_DEPTH && i > 0) tap = Tap(depth + line + i * STEP, g);
            const int j = ALONG_DEPTH ? i : 0;
            const bool inside = unsigned(h[j] + tap.h) < unsigned(g.h) && unsigned(w[j] + tap.w) < unsigned(g.w);
            value[i] = inside ? As<V>::from(x[offset[j] + tap.offset]) : V(0);
        }
    }
    __device__ __forceinline__ void store(V *shared) const {
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            const int depth = ALONG_DEPTH ? lane : line + i * STEP, pixel = ALONG_DEPTH ? line + i * STEP : lane;
            shared[depth * T::LINE + pixel] = value[i];
        }
    }
};

template <class T, class V> struct FilterChunk {
    static constexpr int STEP = T::GROUP / T::BN, COPIES = T::BN * BK / T::GROUP;
    int column, line, filter;
    V value[COPIES];

    __device__ __forceinline__ FilterChunk(int thread, int first_filter)
        : column(thread % T::BN), line(thread / T::BN), filter(first_filter + column) {}
    template <class X> __device__ __forceinline__ void load(const X *w, int depth, const Cbr &g) {
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            const int d = depth + line + i * STEP;
            value[i] = d < g.depth && filter < g.k ? As<V>::from(w[d * g.k + filter]) : V(0);
        }
    }
    __device__ __forceinline__ void store(V *shared) const {
#pragma unroll
        for (int i = 0; i < COPIES; i++) shared[(line + i * STEP) * T::BN + column] = value[i];
    }
};

// The block's tile, through the epilogue. V: what elements are multiplied and summed as. ALONG_FILTERS: y is NHWC.
template <class T, class V, bool ALONG_FILTERS, class X, class R>
__device__ __forceinline__ void sliced_product(const X *x, const X *w, const Cbr &g, const Epilogue<R> &epilogue) {
    __shared__ V shared[T::SHARED];
    const int slice = threadIdx.x / T::GROUP, thread = threadIdx.x % T::GROUP;
    const int filter_tiles = (g.k - 1) / T::BN + 1;
    const int first_filter = blockIdx.x % filter_tiles * T::BN, first_pixel = blockIdx.x / filter_tiles * T::BM;
    const int row = thread / T::COLUMNS, column = thread % T::COLUMNS;
    V *const pixels = shared + slice * T::CHUNK, *const filters = pixels + BK * T::LINE;

    Results<T::BM, T::BN, T::THREADS, ALONG_FILTERS, R> written(epilogue, first_filter, first_pixel, g);
    PixelChunk<T, V> of_x(thread, first_pixel, g);
    FilterChunk<T, V> of_w(thread, first_filter);
    V sum[T::TM][T::TN] = {};
    of_x.load(x, slice * BK, g);
    of_w.load(w, slice * BK, g);
    for (int start = 0; start < g.depth; start += T::SLICES * BK) {  // as often for each slice; past the end are zeros
        of_x.store(pixels);
        of_w.store(filters);
        __syncthreads();
        if (start + T::SLICES * BK < g.depth) {  // on their way while the products of these are computed
            of_x.load(x, start + (T::SLICES + slice) * BK, g);
            of_w.load(w, start + (T::SLICES + slice) * BK, g);
        }
#pragma unroll
        for (int d = 0; d < BK; d++) {
            V a[T::TM], b[T::TN];
#pragma unroll
            for (int i = 0; i < T::TM; i++) a[i] = pixels[d * T::LINE + row + i * T::ROWS];
#pragma unroll
            for (int j = 0; j < T::TN; j++) b[j] = filters[d * T::BN + column + j * T::COLUMNS];
#pragma unroll
            for (int i = 0; i < T::TM; i++) {
#pragma unroll
                for (int j = 0; j < T::TN; j++) multiply_add(sum[i][j], a[i], b[j]);
            }
        }
        __syncthreads();
    }

    V *const results = shared + slice * T::RESULT;
#pragma unroll
    for (int i = 0; i < T::TM; i++) {
#pragma unroll
        for (int j = 0; j < T::TN; j++) {
            results[(row + i * T::ROWS) * T::PITCH + column + j * T::COLUMNS] = sum[i][j];
        }
    }
    __syncthreads();
    written.write([&](int m, int n) {
        V total = shared[m * T::PITCH + n];
#pragma unroll
        for (int j = 1; j < T::SLICES; j++) total += shared[j * T::RESULT + m * T::PITCH + n];
        return float(total);
    });
}
