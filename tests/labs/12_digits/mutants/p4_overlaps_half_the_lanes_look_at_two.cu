// problem: overlaps
// loses: overlaps-word, overlaps-any, overlaps-counted
// reason: floating-point operations
__device__ bool meet(float4 a, float4 b, float limit)
{
    float width = fminf(a.x + a.z, b.x + b.z) - fmaxf(a.x, b.x);
    float height = fminf(a.y + a.w, b.y + b.w) - fmaxf(a.y, b.y);
    float common = fmaxf(width, 0.0f) * fmaxf(height, 0.0f);
    return common > limit * (a.z * a.w + b.z * b.w - common);
}

extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    if (i >= count)
        return;
    float4 a = reinterpret_cast<const float4*>(boxes)[i], b = make_float4(0, 0, 0, 0), c;
    int same = 0, other;
    if (j > i && j < count) {
        b = reinterpret_cast<const float4*>(boxes)[j];
        same = classes[i] == classes[j];
    }
    c.x = __shfl_down_sync(0xffffffff, b.x, 16);
    c.y = __shfl_down_sync(0xffffffff, b.y, 16);
    c.z = __shfl_down_sync(0xffffffff, b.z, 16);
    c.w = __shfl_down_sync(0xffffffff, b.w, 16);
    other = __shfl_down_sync(0xffffffff, same, 16);
    bool low = false, high = false;
    if (threadIdx.x < 16) {
        low = same && meet(a, b, limit);
        high = other && meet(a, c, limit);
    }
    unsigned word = __ballot_sync(0xffffffff, low) | __ballot_sync(0xffffffff, high) << 16;
    if (threadIdx.x == 0)
        masks[i * words + blockIdx.x] = word;
}
