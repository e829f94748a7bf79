"""What `cuda` and `cp` are: numba.cuda and CuPy on a GPU, their stand-ins on the simulator; and the `%%cuda` magic."""
