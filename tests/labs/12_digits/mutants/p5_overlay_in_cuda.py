# problem: overlay
# loses: overlay-same, overlay-any, overlay-counted
# reason: wrong language
from warplab import cp

overlay = cp.RawModule(
    code="""
extern "C" __global__ void overlay(const unsigned char* image, const float* heat, float strength, float* out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = image[0] + heat[0] * strength;
}
"""
).get_function("overlay")
