#pragma once
#include <cuda/std/cstdint>
using cuda::std::int8_t, cuda::std::int16_t, cuda::std::int32_t, cuda::std::int64_t;
using cuda::std::uint8_t, cuda::std::uint16_t, cuda::std::uint32_t, cuda::std::uint64_t;
using cuda::std::intptr_t, cuda::std::uintptr_t;
