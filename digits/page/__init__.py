"""The page: panels of widgets over workspace, runs and plans."""
