// problem: dot
// loses: dot-points, dot-any, dot-counted
// reason: wrote nothing|not written

extern "C" __global__ void conv_int8(const int* x, const int* filters, const float* scale, const float* bias,
                                     signed char* y, int n, int h, int w, int words, int k, int r, int s)
{
}
