"""Facts about hardware: published cards, occupancy, what the driver reports, which backend runs."""
