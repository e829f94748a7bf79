struct alignas(16) Box {
    float x, y, w, h;
};

extern "C" __global__ void overlaps(const float* boxes, const int* classes, unsigned* masks, int count, int words,
                                    float limit)
{
    const int i = 4 * blockIdx.y + threadIdx.y, j = 32 * blockIdx.x + threadIdx.x;
    const int mine = min(i, count - 1), other = min(j, count - 1);
    const Box a = ((const Box*)boxes)[mine], b = ((const Box*)boxes)[other];
    const float left = fmaxf(a.x, b.x), right = fminf(a.x + a.w, b.x + b.w);
    const float top = fmaxf(a.y, b.y), bottom = fminf(a.y + a.h, b.y + b.h);
    const float common = fdimf(right, left) * fdimf(bottom, top);
    const bool hit = i < j && j < count && classes[mine] == classes[other]
                     && common > limit * (a.w * a.h + b.w * b.h - common);
    const unsigned bits = __ballot_sync(~0u, hit);
    if (i < count && threadIdx.x == blockIdx.x % 32)
        masks[blockIdx.x + i * words] = bits;
}
