"""What a profile says, as tables."""
