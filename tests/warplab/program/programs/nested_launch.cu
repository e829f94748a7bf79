// Wrong here: a kernel that launches a kernel.
__global__ void inner(int* x) { *x = 1; }
__global__ void outer(int* x) { inner<<<1, 1>>>(x); }

int main() { outer<<<1, 1>>>(nullptr); }
