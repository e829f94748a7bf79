// Local response normalisation, y = x / (bias + alpha / size * Σ x²)^beta: the sum is over `size` channels around, of
// those that there are. A thread has an element; lanes go along the pixels, as x and y lie (NCHW).
// Expected: the time of reading x and writing y once: the neighbours' channels come from the L2.
// Not yet run on a GPU.
struct Lrn {
    int elements, c, pixels;
    int before, after;  // channels on either side
    float factor, beta, bias;
};

extern "C" __global__ void lrn(const float *x, float *y, Lrn g) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements) return;
    const int c = i / g.pixels % g.c;
    float sum = 0;
    for (int other = max(c - g.before, 0); other <= min(c + g.after, g.c - 1); other++) {
        const float value = x[i + (other - c) * g.pixels];
        sum += value * value;
    }
    y[i] = x[i] * powf(g.bias + g.factor * sum, -g.beta);
}
