"""Tasks other than classification."""
