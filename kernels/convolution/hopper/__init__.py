"""Step 5 and its backward passes, by `wgmma` and TMA: an H100, an H200, or the simulator."""
