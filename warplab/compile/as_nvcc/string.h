// What device code has of it, NVRTC knows without.
