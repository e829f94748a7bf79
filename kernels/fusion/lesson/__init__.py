"""What the lesson shows around its experiments: the claim's figures, pictures, checks of the learner's passes.

Here is what its cells take from elsewhere: images and network, recordings, the drawn graph.
"""

from kernels.fusion import recordings
from kernels.fusion.lesson.draw_graph import draw_graph
from kernels.fusion.lesson.trial import best_rate, check_fuse_relu, check_may_fuse, most_alive, with_cbrs
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import trained_graph

__all__ = [
    "best_rate",
    "check_fuse_relu",
    "check_may_fuse",
    "digits",
    "draw_graph",
    "most_alive",
    "recordings",
    "trained_graph",
    "with_cbrs",
]
