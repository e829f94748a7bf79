"""The simulator: its PTX instructions, what a GPU made of them, its speed."""
