// What nvcc knows without an #include and NVRTC does not; read before each answer in CUDA C++.
#pragma once
#include <pow.h>
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
