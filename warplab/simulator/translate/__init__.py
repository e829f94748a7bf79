"""Basic blocks of PTX to Python functions on whole arrays."""
