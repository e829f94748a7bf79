// Refused: line 2 uses a name that is not declared.
__global__ void fill(float* x) { x[threadIdx.x] = undeclared; }
int main() { fill<<<1, 1>>>(nullptr); }
