"""What labs share: timing, recordings, launching, lessons."""
