// problem: into
// loses: into-one, into-any
// reason: not written|wrote nothing

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
}
