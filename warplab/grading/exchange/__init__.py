"""Plain data between processes that do not trust each other."""
