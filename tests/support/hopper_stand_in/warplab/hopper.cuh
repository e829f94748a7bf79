// Stands in for <warplab/hopper.cuh> where there is no Hopper: the same functions for the simulator. Barriers are real.
// A load by TMA only notes in shared memory which part of which tensor lies where, which takes one thread less time than
// to copy it; wgmma is mma.sync on what its descriptors lead to, by way of these notes. So notes are written and read
// when and by whom tiles would be. A cluster is one block.
#pragma once
#include <warplab/shared_layout.cuh>

struct alignas(128) TensorMap {
    unsigned char *tensor;
    int item, lines;               // bytes of an element; lines of a box
    int extents[4], strides[4];    // elements; the axis along the lines first
    int first[2], positions[2];    // of a window of pixels, down and right; no positions: a box
    int steps[2];
};

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void group_sync(int number) {
    asm volatile("barrier.sync.aligned %0, 128;" ::"r"(number) : "memory");
}

template <int THREADS>
__device__ __forceinline__ void threads_sync(int number) {
    asm volatile("barrier.sync.aligned %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

__device__ __forceinline__ void let_next_kernel_start() {}

__device__ __forceinline__ void wait_for_kernel_before() {}

template <int REGISTERS>
__device__ __forceinline__ void give_registers() {}

template <int REGISTERS>
__device__ __forceinline__ void take_registers() {}

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void fence_barrier_init() {}

__device__ __forceinline__ void barrier_arrive(unsigned barrier, unsigned) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    barrier_arrive(barrier, 0);
}

__device__ __forceinline__ void store_there(unsigned, unsigned, float4) {
    __trap();
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.b32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

// Bytes that the loading thread has announced and not brought yet. The arrival comes with the last of them: so a sum
// that is not that of the boxes hangs, as it does on a GPU.
__device__ __forceinline__ unsigned &to_come() {
    __shared__ unsigned bytes;
    return bytes;
}

__device__ __forceinline__ void barrier_expect(unsigned, unsigned bytes) {
    to_come() = bytes;
}

// What lies in 1024 bytes of shared memory, eight lines of a box: part of the map, and where its first line is.
struct Lines {
    const half *tensor;
    int extents[4], strides[4], first[2], positions[2], steps[2];
    int at[4];  // of the first line: for a box its coordinates, for pixels channel, pixel, right, down
};

__device__ __forceinline__ Lines &lines_at(unsigned address) {
    __shared__ Lines lines[256];
    return lines[address / 1024 % 256];  // a block has less than 256 KiB, which start anywhere in the simulator
}

// Notes a box or a column of pixels. `along`: the coordinate that a line adds to.
__device__ __forceinline__ void note(unsigned to, const TensorMap &map, int a, int b, int c, int d, int along,
                                     unsigned barrier) {
    for (int line = 0; line < map.lines; line += 8) {
        Lines &lines = lines_at(to + line * 128);
        lines.tensor = reinterpret_cast<const half *>(map.tensor);
        for (int i = 0; i < 4; i++) {
            lines.extents[i] = map.extents[i];
            lines.strides[i] = map.strides[i];
        }
        for (int i = 0; i < 2; i++) {
            lines.first[i] = map.first[i];
            lines.positions[i] = map.positions[i];
            lines.steps[i] = map.steps[i];
        }
        lines.at[0] = a;
        lines.at[1] = b + (along == 1 ? line : 0);
        lines.at[2] = c + (along == 2 ? line : 0);
        lines.at[3] = d;
    }
    to_come() -= map.lines * 128;
    if (to_come() == 0) {
        barrier_arrive(barrier, 0);
    }
}

__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int column, int row, unsigned barrier) {
    note(to, map, column, 0, row, 0, 2, barrier);
}

__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int x, int y, int z, unsigned barrier) {
    note(to, map, x, y, z, 0, 2, barrier);
}

// Number of the position (image, row, column) of a map's window.
__device__ __forceinline__ int pixel_of(const TensorMap &map, int column, int row, int image) {
    const int down = (row - map.first[0]) / map.steps[0], right = (column - map.first[1]) / map.steps[1];
    return (image * map.positions[0] + down) * map.positions[1] + right;
}

__device__ __forceinline__ void load_pixels(unsigned to, const TensorMap &map, int channel, int column, int row,
                                            int image, unsigned short right, unsigned short down, unsigned barrier) {
    note(to, map, channel, pixel_of(map, column, row, image), right, down, 1, barrier);
}

__device__ __forceinline__ void load_box_for(unsigned short, unsigned, const TensorMap &, int, int, unsigned) {
    __trap();
}

__device__ __forceinline__ void load_box_for(unsigned short, unsigned, const TensorMap &, int, int, int, unsigned) {
    __trap();
}

__device__ __forceinline__ void load_pixels_for(unsigned short, unsigned, const TensorMap &, int, int, int, int,
                                                unsigned short, unsigned short, unsigned) {
    __trap();
}

__device__ __forceinline__ void prefetch_map(const TensorMap &) {}

// 16 bytes of a box, chunk `chunk` of line `line`, to elements from `offset` on.
__device__ __forceinline__ void store_chunk(const TensorMap &map, unsigned from, int line, int chunk, size_t offset) {
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from + line * 128 + (chunk ^ (line % 8)) * 16)
                 : "memory");
    *reinterpret_cast<uint4 *>(map.tensor + offset * map.item) = v;
}

__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int x, int y, int z) {
    const int per_chunk = 16 / map.item, rows = min(map.lines, map.extents[2] - z);
    for (int r = 0; r < rows; r++) {
        for (int chunk = 0; chunk < 8; chunk++) {
            const int at = x + chunk * per_chunk;
            if (at < map.extents[0] && y < map.extents[1]) {
                store_chunk(map, from, r, chunk, size_t(z + r) * map.strides[2] + size_t(y) * map.strides[1] + at);
            }
        }
    }
}

__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int column, int row) {
    store_box(map, from, column, 0, row);
}

__device__ __forceinline__ void store_pixels(const TensorMap &map, unsigned from, int channel, int column, int row,
                                             int image) {
    const int per_chunk = 16 / map.item, start = pixel_of(map, column, row, image);
    for (int line = 0; line < map.lines; line++) {
        const int pixel = start + line, right = pixel % map.positions[1], rest = pixel / map.positions[1];
        const int x = map.first[1] + right * map.steps[1], y = map.first[0] + rest % map.positions[0] * map.steps[0];
        const int n = rest / map.positions[0];
        const bool inside = x >= 0 && x < map.extents[1] && y >= 0 && y < map.extents[2] && n < map.extents[3];
        for (int chunk = 0; chunk < 8 && inside; chunk++) {
            const int c = channel + chunk * per_chunk;
            if (c < map.extents[0]) {
                const size_t offset = size_t(n) * map.strides[3] + size_t(y) * map.strides[2] + x * map.strides[1] + c;
                store_chunk(map, from, line, chunk, offset);
            }
        }
    }
}

__device__ __forceinline__ void stores_commit() {}

template <int N>
__device__ __forceinline__ void stores_have_read() {}

__device__ __forceinline__ void fence_for_tma() {}

__device__ __forceinline__ void wgmma_fence() {}

__device__ __forceinline__ void wgmma_commit() {}

template <int N>
__device__ __forceinline__ void wgmma_wait() {}

template <int SUMS>
__device__ __forceinline__ void settle(float (&)[SUMS]) {}

// Bytes from a descriptor; the swizzle exchanges bits 4 to 6 of an address by bits 7 to 9.
__device__ __forceinline__ unsigned field(unsigned long long descriptor, int low) {
    return unsigned(descriptor >> low & 0x3FFF) << 4;
}

__device__ __forceinline__ unsigned swizzled(unsigned address) {
    return address ^ (address >> 3 & 0x70);
}

// The element of a loaded box that lies at an address, whose lines are given; zero outside the tensor.
__device__ __forceinline__ unsigned element(const Lines &lines, unsigned address) {
    const int line = address / 128 % 8;
    int at[4] = {lines.at[0] + int((address / 16 % 8) ^ line) * 8 + int(address % 16 / 2), lines.at[1],
                 lines.at[2] + line, lines.at[3]};
    if (lines.positions[0]) {
        const int pixel = lines.at[1] + line, rest = pixel / lines.positions[1];
        at[1] = lines.first[1] + pixel % lines.positions[1] * lines.steps[1] + lines.at[2];
        at[2] = lines.first[0] + rest % lines.positions[0] * lines.steps[0] + lines.at[3];
        at[3] = rest / lines.positions[0];
    }
    size_t offset = 0;
    for (int i = 0; i < 4; i++) {
        if (at[i] < 0 || at[i] >= lines.extents[i]) {
            return 0;
        }
        offset += size_t(at[i]) * lines.strides[i];
    }
    return __half_as_ushort(lines.tensor[offset]);
}

constexpr int K_MAJOR = 0, MN_MAJOR = 1;

// Of row or column `at` the elements `depth`, which is even, and the next.
template <int MAJOR>
__device__ __forceinline__ unsigned pair_of(unsigned long long operand, int at, int depth) {
    if (MAJOR == K_MAJOR) {
        const unsigned address = swizzled(field(operand, 0) + at % 8 * 128 + at / 8 * field(operand, 32) + depth * 2);
        const Lines &lines = lines_at(address);
        return element(lines, address) | element(lines, address + 2) << 16;
    }
    const unsigned address = field(operand, 0) + depth % 8 * 128 + depth / 8 * field(operand, 32) +
                             at / 64 * field(operand, 16) + at % 64 * 2;
    const Lines &lines = lines_at(address);
    return element(lines, swizzled(address)) | element(lines, swizzled(address + 128)) << 16;
}

// A loop, and no part of the kernel's own code, which would be too much for the simulator otherwise.
template <int A_MAJOR, int B_MAJOR, int SUMS>
__device__ __noinline__ void wgmma(float (&sum)[SUMS], unsigned long long a, unsigned long long b, int add) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4, k = lane % 4 * 2;
    const unsigned a0 = pair_of<A_MAJOR>(a, row, k), a1 = pair_of<A_MAJOR>(a, row + 8, k);
    const unsigned a2 = pair_of<A_MAJOR>(a, row, k + 8), a3 = pair_of<A_MAJOR>(a, row + 8, k + 8);
#pragma unroll 1
    for (int j = 0; j < SUMS / 4; j++) {
        float s[4] = {};
        for (int i = 0; i < 4 && add; i++) {
            s[i] = sum[4 * j + i];
        }
        const unsigned b0 = pair_of<B_MAJOR>(b, 8 * j + lane / 4, k), b1 = pair_of<B_MAJOR>(b, 8 * j + lane / 4, k + 8);
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        for (int i = 0; i < 4; i++) {
            sum[4 * j + i] = s[i];
        }
    }
}
