"""The judge, which runs test cells where the student's code cannot reach them."""
