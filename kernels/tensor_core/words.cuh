// Neighbouring elements of 16 bits from any address, in words of two: the words that hold them are loaded, and shifted
// where an element is the second of its word. No branches, so that many such loads are under way at a time.
#pragma once
#include <cuda_fp16.h>

// The word of the elements at `from` and after it, `from` being that of a word; 0 unless both are in the array, which goes
// up to `end`, and `wanted`.
__device__ __forceinline__ unsigned word_at(const half *from, bool wanted, const half *end) {
    unsigned word;
    asm("{\n.reg .pred both;\nsetp.ne.b32 both, %2, 0;\nmov.b32 %0, 0;\n@both ld.global.nc.b32 %0, [%1];\n}"
        : "=r"(word)
        : "l"(from), "r"(int(wanted && from + 2 <= end)));
    return word;
}

// The element at `from`, if it is the array's last one; else 0. In a register of its own, so that no load waits for it.
__device__ __forceinline__ unsigned last_at(const half *from, bool wanted, const half *end) {
    unsigned short one;
    asm("{\n.reg .pred last;\nsetp.ne.b32 last, %2, 0;\nmov.b16 %0, 0;\n@last ld.global.nc.b16 %0, [%1];\n}"
        : "=h"(one)
        : "l"(from), "r"(int(wanted && from + 1 == end)));
    return one;
}

// Of the two elements in a word from element `at` on, those before `left`.
__device__ __forceinline__ unsigned before(unsigned word, int at, int left) {
    return at >= left ? 0 : at + 1 >= left ? word & 0xffff : word;
}

// The first `left` of the eight elements at `from`, then zeros, of an array that starts at a multiple of four bytes and
// goes up to `end`.
__device__ __forceinline__ uint4 eight(const half *from, int left, const half *end) {
    const int odd = (unsigned long long)from / 2 % 2;
    unsigned words[5], last[5], v[4];
#pragma unroll
    for (int i = 0; i < 5; i++) {
        words[i] = word_at(from - odd + 2 * i, 2 * i - odd < left, end);
        last[i] = last_at(from - odd + 2 * i, 2 * i - odd < left, end);
    }
#pragma unroll
    for (int i = 0; i < 5; i++) {
        words[i] |= last[i];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[i] = before(odd ? __funnelshift_r(words[i], words[i + 1], 16) : words[i], 2 * i, left);
    }
    return make_uint4(v[0], v[1], v[2], v[3]);
}
