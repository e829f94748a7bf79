// Where the elements of a tensor of images lie, NCHW or NHWC.
#pragma once

// Where a tensor's elements of one image and channel lie: `row`, `column` and `image` elements apart.
template <bool NHWC> struct Strides {
    size_t image;
    int row, column;
    __device__ Strides(int c, int height, int width)
        : image(size_t(c) * height * width), row(NHWC ? width * c : width), column(NHWC ? c : 1) {}
    __device__ size_t first(int n, int channel, int height, int width) const {
        return n * image + (NHWC ? channel : size_t(channel) * height * width);
    }
};

// The element that number i of a tensor stands for; with VEC above 1, in NHWC, number i is that of a vector.
template <bool NHWC, int VEC = 1> struct Element {
    int image, channel, row, column;
    __device__ Element(unsigned i, int c, int rows, int columns) {
        if (NHWC) channel = i % (c / VEC) * VEC, i /= c / VEC;
        column = i % columns, i /= columns;
        row = i % rows, i /= rows;
        if (!NHWC) channel = i % c, i /= c;
        image = i;
    }
};
