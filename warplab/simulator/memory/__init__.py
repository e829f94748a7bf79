"""Device memory and how lanes access it."""
