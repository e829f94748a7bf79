extern "C" __global__ void overlaps(const float4* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    const int row = threadIdx.y + 4 * blockIdx.y, column = threadIdx.x + 32 * blockIdx.x;
    float4 a = make_float4(0, 0, 0, 0), b = a;
    int mine = -1, other = -2;
    if (row < count && column < count) {
        a = boxes[row];
        b = boxes[column];
        mine = classes[row];
        other = classes[column];
    }
    float w = max(0.f, min(a.x + a.z, b.x + b.z) - max(a.x, b.x));
    float h = max(0.f, min(a.y + a.w, b.y + b.w) - max(a.y, b.y));
    float both = w * h;
    bool hit = mine == other && column > row && both / (a.z * a.w + b.z * b.w - both) > limit;
    unsigned bits = __ballot_sync(~0u, hit);
    if (row < count && threadIdx.x == 31)
        masks[row * words + blockIdx.x] = bits;
}
