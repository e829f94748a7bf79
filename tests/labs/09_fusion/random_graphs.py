"""Random small graphs, to try passes and engines on: branches, sums, concatenations, dead ends, tensors read twice.

Convolutions of 1 × 1 and chains of convolution, batch norm and ReLU come more often than others, so that passes find
something to do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.fusion.graph import Graph
from kernels.fusion.graph.build import Builder

Pick = Callable[[int], int]  # a number from 0 to n - 1
CHANNELS = (1, 3, 4, 8)


def from_seed(seed: int) -> Graph:
    """The random graph of a seed."""
    generator = np.random.default_rng(seed)
    return random_graph(lambda n: int(generator.integers(n)))


def random_graph(pick: Pick) -> Graph:
    """A graph of 1 to 12 layers or modules, and of what may classify their result; each choice is a call of `pick`."""
    return _Growing(pick).graph()


class _Growing:
    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._values = np.random.default_rng(pick(2**16))
        self._builder = Builder("random")
        self._tensors: list[str] = []
        self._layers = 0

    def graph(self) -> Graph:
        size = 1 + self._pick(6)
        for i in range(1 + (self._pick(4) == 0)):
            self._tensors.append(self._builder.input(f"input{i}", (self._one_of(CHANNELS), size, size)))
        for _ in range(1 + self._pick(12)):
            # Twice as likely what real networks are made of.
            grow = self._one_of(
                (self._module, self._module, self._convolutions, self._norm, self._relu, self._sum, self._sum)
                + (self._convolutions, self._norm, self._relu, self._concat, self._pool, self._nothing)
                + (self._constant, self._constant, self._function, self._gate, self._grouped, self._attention)
            )
            grow()
        outputs = [self._tensors[-1 - self._pick(min(3, len(self._tensors)))]]
        if self._pick(2) and (other := self._some()) not in outputs:
            outputs.append(other)
        if self._pick(2):
            outputs.append(self._classified(self._some()))
        return self._builder.graph(*outputs)

    def _one_of(self, choices: tuple) -> object:
        return choices[self._pick(len(choices))]

    def _some(self) -> str:
        """A tensor: half the time the last one, otherwise any."""
        return self._tensors[-1] if self._pick(2) else self._one_of(tuple(self._tensors))

    def _add(self, op: str, inputs: list[str], weights: dict | None = None, **attributes: object) -> str:
        self._layers += 1
        name = self._builder.add(op, f"{op}{self._layers}", inputs, weights, **attributes)
        self._tensors.append(name)
        return name

    def _normal(self, *shape: int) -> np.ndarray:
        return self._values.normal(size=shape)

    def _convolutions(self) -> None:
        """Up to three of one tensor."""
        given = self._some()
        for _ in range(1 + (self._pick(3) == 0) * (1 + self._pick(2))):
            self._convolution(given, self._one_of((1, 1, 3)))

    def _convolution(self, given: str, size: int, same_size: bool = False) -> str:
        channels, height, width = self._builder.shape(given)
        filters = self._one_of(CHANNELS)
        dilation = 1 + (size == 3 and self._pick(4) == 0)
        padding = dilation * (size // 2)
        stride = 1 + (not same_size and min(height, width) > 1 and self._pick(4) == 0)
        weights = {"filters": self._normal(filters, channels, size, size) / np.sqrt(channels * size**2)}
        if self._pick(2):
            weights["bias"] = self._normal(filters)
        steps = {"padding": (padding,) * 4, "stride": (stride, stride), "dilation": (dilation, dilation)}
        return self._add("conv", [given], weights, **steps)

    def _module(self) -> None:
        """Branches of one tensor, joined: convolutions with and without batch norm and ReLU, and pools."""
        given = self._some()
        branches = []
        for _ in range(2 + self._pick(3)):
            kind = self._pick(6)
            branch = given
            if kind == 0:
                branch = self._add("max_pool", [given], window=(3, 3), padding=(1, 1, 1, 1))
            if kind:
                branch = self._convolution(branch, self._one_of((1, 1, 1, 3)), same_size=True)
            if self._pick(3) == 0:
                branch = self._norm(branch)
            if self._pick(3):
                branch = self._add("relu", [branch])
            branches.append(branch)
        self._add("concat", branches)

    def _norm(self, given: str | None = None) -> str:
        given = given or self._some()
        channels = self._builder.shape(given)[0]
        weights = {name: self._normal(channels) for name in ("gamma", "beta", "mean")}
        return self._add("batch_norm", [given], {**weights, "variance": self._values.uniform(0.5, 2, channels)})

    def _relu(self) -> None:
        self._add("relu", [self._some()])

    def _sum(self) -> None:
        """The sum of two tensors of one shape, if need be after a convolution of 1 × 1; at times of one with itself."""
        given = self._some()
        shape = self._builder.shape(given)
        alike = [name for name in self._tensors if self._builder.shape(name) == shape]
        other = self._one_of(tuple(alike))
        if other == given and self._pick(4):
            filters = self._normal(shape[0], shape[0], 1, 1) / np.sqrt(shape[0])
            other = self._add("conv", [given], {"filters": filters})
        self._add("add", [given, other] if self._pick(2) else [other, given])

    def _concat(self) -> None:
        given = self._some()
        size = self._builder.shape(given)[1:]
        alike = tuple(name for name in self._tensors if self._builder.shape(name)[1:] == size)
        parts = [given, *(self._one_of(alike) for _ in range(self._pick(4)))]
        if sum(self._builder.shape(name)[0] for name in parts) <= 32:  # they grow by each other
            self._add("concat", parts)

    def _pool(self) -> None:
        given = self._some()
        size = min(2 + self._pick(2), *self._builder.shape(given)[1:])
        stride = 1 + self._pick(size)
        padding = tuple(self._pick(size) for _ in range(4))
        op = self._one_of(("max_pool", "average_pool"))
        extra = {"count_padding": bool(self._pick(2))} if op == "average_pool" else {}
        self._add(op, [given], window=(size, size), stride=(stride, stride), padding=padding, **extra)

    def _function(self) -> None:
        self._add(self._one_of(("sigmoid", "hard_swish", "tanh", "elu")), [self._some()])

    def _gate(self) -> None:
        """A tensor times one number per channel, known or computed of it."""
        given = self._some()
        channels = self._builder.shape(given)[0]
        if self._pick(2):
            factor = self._add("sigmoid", [self._add("global_average_pool", [given], keep_axes=True)])
        else:
            factor = self._add("constant", [], {"value": self._normal(channels, 1, 1)})
            self._tensors.remove(factor)
        self._add("mul", [given, factor])

    def _grouped(self) -> None:
        """A convolution in groups: a channel each, or two."""
        given = self._some()
        channels = self._builder.shape(given)[0]
        each = 1 + (channels % 2 == 0 and self._pick(2))
        filters = self._normal(channels * (1 + self._pick(2)), each, 3, 3) / 3
        if len(filters) <= 32:
            self._add("conv", [given], {"filters": filters}, padding=(1, 1, 1, 1))

    def _attention(self) -> None:
        """Attention among the rows of an image, a head for each channel."""
        given = self._some()
        turned = self._add("transpose", [given], order=(0, 2, 1))
        scores = self._add("matmul", [given, turned])
        if self._pick(2):
            factor = self._add("constant", [], {"value": np.full((self._builder.shape(given)[0], 1, 1), 0.25)})
            scores = self._add("mul", [scores, factor])
            self._tensors.remove(factor)
        weights = self._add("softmax", [scores])
        del self._tensors[-1 - self._pick(3) :]
        self._add("matmul", [weights, given])

    def _nothing(self) -> None:
        self._add(self._one_of(("identity", "dropout")), [self._some()])

    def _constant(self) -> None:
        """A constant, one number per channel or per element, or a few layers of constants, added to a tensor."""
        given = self._some()
        shape = self._builder.shape(given)
        before = len(self._tensors)
        constant = self._value(shape)
        if self._pick(3) == 0:
            constant = self._add("add", [self._add("relu", [constant]), self._value(shape)])
        del self._tensors[before:]  # else much of the graph would be constant
        self._add("add", [given, constant] if self._pick(2) else [constant, given])

    def _value(self, shape: tuple[int, ...]) -> str:
        return self._add("constant", [], {"value": self._normal(*(shape if self._pick(2) else (shape[0], 1, 1)))})

    def _classified(self, given: str) -> str:
        if self._pick(2):
            given = self._add("global_average_pool", [given], keep_axes=bool(self._pick(2)))
        if len(self._builder.shape(given)) == 3:
            given = self._add("flatten", [given])
        features = self._builder.shape(given)[0]
        weights = {"matrix": self._normal(5, features) / np.sqrt(features), "bias": self._normal(5)}
        given = self._add("dense", [given], weights)
        if self._pick(2):
            given = self._add("relu", [given])
        return self._add("softmax", [given])
