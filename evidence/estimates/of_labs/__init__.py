"""The calls of labs whose times are recorded, a module per lab, named like its folder in `kernels`."""
