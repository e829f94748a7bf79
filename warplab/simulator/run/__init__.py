"""Running a launch: scheduling, barriers, warp-wide and asynchronous operations."""
