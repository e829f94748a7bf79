// Wrong here: a library for the host.
#include <thrust/device_vector.h>
int main() {
  thrust::device_vector<int> v(10);
  return v.size() != 10;
}
