"""Microbenchmarks that `warplab.estimating.rates` takes its figures from; `python -m tools.record_sweeps` runs them."""
