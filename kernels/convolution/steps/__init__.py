"""Steps 1 to 4 of the ladder and their backward passes: from a thread per element to tensor cores by `mma.sync`."""
