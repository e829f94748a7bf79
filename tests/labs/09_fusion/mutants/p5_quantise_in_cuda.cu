// problem: quantise
// loses: quantise-short, quantise-any, quantise-counted
// reason: wrong language

extern "C" __global__ void quantise(const float* w, signed char* q, float* scale)
{
    q[0] = w[0] / scale[0];
}
