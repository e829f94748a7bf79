"""Maintainers' commands: set-up, pages, measurements, recordings."""
