"""Processes that share one GPU: in turns, through MPS, in streams, in batches; measured and modelled."""
