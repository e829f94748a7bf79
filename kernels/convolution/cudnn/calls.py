"""The calls of the sources' example, and what each has become: the table that the lesson shows.

The talk of 2017 draws cuDNN's flow as descriptors, a search for an algorithm, and a call. Sources: cuDNN's
documentation, "cudnn_graph library", "cudnn_ops library" and "cudnn_cnn library" for the calls on the left (most of
them deprecated since version 9; cudnnGetConvolutionForwardAlgorithm left in version 8, its …_v7 stayed), "Graph API"
and nvidia-cudnn-frontend 1.28 for those on the right.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A call of 2017. `today`: what one writes with the graph API; `why`: what changed, in a line."""

    then: str
    today: str
    why: str


CALLS = (
    Call("cudnnCreate", "cudnn.create_handle()", "as it was: the library's state for one GPU"),
    Call("cudnnSetStream", "cudnn.set_stream(handle, stream)", "as it was"),
    Call(
        "cudnnCreateTensorDescriptor",
        'x = graph.tensor(name="x", dim=…, stride=…)',
        "a tensor of the graph; its memory is named only when the graph runs",
    ),
    Call(
        "cudnnSetTensor4dDescriptor",
        "dim=[N, C, H, W], stride=[H*W*C, 1, W*C, C]",
        "no formats by name: the order of sizes is fixed, NCHW or NHWC is in the strides",
    ),
    Call("cudnnCreateFilterDescriptor", "w = graph.tensor(…)", "filters are tensors like all others"),
    Call("cudnnSetFilter4dDescriptor", "dim=[K, C // groups, R, S]", "groups follow from the channels of x and w"),
    Call(
        "cudnnCreateConvolutionDescriptor",
        "y = graph.conv_fprop(image=x, weight=w, …)",
        "an operation of the graph; conv_dgrad and conv_wgrad are the backward passes",
    ),
    Call(
        "cudnnSetConvolution2dDescriptor",
        "padding=[1, 1], stride=[1, 1], dilation=[1, 1]",
        "arguments of the operation; cross-correlation by default",
    ),
    Call(
        "cudnnSetConvolutionMathType",
        "compute_data_type=…, graph.deselect_numeric_notes([…])",
        "type of the sums, and a veto: such as no tensor cores for float32 (TF32)",
    ),
    Call(
        "cudnnGetConvolution2dForwardOutputDim",
        "graph.validate(); y.get_dim()",
        "the graph works out the shapes of all results",
    ),
    Call(
        "cudnnGetConvolutionForwardAlgorithm",
        "graph.create_execution_plans([cudnn.heur_mode.A])",
        "heuristics rank plans without running them; an algorithm was one of 8, a plan is an engine and its knobs",
    ),
    Call(
        "cudnnFindConvolutionForwardAlgorithm",
        "graph.build_plans(cudnn.build_plan_policy.ALL), then time each",
        "the caller times the plans, under the conditions that matter to him",
    ),
    Call(
        "cudnnFindConvolutionForwardAlgorithmEx",
        "graph.execute_plan_at_index(pack, workspace, i), timed",
        "the same on the caller's own arrays and workspace",
    ),
    Call(
        "cudnnGetConvolutionForwardWorkspaceSize",
        "graph.get_workspace_size_plan_at_index(i)",
        "per plan; graph.deselect_workspace_greater_than(limit) leaves plans out beforehand",
    ),
    Call(
        "cudnnConvolutionForward",
        "graph.execute({x: a, w: b, y: c}, workspace)",
        "no alpha and beta: scaling and adding are operations of the graph",
    ),
    Call(
        "cudnnAddTensor", "y = graph.bias(input=y, bias=b)", "part of the graph, so fused into the convolution's kernel"
    ),
    Call(
        "cudnnCreateActivationDescriptor",
        "–",
        "nothing to create: an activation is an operation, its parameters are arguments",
    ),
    Call("cudnnSetActivationDescriptor", "–", "likewise"),
    Call(
        "cudnnActivationForward",
        "y = graph.relu(input=y)",
        "fused likewise; the result between them never reaches memory",
    ),
    Call("cudnnDestroyTensorDescriptor", "–", "Python frees the graph and its plans"),
    Call("cudnnDestroyFilterDescriptor", "–", "likewise"),
    Call("cudnnDestroyConvolutionDescriptor", "–", "likewise"),
    Call("cudnnDestroyActivationDescriptor", "–", "likewise"),
    Call("cudnnDestroy", "cudnn.destroy_handle(handle)", "as it was"),
)
