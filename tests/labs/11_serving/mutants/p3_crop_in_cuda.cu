// problem: crop
// loses: crop-inside, crop-border, crop-counted
// reason: arguments|cannot be launched|written in the wrong language

extern "C" __global__ void crop(const unsigned char* frame, int row, int column, const float* mean, const float* scale,
                                float* out)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    out[j] = (frame[3 * j] - mean[0]) * scale[0];
}
