// What CuPy adds to CUDA's atomic functions for capabilities before 6.0; later ones have all.
#pragma once

#include <cupy/carray.cuh>
