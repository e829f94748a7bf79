// problem: forward
// loses: forward-one, forward-any
// reason: name 'forward' is not defined
#include "../../kernels/collectives/forward.cu"
