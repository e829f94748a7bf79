"""Processes that this one starts and talks to: how to start, ask and end them, and what travels between them."""
