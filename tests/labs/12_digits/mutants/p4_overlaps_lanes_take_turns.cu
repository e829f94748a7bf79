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
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    if (i >= count)
        return;
    bool hit = false;
    for (int lane = 0; lane < 32; lane++) {
        if (lane == threadIdx.x)
            hit = pair(boxes, classes, count, limit, i, j);
        __syncwarp();
    }
    unsigned word = __ballot_sync(0xffffffff, hit);
    if (threadIdx.x == 0)
        masks[i * words + blockIdx.x] = word;
}
