"""Pictures of ideas, which lessons draw. Those of a learner's own launches are in warplab.draw."""
