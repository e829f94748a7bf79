"""Estimated times held to recorded ones."""
