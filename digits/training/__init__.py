"""Training as jobs: a run is a folder, its worker a process."""
