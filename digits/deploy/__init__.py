"""From a run to a plan, and the plan behind HTTP."""
