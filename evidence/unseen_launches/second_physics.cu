// Physics: kernels of the kinds that Rodinia, PolyBench and Parboil collect.

// Heat of a chip (Rodinia's hotspot): four steps per launch on tiles of 16 x 16 whose borders are computed twice.
extern "C" __global__ void hotspot(const float *power, const float *heat, float *out, int rows, int columns)
{
    __shared__ float old[16][16], now[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * 8 + tx - 4, y = blockIdx.y * 8 + ty - 4;
    const int cx = min(max(x, 0), columns - 1), cy = min(max(y, 0), rows - 1);
    const float source = power[cy * columns + cx];
    old[ty][tx] = heat[cy * columns + cx];
    __syncthreads();
    for (int step = 1; step <= 4; step++) {
        if (tx >= step && tx < 16 - step && ty >= step && ty < 16 - step) {
            const float c = old[ty][tx];
            const float n = y > 0 ? old[ty - 1][tx] : c, s = y < rows - 1 ? old[ty + 1][tx] : c;
            const float w = x > 0 ? old[ty][tx - 1] : c, e = x < columns - 1 ? old[ty][tx + 1] : c;
            now[ty][tx] = c + 0.1f * (source + n + s + w + e - 4.0f * c + (0.5f - c) * 0.2f);
        }
        __syncthreads();
        if (tx >= step && tx < 16 - step && ty >= step && ty < 16 - step) old[ty][tx] = now[ty][tx];
        __syncthreads();
    }
    if (tx >= 4 && tx < 12 && ty >= 4 && ty < 12 && x < columns && y < rows) out[y * columns + x] = old[ty][tx];
}

// Particles in boxes (Rodinia's lavaMD): a block of 128 per box; each particle meets those of 27 boxes.
extern "C" __global__ void lava_boxes(const float4 *particle, float4 *force, int side, float alpha)
{
    __shared__ float4 other[100];
    const int box = blockIdx.x, t = threadIdx.x;
    const int bx = box % side, by = box / side % side, bz = box / side / side;
    float4 me = make_float4(0, 0, 0, 0), sum = make_float4(0, 0, 0, 0);
    if (t < 100) me = particle[box * 100 + t];
    for (int k = 0; k < 27; k++) {
        const int x = bx + k % 3 - 1, y = by + k / 3 % 3 - 1, z = bz + k / 9 - 1;
        if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) continue;
        const int there = (z * side + y) * side + x;
        if (t < 100) other[t] = particle[there * 100 + t];
        __syncthreads();
        if (t < 100) {
            for (int j = 0; j < 100; j++) {
                const float dx = me.x - other[j].x, dy = me.y - other[j].y, dz = me.z - other[j].z;
                const float v = expf(-alpha * (dx * dx + dy * dy + dz * dz)) * other[j].w;
                sum.w += v;
                sum.x += 2.0f * v * dx;
                sum.y += 2.0f * v * dy;
                sum.z += 2.0f * v * dz;
            }
        }
        __syncthreads();
    }
    if (t < 100) force[box * 100 + t] = sum;
}

// Coulomb's potential on a plane of a grid (Parboil's cutcp without the cut): every place meets all atoms.
extern "C" __global__ void coulomb_plane(const float4 *atom, float *potential, int side, int atoms, float spacing, float z)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side) return;
    float sum = 0.0f;
    for (int i = 0; i < atoms; i++) {
        const float4 a = atom[i];
        const float dx = x * spacing - a.x, dy = y * spacing - a.y, dz = z - a.z;
        sum += a.w / sqrtf(dx * dx + dy * dy + dz * dz);
    }
    potential[y * side + x] = sum;
}

// A step of the lattice Boltzmann method in two dimensions with nine directions, periodic, fields one after another.
extern "C" __global__ void lattice_boltzmann(const float *f, float *out, int height, int width, float omega)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const float w[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
    const size_t plane = (size_t)height * width;
    float v[9], density = 0.0f, ux = 0.0f, uy = 0.0f;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        const int fx = (x - cx[k] + width) % width, fy = (y - cy[k] + height) % height;
        v[k] = f[k * plane + (size_t)fy * width + fx];
        density += v[k];
        ux += cx[k] * v[k];
        uy += cy[k] * v[k];
    }
    ux /= density;
    uy /= density;
    const float square = 1.5f * (ux * ux + uy * uy);
#pragma unroll
    for (int k = 0; k < 9; k++) {
        const float u = 3.0f * (cx[k] * ux + cy[k] * uy);
        const float equilibrium = w[k] * density * (1.0f + u + 0.5f * u * u - square);
        out[k * plane + (size_t)y * width + x] = v[k] + omega * (equilibrium - v[k]);
    }
}

// The time step of each cell of a flow (Rodinia's cfd): a root and a division from five fields.
extern "C" __global__ void flow_time_step(const float *fields, const float *area, float *step, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float density = fields[i], energy = fields[i + 4 * (size_t)n];
    const float x = fields[i + (size_t)n], y = fields[i + 2 * (size_t)n], z = fields[i + 3 * (size_t)n];
    const float speed2 = (x * x + y * y + z * z) / (density * density);
    const float pressure = 0.4f * (energy - 0.5f * density * speed2);
    step[i] = 0.5f / (sqrtf(area[i]) * (sqrtf(speed2) + sqrtf(1.4f * pressure / density)));
}

// A convolution of 3 x 3 x 3 (PolyBench's): a thread per column walks through the planes.
extern "C" __global__ void convolution_3d(const float *a, float *b, int nz, int ny, int nx)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    for (int z = 1; z < nz - 1; z++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < 27; k++) {
            const size_t at = ((size_t)(z + k / 9 - 1) * ny + y + k / 3 % 3 - 1) * nx + x + k % 3 - 1;
            sum += 0.01f * (k + 1) * a[at];
        }
        b[((size_t)z * ny + y) * nx + x] = sum;
    }
}

// Rows of two matrices (PolyBench's gesummv), a thread per row.
extern "C" __global__ void sum_of_gemv(const float *a, const float *b, const float *x, float *y, int n, float alpha,
                                       float beta)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float first = 0.0f, second = 0.0f;
    for (int j = 0; j < n; j++) {
        first += a[(size_t)row * n + j] * x[j];
        second += b[(size_t)row * n + j] * x[j];
    }
    y[row] = alpha * first + beta * second;
}

// The forward pass of a layer (Rodinia's backprop): blocks of 16 x 16 add products by a tree in shared memory.
extern "C" __global__ void layer_forward(const float *input, const float *weight, float *partial, int hidden)
{
    __shared__ float node[16], products[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y, in = blockIdx.x * 16 + ty, out = blockIdx.y * 16 + tx;
    if (tx == 0) node[ty] = input[in];
    __syncthreads();
    products[ty][tx] = weight[(size_t)in * hidden + out] * node[ty];
    __syncthreads();
    for (int step = 1; step < 16; step *= 2) {
        if (ty % (2 * step) == 0) products[ty][tx] += products[ty + step][tx];
        __syncthreads();
    }
    if (ty == 0) partial[(size_t)blockIdx.x * hidden + out] = products[0][tx];
}

// The first ball that each ray meets: rays from the pixels of a picture, balls in a list.
extern "C" __global__ void ray_balls(const float4 *ball, float *depth, int *which, int width, int height, int balls)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float px = (x + 0.5f) / width, py = (y + 0.5f) / height;
    float nearest = 1e30f;
    int found = -1;
    for (int i = 0; i < balls; i++) {
        const float dx = px - ball[i].x, dy = py - ball[i].y, r2 = ball[i].w * ball[i].w;
        const float d2 = dx * dx + dy * dy;
        if (d2 < r2) {
            const float z = ball[i].z - sqrtf(r2 - d2);
            if (z < nearest) nearest = z, found = i;
        }
    }
    depth[y * width + x] = nearest;
    which[y * width + x] = found;
}
