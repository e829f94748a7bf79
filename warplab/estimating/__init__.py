"""How long a launch would take on a named card, from its counters."""
