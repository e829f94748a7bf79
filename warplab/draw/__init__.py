"""Pictures of a learner's own launches."""
