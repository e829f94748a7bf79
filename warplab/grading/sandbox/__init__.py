"""Where a student's code runs, isolated from everything else."""
