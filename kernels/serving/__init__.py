"""Lab 11, is the GPU busy?

utilisation      11_busy: busy, and why not? `virtual`, `monitor`; `three_roads`; profilers' traces and reports
overlap          11_overlap
    streams      copies and kernels together: `schedule`, `timeline`, `hazards`; `pipeline`, `video`
    sharing      processes on one GPU: `clients`, `mps`, `model`
serve            11_serving
    batching     the `batcher`'s rule, and the theory of its queue; a generator of `tokens`
    engines      what answers a batch, by name; Ray, Triton, TensorFlow
    service      an engine behind HTTP
    load         how a service is loaded and judged

`recordings` is what was measured on a GPU. Importing this package imports none of them.
"""

from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
