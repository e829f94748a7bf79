__device__ float share(float4 a, float4 b)
{
    float left = fmaxf(a.x, b.x), right = fminf(a.x + a.z, b.x + b.z);
    float top = fmaxf(a.y, b.y), bottom = fminf(a.y + a.w, b.y + b.w);
    if (right <= left || bottom <= top)
        return 0;
    float common = (right - left) * (bottom - top);
    return common / (a.z * a.w + b.z * b.w - common);
}

extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * 4 + threadIdx.y;
    if (i >= count)
        return;
    unsigned word = 0;
    if (blockIdx.x * 32 + 31 > i) {
        int j = blockIdx.x * 32 + threadIdx.x;
        const float4* quads = (const float4*)boxes;
        bool hit = j > i && j < count;
        if (hit && classes[i] != classes[j])
            hit = false;
        if (hit)
            hit = share(quads[i], quads[j]) > limit;
        word = __ballot_sync(0xffffffffu, hit);
    }
    if (!threadIdx.x)
        masks[i * words + blockIdx.x] = word;
}
