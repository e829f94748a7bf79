// Arrays and indexers as CuPy passes them to kernels: the layout and the members of CuPy's own cupy/carray.cuh, as far
// as kernels use them.
#pragma once

#ifndef M_PI
#define M_PI 3.1415926535897932384626433832795
#endif

class float16;
class bfloat16;

#define CUPY_FOR(i, n)                                                                                    \
    for (ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
         i += static_cast<ptrdiff_t>(blockDim.x) * gridDim.x)

template <bool is_32_bit> struct CIndex { typedef ptrdiff_t type; };
template <> struct CIndex<true> { typedef int type; };

// A view of `_ndim` axes. Strides are in bytes.
template <typename T, int _ndim, bool _c_contiguous = false, bool _use_32bit_indexing = false>
class CArray {
public:
    static const int ndim = _ndim;
    static const bool c_contiguous = _c_contiguous;
    typedef typename CIndex<_use_32bit_indexing>::type index_t;

    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return shape_; }
    __device__ const ptrdiff_t* strides() const { return strides_; }

    // The element at an index for each axis.
    template <typename Int>
    __device__ const T& operator[](const Int (&idx)[ndim]) const {
        index_t at = 0;
        for (int axis = 0; axis < ndim; ++axis)
            at += static_cast<index_t>(strides_[axis]) * static_cast<index_t>(idx[axis]);
        return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(data_) + at);
    }
    template <typename Int>
    __device__ T& operator[](const Int (&idx)[ndim]) {
        return const_cast<T&>(const_cast<const CArray&>(*this)[idx]);
    }

    // Element number `idx` in C order.
    __device__ const T& operator[](ptrdiff_t idx) const {
        if (c_contiguous) return data_[idx];
        index_t at = 0, i = static_cast<index_t>(idx);
        for (int axis = ndim; --axis > 0;) {
            index_t length = static_cast<index_t>(shape_[axis]);
            at += static_cast<index_t>(strides_[axis]) * (i % length);
            i /= length;
        }
        at += static_cast<index_t>(strides_[0]) * i;
        return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(data_) + at);
    }
    __device__ T& operator[](ptrdiff_t idx) { return const_cast<T&>(const_cast<const CArray&>(*this)[idx]); }

private:
    T* data_;
    ptrdiff_t size_;
    ptrdiff_t shape_[ndim];
    ptrdiff_t strides_[ndim];
};

template <typename T, bool _c_contiguous, bool _use_32bit_indexing>
class CArray<T, 0, _c_contiguous, _use_32bit_indexing> {
public:
    static const int ndim = 0;
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return nullptr; }
    __device__ const ptrdiff_t* strides() const { return nullptr; }
    template <typename U> __device__ T& operator[](const U&) { return *data_; }
    template <typename U> __device__ const T& operator[](const U&) const { return *data_; }

private:
    T* data_;
    ptrdiff_t size_;
};

// The shape of a loop, and the index of each axis of the present round.
template <int _ndim, bool _use_32bit_indexing = false>
class CIndexer {
public:
    static const int ndim = _ndim;
    typedef ptrdiff_t index_t[ndim];

    __device__ ptrdiff_t size() const { return size_; }
    __device__ const index_t& get() const { return index_; }
    __device__ void set(ptrdiff_t i) {
        if (ndim == 1) index_[0] = i;
        else if (!_use_32bit_indexing && size_ > 1LL << 31) split(static_cast<unsigned long long>(i));
        else split(static_cast<unsigned>(i));
    }

private:
    template <typename Int> __device__ void split(Int i) {
        for (int axis = ndim; --axis > 0;) {
            Int length = static_cast<Int>(shape_[axis]), rest = i / length;
            index_[axis] = i - rest * length;
            i = rest;
        }
        index_[0] = i;
    }

    ptrdiff_t size_;
    ptrdiff_t shape_[ndim];
    ptrdiff_t index_[ndim];
};

template <bool _use_32bit_indexing>
class CIndexer<0, _use_32bit_indexing> {
public:
    static const int ndim = 0;
    __device__ ptrdiff_t size() const { return size_; }
    __device__ void set(ptrdiff_t) {}
    __device__ const ptrdiff_t* get() const { return nullptr; }

private:
    ptrdiff_t size_;
};

// Division that rounds down, 0 for a divisor of 0.
template <typename T> __device__ T _floor_divide(T x, T y) {
    if (y == 0) return 0;
    T q = x / y;
    return q - (((x < 0) != (y < 0)) && q * y != x);
}
inline __device__ float _floor_divide(float x, float y) { return floorf(x / y); }
inline __device__ double _floor_divide(double x, double y) { return floor(x / y); }
