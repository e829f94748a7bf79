// Right. A class whose functions are for the host, for the device, or for both.
#include <cstdio>
#include <vector>
static void check(cudaError_t e, const char* what) {
    if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e)); std::exit(3); }
}
class Grid {
    float* data;
    struct Place { int x; void print() const { printf("%d\n", x); std::fflush(stdout); } } place;
public:
    int n;
    explicit Grid(int n) : data(nullptr), n{n} { check(cudaMalloc(&data, n * sizeof(float)), "malloc"); }
    ~Grid() {}
    void fill(const std::vector<float>& from) { check(cudaMemcpy(data, from.data(), n * 4, cudaMemcpyHostToDevice), "fill"); }
    std::vector<float> get() const {
        std::vector<float> to(n);
        check(cudaMemcpy(to.data(), data, n * 4, cudaMemcpyDeviceToHost), "get");
        return to;
    }
    __host__ __device__ int size() const { return n; }
    __device__ float& operator[](int i) { return data[i]; }
};
__global__ void twice(Grid g, unsigned factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < g.size()) g[i] *= factor;
}
int main() {
    Grid g(100);
    g.fill(std::vector<float>(100, 21));
    twice<<<1, 128>>>(g, 2);
    check(cudaDeviceSynchronize(), "sync");
    printf("%g\n", g.get()[99]);
}
