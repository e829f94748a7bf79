"""Plain data for processes that do not trust each other."""
