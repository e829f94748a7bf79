"""Microbenchmarks that `warplab.estimating.rates` takes its figures from; `record` runs them."""
