"""Programs that others wrote, unmodified, under `warplab run` and `pytest --warplab`."""
