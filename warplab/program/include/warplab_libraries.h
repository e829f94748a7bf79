// What Thrust and CUB do for the host, on the host: no kernel runs, so nothing of theirs is counted or checked.
//
// Thrust is its own, with its sequential system as device. CUB's functions are these, in place of headers that nvcc
// alone can read. Both read and write device memory: the first touch of an allocation by code from here or from Thrust
// opens it to the host, and counts all of it as written (see `touched` in warplab_cudart.h).
#pragma once
#pragma GCC system_header
#include <algorithm>  // these, too, of which programs use more than they include
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <thrust/iterator/constant_iterator.h>  // as CUB's own headers do
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#define CubDebug(call) (call)
#define CubDebugExit(call) \
  if ((call) != cudaSuccess) std::exit(1)

namespace cub {

// In CUB's order: host code hands them to kernels as arguments of templates.
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <class K, class V>
struct KeyValuePair {
  K key;
  V value;
};
template <class T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};
struct Sum { template <class A, class B> auto operator()(const A& a, const B& b) const { return a + b; } };
struct Max { template <class T> T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <class T> T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
struct Equality { template <class A, class B> bool operator()(const A& a, const B& b) const { return a == b; } };
struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool = false, bool = false) {}
  template <class... More> CachingDeviceAllocator(unsigned, More...) {}
  template <class T> cudaError_t DeviceAllocate(T** pointer, size_t bytes, cudaStream_t = 0) {
    return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
  }
  cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

namespace warplab {
template <class I> using Value = typename std::iterator_traits<I>::value_type;
// The bits by which CUB sorts: those of an unsigned number in the order of the keys.
template <class T>
unsigned long long bits(const T& key, int begin, int end) {
  unsigned long long found = 0, sign = 1ull << (8 * sizeof(T) - 1);
  std::memcpy(&found, &key, sizeof key);
  if (std::is_integral<T>::value) {
    if (std::is_signed<T>::value) found ^= sign;
  } else {
    if (found == sign) found = 0;
    found = found & sign ? ~found & (sign | (sign - 1)) : found | sign;
  }
  return (found >> begin) & (end - begin >= 64 ? ~0ull : (1ull << (end - begin)) - 1);
}
template <class K>
std::vector<size_t> order(const K* keys, size_t count, bool down, int begin, int end) {
  std::vector<size_t> at(count);
  std::iota(at.begin(), at.end(), size_t(0));
  std::stable_sort(at.begin(), at.end(), [&](size_t a, size_t b) {
    auto x = bits(keys[a], begin, end), y = bits(keys[b], begin, end);
    return down ? y < x : x < y;
  });
  return at;
}
template <class T>
void gather(const std::vector<size_t>& at, const T* from, T* to) {
  std::vector<T> moved;
  for (size_t i : at) moved.push_back(from[i]);
  std::copy(moved.begin(), moved.end(), to);
}
template <class I, class O, class Op, class T>
void scan(I in, O out, Op op, T value, size_t count, bool inclusive) {
  for (size_t i = 0; i < count; ++i, ++in, ++out) {
    T next = op(value, *in);
    *out = inclusive ? next : value;
    value = next;
  }
}
template <class I, class O, class Op>
void scan(I in, O out, Op op, size_t count) {
  if (!count) return;
  Value<I> first = *in;
  *out = first;
  scan(std::next(in), std::next(out), op, first, count - 1, true);
}
}  // namespace warplab

#define WARPLAB_ASKS(temporary, bytes) \
  if (!temporary) return bytes = 1, cudaSuccess
#define WARPLAB_CUB template <class I, class O, class... Stream> static cudaError_t

struct DeviceReduce {
  template <class I, class O, class N, class Op, class T, class... Stream>
  static cudaError_t Reduce(void* t, size_t& b, I in, O out, N n, Op op, T first, Stream...) {
    WARPLAB_ASKS(t, b);
    auto all = std::decay_t<decltype(op(first, *in))>(first);
    for (N i = 0; i < n; ++i, ++in) all = op(all, *in);
    return *out = all, cudaSuccess;
  }
  template <class I, class O, class N, class Op, class F, class T, class... Stream>
  static cudaError_t TransformReduce(void* t, size_t& b, I in, O out, N n, Op op, F change, T first, Stream...) {
    WARPLAB_ASKS(t, b);
    T all = first;
    for (N i = 0; i < n; ++i, ++in) all = op(all, change(*in));
    return *out = all, cudaSuccess;
  }
  WARPLAB_CUB Sum(void* t, size_t& b, I in, O out, long long n, Stream... s) {
    return Reduce(t, b, in, out, n, cub::Sum(), warplab::Value<I>{}, s...);
  }
  WARPLAB_CUB Min(void* t, size_t& b, I in, O out, long long n, Stream... s) {
    return Reduce(t, b, in, out, n, cub::Min(), std::numeric_limits<warplab::Value<I>>::max(), s...);
  }
  WARPLAB_CUB Max(void* t, size_t& b, I in, O out, long long n, Stream... s) {
    return Reduce(t, b, in, out, n, cub::Max(), std::numeric_limits<warplab::Value<I>>::lowest(), s...);
  }
  WARPLAB_CUB ArgMin(void* t, size_t& b, I in, O out, int n, Stream...) {
    WARPLAB_ASKS(t, b);
    I at = std::min_element(in, in + n);
    return *out = {int(at - in), *at}, cudaSuccess;
  }
  WARPLAB_CUB ArgMax(void* t, size_t& b, I in, O out, int n, Stream...) {
    WARPLAB_ASKS(t, b);
    I at = std::max_element(in, in + n);
    return *out = {int(at - in), *at}, cudaSuccess;
  }
  template <class K, class U, class V, class A, class C, class Op, class... Stream>
  static cudaError_t ReduceByKey(void* t, size_t& b, K keys, U unique, V values, A sums, C runs, Op op, long long n,
                                 Stream...) {
    WARPLAB_ASKS(t, b);
    long long found = 0;
    for (long long i = 0; i < n; found++) {
      warplab::Value<K> key = keys[i];
      warplab::Value<V> all = values[i];
      for (i++; i < n && keys[i] == key; i++) all = op(all, values[i]);
      unique[found] = key, sums[found] = all;
    }
    return *runs = found, cudaSuccess;
  }
};

struct DeviceScan {
  WARPLAB_CUB ExclusiveSum(void* t, size_t& b, I in, O out, long long n, Stream...) {
    WARPLAB_ASKS(t, b);
    return warplab::scan(in, out, cub::Sum(), warplab::Value<I>{}, n, false), cudaSuccess;
  }
  template <class I, class N, class... Stream, class = std::enable_if_t<std::is_integral<N>::value>>
  static cudaError_t ExclusiveSum(void* t, size_t& b, I in, N n, Stream... s) {
    return ExclusiveSum(t, b, in, in, n, s...);
  }
  WARPLAB_CUB InclusiveSum(void* t, size_t& b, I in, O out, long long n, Stream...) {
    WARPLAB_ASKS(t, b);
    return warplab::scan(in, out, cub::Sum(), n), cudaSuccess;
  }
  template <class I, class N, class... Stream, class = std::enable_if_t<std::is_integral<N>::value>>
  static cudaError_t InclusiveSum(void* t, size_t& b, I in, N n, Stream... s) {
    return InclusiveSum(t, b, in, in, n, s...);
  }
  template <class I, class O, class Op, class T, class N, class... Stream>
  static cudaError_t ExclusiveScan(void* t, size_t& b, I in, O out, Op op, T first, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    return warplab::scan(in, out, op, warplab::Value<I>(first), n, false), cudaSuccess;
  }
  template <class I, class O, class Op, class N, class... Stream>
  static cudaError_t InclusiveScan(void* t, size_t& b, I in, O out, Op op, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    return warplab::scan(in, out, op, n), cudaSuccess;
  }
};

struct DeviceRadixSort {
#define WARPLAB_SORT(name, down)                                                                                    \
  template <class K, class N>                                                                                       \
  static cudaError_t SortKeys##name(void* t, size_t& b, const K* in, K* out, N n, int begin = 0,                    \
                                    int end = 8 * sizeof(K), cudaStream_t = 0) {                                    \
    WARPLAB_ASKS(t, b);                                                                                             \
    return warplab::gather(warplab::order(in, n, down, begin, end), in, out), cudaSuccess;                          \
  }                                                                                                                 \
  template <class K, class N>                                                                                       \
  static cudaError_t SortKeys##name(void* t, size_t& b, DoubleBuffer<K>& keys, N n, int begin = 0,                  \
                                    int end = 8 * sizeof(K), cudaStream_t s = 0) {                                  \
    cudaError_t error = SortKeys##name(t, b, keys.Current(), keys.Alternate(), n, begin, end, s);                   \
    if (t) keys.selector ^= 1;                                                                                      \
    return error;                                                                                                   \
  }                                                                                                                 \
  template <class K, class V, class N>                                                                              \
  static cudaError_t SortPairs##name(void* t, size_t& b, const K* in, K* out, const V* from, V* to, N n,            \
                                     int begin = 0, int end = 8 * sizeof(K), cudaStream_t = 0) {                    \
    WARPLAB_ASKS(t, b);                                                                                             \
    auto at = warplab::order(in, n, down, begin, end);                                                              \
    return warplab::gather(at, in, out), warplab::gather(at, from, to), cudaSuccess;                                \
  }                                                                                                                 \
  template <class K, class V, class N>                                                                              \
  static cudaError_t SortPairs##name(void* t, size_t& b, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, N n,       \
                                     int begin = 0, int end = 8 * sizeof(K), cudaStream_t s = 0) {                  \
    cudaError_t error = SortPairs##name(t, b, keys.Current(), keys.Alternate(), values.Current(),                   \
                                        values.Alternate(), n, begin, end, s);                                      \
    if (t) keys.selector ^= 1, values.selector ^= 1;                                                                \
    return error;                                                                                                   \
  }
  WARPLAB_SORT(, false)
  WARPLAB_SORT(Descending, true)
};
struct DeviceMergeSort {
  template <class K, class N, class Less, class... Stream>
  static cudaError_t SortKeys(void* t, size_t& b, K keys, N n, Less less, Stream...) {
    WARPLAB_ASKS(t, b);
    return std::stable_sort(keys, keys + n, less), cudaSuccess;
  }
};

struct DeviceSelect {
  template <class I, class F, class O, class C, class N, class... Stream>
  static cudaError_t Flagged(void* t, size_t& b, I in, F flags, O out, C count, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    O end = out;
    for (N i = 0; i < n; ++i)
      if (flags[i]) *end++ = in[i];
    return *count = end - out, cudaSuccess;
  }
  template <class I, class O, class C, class N, class Op, class... Stream>
  static cudaError_t If(void* t, size_t& b, I in, O out, C count, N n, Op select, Stream...) {
    WARPLAB_ASKS(t, b);
    O end = out;
    for (N i = 0; i < n; ++i)
      if (select(in[i])) *end++ = in[i];
    return *count = end - out, cudaSuccess;
  }
  template <class I, class O, class C, class N, class... Stream>
  static cudaError_t Unique(void* t, size_t& b, I in, O out, C count, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    return *count = std::unique_copy(in, in + n, out) - out, cudaSuccess;
  }
};
struct DeviceRunLengthEncode {
  template <class I, class U, class L, class C, class N, class... Stream>
  static cudaError_t Encode(void* t, size_t& b, I in, U unique, L lengths, C runs, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    N found = 0;
    for (N i = 0; i < n; found++) {
      N start = i;
      for (unique[found] = in[i++]; i < n && in[i] == in[start];) i++;
      lengths[found] = i - start;
    }
    return *runs = found, cudaSuccess;
  }
};
struct DeviceHistogram {
  template <class I, class C, class L, class N, class... Stream>
  static cudaError_t HistogramEven(void* t, size_t& b, I in, C* counts, int levels, L lower, L upper, N n, Stream...) {
    WARPLAB_ASKS(t, b);
    std::fill(counts, counts + levels - 1, C(0));
    for (N i = 0; i < n; ++i, ++in)
      if (!(*in < lower) && *in < upper) counts[size_t((*in - lower) * double(levels - 1) / (upper - lower))]++;
    return cudaSuccess;
  }
};
struct DeviceSegmentedReduce {
  template <class I, class O, class B, class E, class Op, class T, class... Stream>
  static cudaError_t Reduce(void* t, size_t& b, I in, O out, int n, B begins, E ends, Op op, T first, Stream...) {
    WARPLAB_ASKS(t, b);
    for (int i = 0; i < n; ++i) {
      T all = first;
      for (auto at = begins[i]; at < ends[i]; ++at) all = op(all, in[at]);
      out[i] = all;
    }
    return cudaSuccess;
  }
  template <class I, class O, class B, class E, class... Stream>
  static cudaError_t Sum(void* t, size_t& b, I in, O out, int n, B begins, E ends, Stream... s) {
    return Reduce(t, b, in, out, n, begins, ends, cub::Sum(), warplab::Value<I>{}, s...);
  }
};
}  // namespace cub
