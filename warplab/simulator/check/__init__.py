"""What compute-sanitizer would catch."""
