"""What the lab measures on a GPU: three clocks, the engine under them, and other engines beside it."""
