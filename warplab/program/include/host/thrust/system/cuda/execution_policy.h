// In place of Thrust's, which is for nvcc alone.
#pragma once
#include <thrust/execution_policy.h>
