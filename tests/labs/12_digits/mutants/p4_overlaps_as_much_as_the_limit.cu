// problem: overlaps
// loses: overlaps-word
// reason: masks is wrong
extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    if (i >= count)
        return;
    bool hit = false;
    if (j > i && j < count) {
        float4 a = reinterpret_cast<const float4*>(boxes)[i], b = reinterpret_cast<const float4*>(boxes)[j];
        float width = fminf(a.x + a.z, b.x + b.z) - fmaxf(a.x, b.x);
        float height = fminf(a.y + a.w, b.y + b.w) - fmaxf(a.y, b.y);
        float common = fmaxf(width, 0.0f) * fmaxf(height, 0.0f);
        hit = classes[i] == classes[j] && common >= limit * (a.z * a.w + b.z * b.w - common);
    }
    unsigned word = __ballot_sync(0xffffffff, hit);
    if (threadIdx.x == 0)
        masks[i * words + blockIdx.x] = word;
}
