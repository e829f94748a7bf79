// Beside Thrust's: its policies for streams, which change nothing, as all is done in order.
#pragma once
#include_next <thrust/execution_policy.h>
#include <thrust/system/cpp/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace cuda {
struct warplab_policy : thrust::cpp::execution_policy<warplab_policy> {
  const warplab_policy& on(cudaStream_t) const { return *this; }
  template <class Allocator> const warplab_policy& operator()(Allocator&&) const { return *this; }
};
inline const warplab_policy par, par_nosync;
}  // namespace cuda
THRUST_NAMESPACE_END
