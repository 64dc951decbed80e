# SPDX-License-Identifier: Apache-2.0
"""Products in 8 bits, for execute_plan.py: operands and gradients are rounded in front of them.

Numbers are otherwise of 64 bits, so that what 8 bits lose is all that differs from the same plan without them. Scales
are found on the whole tensor, as if ranks told each other their largest values: so it is with delayed scales, which
are exchanged once a step, and with those of blocks, of which each is on one rank. Ranks that scale their slices by
their own largest values (tensorwise) round otherwise, each within half of the last bit of 8.
"""
import numpy as np

from ranks import Fault, need

TYPES = {"float8_e4m3fn": (3, -6, 448.0), "float8_e5m2": (2, -14, 57344.0)}  # bits, least exponent, largest
BLOCKS = {"delayed": None, "tensorwise": None, "blockwise": 128, "mxfp8": 32}  # elements of a scale; None: all


def rounded(x, kind):
    """The nearest number of the type, the even one of two; what is too large becomes the largest."""
    bits, least, most = TYPES[kind]
    exponent = np.maximum(np.frexp(x)[1] - 1, least)
    unit = np.ldexp(1.0, exponent - bits)
    return np.clip(np.round(x / unit) * unit, -most, most)


def largest(x, own):
    """Of each matrix of the first `own` dimensions, of all else together."""
    return np.abs(x).max(axis=tuple(range(own, x.ndim)), keepdims=True, initial=0.0)


def copied(x, kind, block, axis, own=0, tiles=False):
    """The copy in 8 bits, as numbers. One scale for each run of a block along an axis (tiles: for a square of them),
    a power of two; without blocks one for the tensor, or for each of its matrices, which takes the largest value to
    the largest of the type."""
    most = TYPES[kind][2]
    if block is None:
        top = largest(x, own)
        scale = np.where(top > 0, most / np.where(top > 0, top, 1.0), 1.0)
        return rounded(x * scale, kind) / scale
    top, axes = np.abs(x), (-1, -2) if tiles else (axis,)
    for d in axes:
        n = x.shape[d]
        top = np.maximum.reduceat(top, range(0, n, block), axis=d).repeat(block, axis=d)
        top = np.take(top, range(n), axis=d)
    scale = np.exp2(np.floor(np.log2(most / np.where(top > 0, top, 1.0))))
    return rounded(x * scale, kind) / scale


class Copies:
    """Of a product on all ranks: its operands in 8 bits, and the gradient of its result."""

    def __init__(self, oper, operands, firsts):
        need(oper.type in ("MatMul", "BatchMatMul") and len(operands) == 2, oper.type, "is no product in 8 bits")
        self.oper, self.said, self.firsts, self.made = oper, oper.in_8_bits, firsts, []
        need(oper.recipe in BLOCKS and self.said["operands"] == "float8_e4m3fn", oper.name, "in 8 bits of what kind?")
        self.block, self.gradients = BLOCKS[oper.recipe], None
        self.turned = [bool(oper.attrs.get("transpose_" + x)) for x in "ab"]
        self.matrices = len(oper.in_whole[1]) - 2  # dimensions of the weight that no product adds up
        self.forth, self.back = self.both(operands, False), self.both(operands, True)

    def both(self, operands, backward):
        """[operand][rank]: what the product of the forward pass reads, or those of the backward pass. Blocks lie along
        what a product adds up: columns of the first matrix, rows of the second; going back the others."""
        axes = [-1 if self.turned[0] == backward else -2, -2 if self.turned[1] == backward else -1]
        return [self.of_ranks(x, [f[i] for f in self.firsts], self.oper.in_whole[i], self.said["operands"], axes[i],
                              i == 1 and self.oper.recipe == "blockwise") for i, x in enumerate(operands)]

    def of_ranks(self, slices, firsts, shape, kind, axis, tiles=False):
        """Copies of the slices, by scales of the whole."""
        whole, known = np.zeros(shape), np.zeros(shape, bool)
        places = [tuple(slice(a, a + n) for a, n in zip(first, x.shape)) for first, x in zip(firsts, slices)]
        for x, place in zip(slices, places):
            whole[place], known[place] = x, True
        need(known.all(), self.oper.name, "lacks a part of what it copies")
        # an activation has the matrices of the weight behind its samples: their dimension comes first
        outer = list(range(max(len(shape) - 2 - self.matrices, 0), len(shape) - 2)) if self.matrices else []
        order = [*outer, *[d for d in range(len(shape)) if d not in outer]]
        copy = copied(whole.transpose(order), kind, self.block, axis, len(outer), tiles).transpose(np.argsort(order))
        return [copy[place] for place in places]

    def product(self, rank, site, a, b):
        """As the operator without 8 bits, of copies."""
        if any(site.get(f"transpose_x{i}") for i in (1, 2)):
            raise Fault(f"{self.oper.name} is transposed otherwise")
        flip = lambda x, i: np.swapaxes(x, -1, -2) if self.turned[i] else x
        swap = lambda x: np.swapaxes(x, -1, -2)
        (fa, fb), (ba, bb) = ([flip(x[rank], i) for i, x in enumerate(of)] for of in (self.forth, self.back))
        return [a.make(fa @ fb, (a, lambda _: flip(self.gradients[0][rank] @ swap(bb), 0)),
                       (b, lambda _: flip(swap(ba) @ self.gradients[1][rank], 1)))]

    def copy_gradients(self, grads):
        """For the gradient of the first operand, and of the second."""
        need("gradient" in self.said, self.oper.name, "has a gradient and no type for its copies")
        whole = self.oper.out_whole[0]
        self.gradients = [self.of_ranks(grads, self.made, whole, self.said["gradient"], axis) for axis in (-1, -2)]
