extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned bit = 0;
    if (i < j && j < count) {
        float4 a = ((const float4*)boxes)[i], b = ((const float4*)boxes)[j];
        float w = fminf(a.x + a.z, b.x + b.z) - fmaxf(a.x, b.x), h = fminf(a.y + a.w, b.y + b.w) - fmaxf(a.y, b.y);
        float common = w > 0 && h > 0 ? w * h : 0;
        if (classes[i] == classes[j] && common > limit * (a.z * a.w + b.z * b.w - common))
            bit = 1u << threadIdx.x;
    }
    for (int step = 16; step > 0; step /= 2)
        bit |= __shfl_xor_sync(0xffffffff, bit, step);
    if (i < count && threadIdx.x == 0)
        masks[i * words + blockIdx.x] = bit;
}
