# SPDX-License-Identifier: Apache-2.0
"""Ranks, their slices, and what goes on between them, for execute_plan.py.

A value is a list with an array for each rank of a stage. A layout is a list with the axes that cut each
dimension, pairs (stride, size), outermost first.
"""
import itertools
import math

import numpy as np


class Fault(Exception):
    """The plan cannot be executed, or one rank computes something else."""


def need(condition, *words):
    if not condition:
        raise Fault(" ".join(str(w) for w in words))


# ---- ranks, parts and groups ---------------------------------------------------------------------

def number(rank, axes):
    """Places along some axes as the digits of a number."""
    n = 0
    for stride, size in axes:
        n = n * size + rank // stride % size
    return n


def group(rank, axes):
    base = rank - sum(rank // stride % size * stride for stride, size in axes)
    steps = [[i * stride for i in range(size)] for stride, size in axes]
    return sorted(base + sum(s) for s in itertools.product(*steps))


def parts(axes):
    return math.prod(size for _, size in axes)


def layout_of_map(dev_matrix, tensor_map):
    def axis(a):
        need(0 <= a < len(dev_matrix), "tensor_map names no axis of dev_matrix")
        stride = math.prod(dev_matrix[len(dev_matrix) - a:])
        return stride, dev_matrix[len(dev_matrix) - a - 1]
    return [[axis(a) for a in (m if isinstance(m, list) else [m] if m != -1 else [])]
            for m in tensor_map]


def layout_of_pairs(pairs):
    return [[(stride, cut)] if cut > 1 else [] for cut, stride in pairs]


def same_layout(a, b, ranks):
    return len(a) == len(b) and all(
        parts(x) == parts(y) and all(number(r, x) == number(r, y) for r in range(ranks))
        for x, y in zip(a, b))


def box(shape, layout, rank):
    """First indices and lengths of a rank's slice."""
    need(len(shape) == len(layout), "a layout of", len(layout), "dimensions for", shape)
    need(all(n % parts(axes) == 0 for n, axes in zip(shape, layout)), shape, "is not divisible")
    size = [n // parts(axes) for n, axes in zip(shape, layout)]
    return [number(rank, axes) * n for n, axes in zip(size, layout)], size


def cut(whole, layout, ranks):
    def slice_of(rank):
        first, size = box(whole.shape, layout, rank)
        return whole[tuple(slice(f, f + n) for f, n in zip(first, size))]
    return [slice_of(rank) for rank in range(ranks)]


# ---- collectives ---------------------------------------------------------------------------------

COMBINE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def members(value, axes):
    """The arrays of each rank's group, in its order; they must be of one shape."""
    out = [[value[k] for k in group(rank, axes) if k < len(value)] for rank in range(len(value))]
    need(all(x.shape == g[0].shape for g in out for x in g), "a collective of unequal slices")
    need(all(len(g) == parts(axes) for g in out), "a group with ranks of another stage")
    return out


def all_reduce(value, axes, reduce="sum"):
    out = []
    for of_group in members(value, axes):
        x = of_group[0]
        for y in of_group[1:]:
            x = COMBINE[reduce](x, y)
        out.append(x / len(of_group) if reduce == "mean" else x)
    return out


def own_part(value, axes, dim=0):
    """Of a dimension the part of each rank's number in its group."""
    n = parts(axes)
    need(all(x.ndim > dim and x.shape[dim] % n == 0 for x in value), "dimension", dim, "is not divisible by", n)
    return [np.split(x, n, dim)[group(rank, axes).index(rank)] for rank, x in enumerate(value)]


def all_gather(value, axes, dim=0):
    return [np.concatenate(g, dim) for g in members(value, axes)]


def dealt_part(value, param):
    """Of slices of a parameter the part that each rank has: rows of theirs or, where these do not divide, elements
    row by row, with zeroes behind the last ones."""
    axes, part = param["optimizer_group"]["axes"], param.get("optimizer_part")
    if part is None:
        return own_part(value, axes)
    need(all(x.size <= part * parts(axes) for x in value), param["name"], "has more elements than its parts")
    return own_part([np.append(x, np.zeros(part * parts(axes) - x.size)) for x in value], axes)


def gather_parts(value, param, axes):
    """Slices of a parameter out of such parts."""
    value = all_gather(value, axes)
    if "optimizer_part" not in param:
        return value
    shape = param["slice_shape"]
    need(all(x.size >= math.prod(shape) for x in value), param["name"], "is gathered in part")
    return [x[:math.prod(shape)].reshape(shape) for x in value]


def all_to_all(value, comm):
    """Part i of dim goes to member i; what comes is put together along concat_dim."""
    axes, dim, n = comm["axes"], comm["dim"], parts(comm["axes"])
    need(all(x.shape[dim] % n == 0 for x in value), "dimension", dim, "is not divisible by", n)
    return [np.concatenate([np.split(x, n, dim)[group(rank, axes).index(rank)] for x in of_group],
                           comm["concat_dim"]) for rank, of_group in enumerate(members(value, axes))]


def exchange(value, comm, back=False):
    """Elements of the neighbours around the slice; back: their gradients to where they came from."""
    axes, dim, out = comm["axes"], comm["dim"], []
    along = lambda x, first, last: np.take(x, range(first, last), dim)
    for rank, x in enumerate(value):
        ranks = group(rank, axes)
        p, n = ranks.index(rank), x.shape[dim]
        before, after = comm["before"], comm["after"]
        left = value[ranks[p - 1]] if p > 0 else None
        right = value[ranks[p + 1]] if p + 1 < len(ranks) else None
        need((left is not None or not before[p]) and (right is not None or not after[p]),
             "elements of no neighbour")
        if not back:
            pieces = [along(left, n - before[p], n)] if before[p] else []
            pieces += [x] + ([along(right, 0, after[p])] if after[p] else [])
            out.append(np.concatenate(pieces, dim))
            continue
        own = along(x, before[p], n - after[p]).copy()
        front, behind = np.moveaxis(own, dim, 0), own.shape[dim]
        if left is not None and after[p - 1]:
            end = left.shape[dim]
            front[:after[p - 1]] += np.moveaxis(along(left, end - after[p - 1], end), dim, 0)
        if right is not None and before[p + 1]:
            front[behind - before[p + 1]:] += np.moveaxis(along(right, 0, before[p + 1]), dim, 0)
        out.append(own)
    return out


# ---- between stages of different numbers of ranks ------------------------------------------------

def send(value, said, key, shape, first):
    """Pieces from ranks of one stage become slices of ranks of another; back: the other way."""
    ends = [(said["from_stage"], said["from_layout"]), (said["to_stage"], said["to_layout"])]
    (here, layout), (there, wanted) = ends[::-1] if key == "back_sends" else ends
    layout, wanted = layout_of_pairs(layout), layout_of_pairs(wanted)
    out = {}
    for piece in said[key]:
        need(piece["from_rank"] - first[here] in range(len(value)), piece, "is sent by no rank of stage", here)
        rank, to = piece["from_rank"] - first[here], piece["to_rank"] - first[there]
        held, slots = box(shape, layout, rank)[0], box(shape, wanted, to)
        if to not in out:
            out[to] = np.full(slots[1], np.nan)
        at = [slice(s - h, s - h + n) for s, h, n in zip(piece["start"], held, piece["size"])]
        put = tuple(slice(s - h, s - h + n) for s, h, n in zip(piece["start"], slots[0], piece["size"]))
        x = value[rank][tuple(at)]
        need(list(x.shape) == piece["size"] and out[to][put].shape == x.shape, piece, "reaches out of a slice")
        need(np.isnan(out[to][put]).all(), piece, "comes twice")
        out[to][put] = x
    need(sorted(out) == list(range(len(out))) and not any(np.isnan(x).any() for x in out.values()),
         "a rank of stage", there, "lacks a piece")
    return [out[to].astype(value[0].dtype) for to in sorted(out)]


# ---- redistribution ------------------------------------------------------------------------------

def take(x, dim, outer, size, i):
    """Part i of the middle one of (outer, parts, inner)."""
    need(x.shape[dim] % (outer * size) == 0, "a step does not divide its dimension")
    seen = x.reshape(*x.shape[:dim], outer, size, -1, *x.shape[dim + 1:])
    return np.take(seen, i, dim + 1).reshape(*x.shape[:dim], -1, *x.shape[dim + 1:])


def put_together(pieces, dim, outer):
    x = pieces[0]
    need(x.shape[dim] % outer == 0, "a step does not divide its dimension")
    seen = [p.reshape(*x.shape[:dim], outer, 1, -1, *x.shape[dim + 1:]) for p in pieces]
    return np.concatenate(seen, dim + 1).reshape(*x.shape[:dim], -1, *x.shape[dim + 1:])


def piece_of(x, sides, parts, i):
    """Part i of what the two dimensions of an AlltoAll give, outer first; sides [(dim, outer)]."""
    for (dim, outer), n, own in zip(sides, parts, (i // parts[1], i % parts[1])):
        x = take(x, dim, outer, n, own)
    return x


def of_pieces(pieces, sides, parts):
    rows = [put_together(pieces[i:i + parts[1]], *sides[1]) for i in range(0, len(pieces), parts[1])]
    return put_together(rows, *sides[0])


def send_pieces(value, step, back):
    """An AlltoAll of two dimensions: each rank has a piece for each of its group."""
    axes, inner = [step["axis"]], step["inner_parts"]
    parts = (step["axis"][1] // inner, inner)
    need(step["axis"][1] % inner == 0, "a step divides its devices unevenly")
    cut = [(step["dim"], step["outer"]), (step["inner_dim"], step["inner_outer"])]
    joined = [(step["concat_dim"], step["concat_outer"]),
        (step["concat_inner_dim"], step["concat_inner_outer"])]
    if back:
        cut, joined = joined, cut
    return [of_pieces([piece_of(y, cut, parts, number(rank, axes)) for y in of_group], joined, parts)
        for rank, of_group in enumerate(members(value, axes))]


def apart(step):
    """A step of two dimensions is a step of each."""
    parts = step.get("inner_parts")
    if not parts:
        return [step]
    stride, size = step["axis"]
    need(size % parts == 0, "a step divides its devices unevenly")
    return [dict(step, inner_parts=None, axis=[stride * parts, size // parts]),
        dict(step, inner_parts=None, axis=[stride, parts], dim=step["inner_dim"], outer=step["inner_outer"])]


def move(value, step, back=False):
    """The adjoint (back) of a step of two dimensions runs in any order, as the step does; an AlltoAll is
    one exchange."""
    if step["kind"] == "AlltoAll" and step.get("inner_parts"):
        return send_pieces(value, step, back)
    for one in apart(step):
        value = move_along(value, one, back)
    return value


def move_along(value, step, back):
    axes, kind = [step["axis"]], step["kind"]
    need(kind in ("Slice", "AllGather", "AlltoAll") or not back and kind in ("ReduceScatter", "AllReduce"),
         kind, "in a redistribution")
    size, dim, outer = step["axis"][1], step["dim"], step["outer"]
    joined = (dim, outer) if kind == "AllGather" else (step.get("concat_dim"), step.get("concat_outer"))
    out = []
    for rank, of_group in enumerate(members(value, axes)):
        own, x = number(rank, axes), value[rank]
        if kind == "Slice" and back:
            zeroes = [np.zeros_like(x) for _ in range(size)]
            out.append(put_together(zeroes[:own] + [x] + zeroes[own + 1:], dim, outer))
        elif kind == "Slice":
            out.append(take(x, dim, outer, size, own))
        elif kind == "ReduceScatter":
            out.append(take(sum(of_group), dim, outer, size, own))
        elif kind == "AllReduce":
            out.append(sum(of_group))
        elif back:
            pieces = [take(y, *joined, size, own) for y in of_group]
            out.append(sum(pieces) if kind == "AllGather" else put_together(pieces, dim, outer))
        elif kind == "AllGather":
            out.append(put_together(of_group, dim, outer))
        else:
            out.append(put_together([take(y, dim, outer, size, own) for y in of_group], *joined))
    return out
