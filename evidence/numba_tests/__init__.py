"""numba-cuda's own tests, run against the stand-in for numba.cuda."""
