"""Programs that others published, run in the simulator."""
