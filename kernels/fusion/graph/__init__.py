"""A network as a graph: what it is made of, what must hold in it, what it computes, and what running it costs.

`nodes` and `operators` are its parts, `build` makes one, `validate` checks it, `interpret` runs it in NumPy, `cost`
adds up launches, bytes and arithmetic, `saved_graph` keeps it in a file.
"""

from kernels.fusion.graph.graph import Graph, GraphError, Node, Slice, Tensor, assemble, whole

__all__ = ["Graph", "GraphError", "Node", "Slice", "Tensor", "assemble", "whole"]
