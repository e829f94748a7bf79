// A convolution's sizes, in cuDNN's letters, as sources.py fills them in.
#pragma once

struct Sizes {
    int n, c, h, w;  // x: images, channels, height, width
    int k, r, s;     // filters, their height and width
    int p, q;        // y: height, width
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
    int group_c, group_k;  // channels and filters of a group
    int depth;             // products per element of y: group_c * r * s
};
