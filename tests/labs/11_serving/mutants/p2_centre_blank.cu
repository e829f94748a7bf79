// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: centre wrote nothing. Either it is not written yet

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
}
