"""What Nsight Compute would count."""
