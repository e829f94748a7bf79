"""Notebook 11_serving's room: batches, engines, a service in front of them, and load."""
