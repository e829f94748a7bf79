// In place of CUDA's, which no wheel of its runtime brings.
#pragma once
#include <cuda_runtime_api.h>

extern "C" {
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
}
