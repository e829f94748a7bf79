"""Pictures, tables and bounds that lesson 06 shows."""
