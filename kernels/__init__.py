"""The kernels of the labs, one package a topic."""
