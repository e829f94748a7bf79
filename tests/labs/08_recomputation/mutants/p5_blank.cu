// problem: gate
// loses: gate-right, gate-counted
// reason: wrote nothing
extern "C" __global__ void gate_backward(const float* dy, const float* a, const float* b, float* da, float* db, int n)
{
}
