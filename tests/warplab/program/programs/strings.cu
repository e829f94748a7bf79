// A type with a std::string in it, which the host fills and a kernel gets a pointer to. Names of std without std::, beside
// functions that CUDA has at the top level.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

using namespace std;

enum Kind { whole, part };

struct Options {
    int n;
    unsigned char kind = part;
    std::string name;
    Options(int n, std::string name) : n(n), name(name) {}
    std::string shown() const { return name + " of " + std::to_string(n); }
};

__global__ void fill(const Options* options, int* out) {
    out[threadIdx.x] = options->kind == part ? options->n : 0;
    if (sqrt(exp2(double(out[threadIdx.x]))) > numeric_limits<float>::max()) out[threadIdx.x] = 0;
    if (threadIdx.x == 0) out[0] = sizeof(Options);
}

int main() {
    Options options(7, "seven"), *there;
    int *out, found[32];
    cudaMalloc(&there, sizeof options);
    cudaMalloc(&out, sizeof found);
    cudaMemcpy(there, &options, sizeof options, cudaMemcpyHostToDevice);
    fill<<<1, 32>>>(there, out);
    cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost);
    printf("%s: %d, %d\n", options.shown().c_str(), found[31], found[0] == (int)sizeof options);
}
