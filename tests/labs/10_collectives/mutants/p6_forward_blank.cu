// problem: forward
// loses: forward-one, forward-any
// reason: waits for ever|is wrong in
extern "C" __global__ void forward(
    const float* mine, float* next, const volatile unsigned* arrived, volatile unsigned* passed, int n, int slices)
{
}
