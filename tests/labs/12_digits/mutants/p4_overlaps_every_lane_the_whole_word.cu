// problem: overlaps
// loses: overlaps-word, overlaps-any, overlaps-counted
// reason: one thread does too much of the work|instructions executed|barriers|bytes|too many
__device__ bool pair(const float* boxes, const int* classes, int count, float limit, int i, int j)
{
    if (j <= i || j >= count || classes[i] != classes[j])
        return false;
    float4 a = reinterpret_cast<const float4*>(boxes)[i], b = reinterpret_cast<const float4*>(boxes)[j];
    float width = fminf(a.x + a.z, b.x + b.z) - fmaxf(a.x, b.x);
    float height = fminf(a.y + a.w, b.y + b.w) - fmaxf(a.y, b.y);
    float common = fmaxf(width, 0.0f) * fmaxf(height, 0.0f);
    return common > limit * (a.z * a.w + b.z * b.w - common);
}

// Grid: words, count / 4 rounded up. Block: 32 x 4.
extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= count)
        return;
    unsigned word = 0;
    for (int bit = 0; bit < 32; bit++)
        word |= (unsigned)pair(boxes, classes, count, limit, i, blockIdx.x * 32 + bit) << bit;
    masks[i * words + blockIdx.x] = word;
}
