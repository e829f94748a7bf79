// Wrong: line 6 reads an element of the device's memory on the host.
#include <cstdio>
int main() {
  int* d;
  cudaMalloc(&d, 64 * sizeof(int));
  printf("%d\n", d[3]);
}
