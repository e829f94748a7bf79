"""The network that the lab optimises: its images, its layers, its training, its weights, and it optimised by type."""
