"""Graphs for the tests of exercise 09, as plain dicts with drawn numbers: `Draft`, and graphs full of special cases.

Functions that draw a graph return it with the fewest launches that the pass in question can leave.
"""

import math
from collections import Counter


class Draft:
    """A graph in the making, with drawn numbers. Each method adds a node and returns the tensor that it writes."""

    def __init__(self, rng, count=4):
        self.rng, self.numbers = rng, iter(rng.permutation(900) + 100)
        self.sizes = {"image": count}
        self.graph = {"inputs": {"image": count}, "outputs": [], "nodes": []}

    def node(self, op, inputs, count, **more):
        name = f"t{next(self.numbers)}"
        self.sizes[name] = int(count)
        node = {"op": op, "inputs": list(inputs), "outputs": [(name, 0, int(count))]} | more
        self.graph["nodes"].append(node)
        return name

    def draw(self, *shape):
        return self.rng.uniform(0.3, 1.2, shape) * self.rng.choice([-1, 1], shape)

    def conv(self, x, count=4, window=(3, 1)):
        filters = self.draw(count, self.sizes[x], *window) / math.sqrt(self.sizes[x] * math.prod(window))
        return self.node("conv", [x], count, filters=filters)

    def cbr(self, x, count=4, window=(1, 1), relu=True):
        filters = self.draw(count, self.sizes[x], *window) / math.sqrt(self.sizes[x] * math.prod(window))
        return self.node("cbr", [x], count, filters=filters, bias=self.draw(count), relu=relu)

    def bias(self, x):
        return self.node("bias", [x], self.sizes[x], bias=self.draw(self.sizes[x]))

    def batch_norm(self, x):
        scale, shift = self.draw(self.sizes[x]), self.draw(self.sizes[x])
        return self.node("batch_norm", [x], self.sizes[x], scale=scale, shift=shift)

    def relu(self, x):
        return self.node("relu", [x], self.sizes[x])

    def max_pool(self, x):
        return self.node("max_pool", [x], self.sizes[x])

    def add(self, x, y):
        return self.node("add", [x, y], self.sizes[x])

    def concat(self, *inputs):
        return self.node("concat", inputs, sum(self.sizes[x] for x in inputs))

    def chain(self, x, ops):
        """Add nodes one after another, such as "conv bias relu"."""
        for op in ops.split():
            x = getattr(self, op)(x)
        return x

    def finish(self, *outputs):
        """Return the graph with these outputs, its nodes in a drawn order in which they can run."""
        waiting, ready = self.graph["nodes"], set(self.graph["inputs"])
        self.graph["nodes"], self.graph["outputs"] = [], [*self.graph["outputs"], *outputs]
        unwritten = Counter(slice[0] for node in waiting for slice in node["outputs"])
        while waiting:
            able = [i for i, node in enumerate(waiting) if ready.issuperset(node["inputs"])]
            node = waiting.pop(int(self.rng.choice(able)))
            unwritten.subtract(slice[0] for slice in node["outputs"])
            ready.update(slice[0] for slice in node["outputs"] if not unwritten[slice[0]])
            self.graph["nodes"].append(node)
        return self.graph


def branches(rng, kinds=range(8)):
    draft, ends, launches = Draft(rng), [], 0
    stem = draft.chain("image", "conv bias relu")
    for kind in rng.permutation(kinds):
        x = draft.conv(stem)
        if kind == 0:  # the product is read twice
            ends += [draft.chain(x, "bias relu"), draft.max_pool(x)]
            launches += 4
        elif kind == 1:  # the biased product is read twice
            y = draft.bias(x)
            ends += [draft.relu(y), draft.max_pool(y)]
            launches += 3
        elif kind == 2:  # what the whole makes is read twice
            y = draft.chain(x, "bias relu")
            ends += [y, draft.max_pool(y)]
            launches += 2
        elif kind == 3:  # the product is an output
            draft.graph["outputs"].append(x)
            ends += [draft.chain(x, "bias relu")]
            launches += 3
        elif kind == 4:  # the biased product is an output
            y = draft.bias(x)
            draft.graph["outputs"].append(y)
            ends += [draft.relu(y)]
            launches += 2
        elif kind == 5:  # a bias behind the relu
            ends += [draft.chain(x, "relu bias")]
            launches += 2
        elif kind == 6:  # two biases and two relus for one product
            ends += [draft.chain(x, "bias relu"), draft.chain(x, "bias relu")]
            launches += 5
        else:  # nothing but a sum behind it
            y = draft.conv(stem)
            ends += [draft.relu(draft.add(x, y))]
            launches += 4
    last = ends[0]
    for end in ends[1:]:
        last = draft.add(last, end)
    return draft.finish(last), 1 + launches + len(ends) - 1


def slices_of_two(draft, x, relu):
    """Add a cbr that writes two tensors."""
    one = draft.cbr(x, 5, relu=relu)
    two = f"{one}b"
    draft.graph["nodes"][-1]["outputs"] = [(one, 0, 3), (two, 0, 2)]
    draft.sizes |= {one: 3, two: 2}
    return one, two


def side_by_side(draft, x, relu):
    """Add two nodes that write one tensor: a cbr and a max_pool of x."""
    count = draft.sizes[x]
    one, _ = draft.cbr(x, 2, relu=relu), draft.max_pool(x)
    first, second = draft.graph["nodes"][-2:]
    first["outputs"], second["outputs"] = [(one, count, 2)], [(one, 0, count)]
    draft.sizes[one] = 2 + count
    return one


def families(rng):
    draft = Draft(rng, 5)
    kinds = [((1, 1), True), ((1, 1), False), ((3, 3), True), ((1, 3), True), ((3, 1), True), ((3, 1), False)]
    ends, launches = [], 0
    stem = draft.cbr("image", 6)
    for x in (stem, "image"):
        for i in rng.permutation([*range(len(kinds)), *rng.integers(len(kinds), size=4)]):
            ends.append(draft.cbr(x, int(rng.integers(1, 5)), *kinds[i]))
        launches += len(kinds)
    for x in (stem, "image"):
        ends += [*slices_of_two(draft, x, bool(rng.integers(2))), side_by_side(draft, x, bool(rng.integers(2)))]
        launches += 1
    ends += [draft.cbr(ends[int(i)], 3) for i in rng.choice(len(ends), 4, replace=False)]
    launches += 4
    draft.graph["outputs"].append(ends[int(rng.integers(8))])
    return draft.finish(draft.concat(*ends)), launches + 1


def tangled(rng, kinds=range(10)):
    draft, ends, launches = Draft(rng, 3), [], 1
    stem = draft.cbr("image", 5)

    def branch():
        return draft.cbr(stem, int(rng.integers(1, 5)))

    for kind in rng.permutation(kinds):
        a, b, c = branch(), branch(), branch()
        launches += 3
        if kind == 0:  # one of the inputs has another reader
            ends += [draft.concat(a, b), draft.cbr(b), c]
            launches += 2
        elif kind == 1:  # one of the inputs is an output of the graph
            ends += [draft.concat(a, b), c]
            draft.graph["outputs"].append(a)
            launches += 1
        elif kind == 2:  # one of the inputs is an input of the graph
            draft.graph["inputs"]["side"] = draft.sizes["side"] = 2
            ends += [draft.concat(a, "side", b), c]
            launches += 1
        elif kind == 3:  # one in another
            ends += [draft.concat(a, draft.concat(b, c), draft.max_pool(stem))]
            launches += 1
        elif kind == 4:  # one tensor twice
            ends += [draft.concat(a, b, a), c]
            launches += 1
        elif kind == 5:  # one tensor in two concats
            ends += [draft.concat(a, b), draft.concat(b, c)]
            launches += 2
        elif kind == 6:  # one that stays, in another
            ends += [draft.concat(a, draft.concat(b, "image")), c]
            launches += 1
        elif kind == 7:  # two in one another, and what they make is read twice
            last = draft.concat(draft.concat(a, draft.concat(b, c)), draft.max_pool(stem))
            ends += [draft.cbr(last), draft.max_pool(last)]
            launches += 3
        elif kind == 8:  # one that writes beside another node
            draft.graph["nodes"][-1]["outputs"] = [(c, 0, draft.sizes[c])]
            beside = draft.concat(a, b)
            draft.graph["nodes"][-1]["outputs"] = [(c, draft.sizes[c], draft.sizes[beside])]
            draft.sizes[c] += draft.sizes.pop(beside)
            ends.append(c)
        else:  # a node with two slices, one of them moved, and a node that writes beside it
            draft.graph["nodes"][-1]["outputs"] = [(f"{c}l", 0, draft.sizes[c]), (f"{c}r", 2, 4)]
            draft.graph["nodes"][-1] |= {"filters": draft.draw(draft.sizes[c] + 4, 5, 1, 1)}
            draft.graph["nodes"][-1] |= {"bias": draft.draw(draft.sizes[c] + 4)}
            draft.cbr(stem, 2)
            draft.graph["nodes"][-1]["outputs"] = [(f"{c}r", 0, 2)]
            draft.sizes |= {f"{c}l": draft.sizes[c], f"{c}r": 6}
            ends += [draft.concat(a, f"{c}r"), draft.cbr(f"{c}l"), b]
            launches += 2
    reads = [draft.cbr(end, 2) for end in ends]
    return draft.finish(*reads), launches + len(reads)
