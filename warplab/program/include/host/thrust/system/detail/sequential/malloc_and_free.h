// In place of Thrust's: what device_malloc and algorithms allocate is memory of the device.
#pragma once
#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/mr/new.h>
#include <thrust/system/detail/sequential/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system::detail::sequential {
template <class Policy>
inline void* malloc(execution_policy<Policy>&, std::size_t count) { return warplab_thrust_allocate(count); }
template <class Policy, class Pointer>
inline void free(execution_policy<Policy>&, Pointer pointer) { cudaFree(thrust::raw_pointer_cast(pointer)); }
}  // namespace system::detail::sequential
THRUST_NAMESPACE_END
