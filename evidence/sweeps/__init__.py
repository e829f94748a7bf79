"""Microbenchmarks that `warplab.estimating.rates` takes its figures from; run by `python -m evidence.sweeps.record`."""
