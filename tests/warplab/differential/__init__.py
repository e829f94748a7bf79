"""Random kernels whose results on a GPU the simulator must repeat, bit for bit.

`generator` makes a kernel and its inputs out of a seed, with `statements` and `expressions` for its body and
`approximate` for kernels of approximate functions; `execution` compiles and runs batches of them; `record` runs them on
a GPU and writes `recorded/`; `compare` holds the simulator against it.
"""
