// problem: overlaps
// loses: overlaps-counted
// reason: global load requests|load request
// Grid: words, count / 4 rounded up. Block: 32 x 4.
extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    if (i >= count)
        return;
    bool hit = false;
    if (j > i && j < count) {
        float4 a = {boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]};
        float4 b = {boxes[4 * j], boxes[4 * j + 1], boxes[4 * j + 2], boxes[4 * j + 3]};
        float width = fminf(a.x + a.z, b.x + b.z) - fmaxf(a.x, b.x);
        float height = fminf(a.y + a.w, b.y + b.w) - fmaxf(a.y, b.y);
        float common = fmaxf(width, 0.0f) * fmaxf(height, 0.0f);
        hit = classes[i] == classes[j] && common > limit * (a.z * a.w + b.z * b.w - common);
    }
    unsigned word = __ballot_sync(0xffffffff, hit);
    if (threadIdx.x == 0)
        masks[i * words + blockIdx.x] = word;
}
