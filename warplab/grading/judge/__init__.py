"""The judge: runs test cells where the student's code cannot reach."""
