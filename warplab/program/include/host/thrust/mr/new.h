// In place of Thrust's: what its vectors allocate is memory of the device.
#pragma once
#include <thrust/detail/config.h>
#include <thrust/mr/memory_resource.h>

#include <iostream>  // as of the system for GPUs
#include <new>

inline void* warplab_thrust_allocate(std::size_t count) {
  void* pointer = nullptr;
  if (count && cudaMalloc(&pointer, count) != cudaSuccess) throw std::bad_alloc();
  return pointer;
}

THRUST_NAMESPACE_BEGIN
namespace mr {
class new_delete_resource_base : public memory_resource<> {
 public:
  void* do_allocate(std::size_t count, std::size_t) override { return warplab_thrust_allocate(count); }
  void do_deallocate(void* pointer, std::size_t, std::size_t) override { cudaFree(pointer); }
};
class new_delete_resource final : public new_delete_resource_base {};
}  // namespace mr
THRUST_NAMESPACE_END
