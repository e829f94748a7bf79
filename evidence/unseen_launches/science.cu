// Arithmetic: finance, bodies, random numbers, orbits.

const float LARGEST = 3.4028234e38f;

// Forces between all bodies, tiles of 256 bodies in shared memory; n is a multiple of 256.
extern "C" __global__ void n_body(const float4 *body, float4 *acceleration, int n)
{
    __shared__ float4 tile[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 me = body[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = body[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; j++) {
            const float4 other = tile[j];
            const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            const float pull = other.w * inverse * inverse * inverse;
            x += pull * dx;
            y += pull * dy;
            z += pull * dz;
        }
        __syncthreads();
    }
    acceleration[i] = make_float4(x, y, z, 0.0f);
}

// Black and Scholes: the price of a call and of a put.
extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call,
                                         float *put, int n, float rate, float volatility)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float s = price[i], k = strike[i], t = years[i];
    const float root = volatility * sqrtf(t);
    const float d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / root, d2 = d1 - root;
    const float n1 = normcdff(d1), n2 = normcdff(d2), discounted = k * expf(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

// Pi by random points: each thread draws `points` with xorshift and adds its hits to one counter per block.
extern "C" __global__ void monte_carlo_pi(unsigned *hits, int points, unsigned seed)
{
    __shared__ unsigned total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    unsigned s = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435769u ^ seed, mine = 0;
    for (int k = 0; k < points; k++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        const float x = (s >> 8) * (1.0f / 16777216.0f);
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        const float y = (s >> 8) * (1.0f / 16777216.0f);
        if (x * x + y * y < 1.0f) mine++;
    }
    for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) hits[blockIdx.x] = total;
}

// The nearest of 64 centres for each point in 16 dimensions; the centres are in shared memory, points by columns.
extern "C" __global__ void kmeans_assign(const float *point, const float *centre, int *nearest, int n)
{
    __shared__ float c[64 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) c[i] = centre[i];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p[16], best = LARGEST;
    int at = 0;
#pragma unroll
    for (int d = 0; d < 16; d++) p[d] = point[(size_t)d * n + i];
    for (int k = 0; k < 64; k++) {
        float sum = 0.0f;
#pragma unroll
        for (int d = 0; d < 16; d++) sum += (p[d] - c[k * 16 + d]) * (p[d] - c[k * 16 + d]);
        if (sum < best) best = sum, at = k;
    }
    nearest[i] = at;
}

// Kepler's equation in FP64 by Newton's method: the eccentric anomaly of an orbit.
extern "C" __global__ void kepler_fp64(const double *mean, double *eccentric, int n, double e, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double m = mean[i];
    double x = m;
    for (int k = 0; k < steps; k++) x -= (x - e * sin(x) - m) / (1.0 - e * cos(x));
    eccentric[i] = x;
}

// A polynomial of degree `degree` at eight places per thread: eight chains of FMA that do not wait for each other.
extern "C" __global__ void polynomial_chains(const float *x, const float *coefficient, float *out, int n, int degree)
{
    const int i = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float at[8], value[8];
#pragma unroll
    for (int k = 0; k < 8; k++) at[k] = x[i + k * blockDim.x], value[k] = 0.0f;
    for (int d = 0; d < degree; d++) {
        const float c = coefficient[d];
#pragma unroll
        for (int k = 0; k < 8; k++) value[k] = value[k] * at[k] + c;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[i + k * blockDim.x] = value[k];
}
