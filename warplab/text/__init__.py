"""Tables and number formats, shared by every report."""
