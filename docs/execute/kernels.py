# SPDX-License-Identifier: Apache-2.0
"""What operators compute, for execute_plan.py: numbers with a tape, and a function for each type.

A kernel sees one rank: its slices of the operands (Var) and what it has to know of their place (Site).
It says only how the results follow from the operands; the gradients follow from the tape.
"""
import numpy as np


class Tape(list):
    """What was computed on a rank, in order; sweep() carries gradients back over a part of it."""

    def sweep(self, first=0):
        while len(self) > first:
            out, parents = self.pop()
            if out.grad is not None:
                for parent, back in parents:
                    parent.add_grad(back(out.grad))


def settle(grad, shape):
    """Sums a gradient over the dimensions along which its number was broadcast."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    long = tuple(d for d, n in enumerate(shape) if n == 1 and grad.shape[d] != 1)
    return grad.sum(axis=long, keepdims=True) if long else grad


class Var:
    """An array, and the gradient of it once that has come."""

    def __init__(self, value, tape=None):
        self.value, self.tape, self.grad = np.asarray(value), tape, None

    shape = property(lambda self: self.value.shape)

    def add_grad(self, grad):
        grad = settle(np.asarray(grad, float), self.shape)
        self.grad = grad if self.grad is None else self.grad + grad

    def make(self, value, *parents):
        """A result, and for each (operand, function) how its gradient follows from the result's."""
        out = Var(value, self.tape)
        self.tape.append((out, [p for p in parents if isinstance(p[0], Var)]))
        return out

    def __add__(self, o):
        return self.make(self.value + raw(o), (self, lambda g: g), (o, lambda g: g))

    def __sub__(self, o):
        return self.make(self.value - raw(o), (self, lambda g: g), (o, lambda g: -g))

    def __mul__(self, o):
        return self.make(self.value * raw(o), (self, lambda g: g * raw(o)),
                         (o, lambda g: g * self.value))

    def __truediv__(self, o):
        return self * (o ** -1.0 if isinstance(o, Var) else 1.0 / o)

    def __neg__(self):
        return self * -1.0

    def __pow__(self, n):
        return self.unary(lambda x: x ** n, lambda x, y: n * x ** (n - 1))

    def unary(self, f, slope):
        y = f(self.value)
        return self.make(y, (self, lambda g: g * slope(self.value, y)))

    def exp(self):
        return self.unary(np.exp, lambda x, y: y)

    def log(self):
        return self.unary(np.log, lambda x, y: 1 / x)

    def tanh(self):
        return self.unary(np.tanh, lambda x, y: 1 - y * y)

    def sum(self, axes, keep=True):
        spread = lambda g: np.broadcast_to(g if keep else np.expand_dims(g, axes), self.shape)
        return self.make(self.value.sum(axis=axes, keepdims=keep), (self, spread))

    def mean(self, axes, keep=True):
        return self.sum(axes, keep) / float(np.prod([self.shape[d] for d in axes]))

    def largest(self, axes, keep=True):
        most = self.value.max(axis=axes, keepdims=True)
        back = lambda g: (self.value == most) * (g if keep else np.expand_dims(g, axes))
        return self.make(most if keep else np.squeeze(most, axes), (self, back))

    def reshape(self, shape):
        return self.make(self.value.reshape(shape), (self, lambda g: g.reshape(self.shape)))

    def transpose(self, perm):
        return self.make(self.value.transpose(perm),
                         (self, lambda g: g.transpose(np.argsort(perm))))

    def swap(self):
        n = len(self.shape)
        return self.transpose([*range(n - 2), n - 1, n - 2])

    def take(self, index):
        """Elements by an index of numpy's; those that are taken twice get both gradients."""
        def back(g):
            whole = np.zeros(self.shape)
            np.add.at(whole, index, g)
            return whole
        return self.make(self.value[index], (self, back))

    def dot(self, o):
        return self.make(self.value @ o.value,
                         (self, lambda g: g @ np.swapaxes(o.value, -1, -2)),
                         (o, lambda g: np.swapaxes(self.value, -1, -2) @ g))

    def pad(self, widths, fill=0.0):
        """Widths before and after of each dimension; what is negative is cut off."""
        cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(self.shape, widths))
        more = [(max(b, 0), max(a, 0)) for b, a in widths]
        x = self.take(cut)
        inner = tuple(slice(b, b + n) for (b, _), n in zip(more, x.shape))
        return x.make(np.pad(x.value, more, constant_values=fill), (x, lambda g: g[inner]))


def raw(x):
    return x.value if isinstance(x, Var) else x


def join(parts, axis):
    ends = np.cumsum([p.shape[axis] for p in parts])
    piece = lambda k: lambda g: np.take(g, range(ends[k] - parts[k].shape[axis], ends[k]), axis)
    return parts[0].make(np.concatenate([p.value for p in parts], axis),
                         *[(p, piece(k)) for k, p in enumerate(parts)])


class Site:
    """Where the slices lie. Of each operand and result the first index and the length of the slice in
    each dimension (in_first, out_first, out_shape), and the length of the whole (in_whole, out_whole),
    of one micro-batch; attributes are the graph's."""

    def __init__(self, kind, attrs, nin, in_first, in_whole, out_first, out_shape, out_whole, out_dtype):
        self.kind, self.attrs, self.nin = kind, attrs, nin
        self.in_first, self.in_whole = in_first, in_whole
        self.out_first, self.out_shape, self.out_whole = out_first, out_shape, out_whole
        self.out_dtype = out_dtype

    def get(self, *names, default=None):
        return next((self.attrs[n] for n in names if n in self.attrs), default)

    def axes(self, rank, name="axis", default=None):
        axis = self.get(name, default=default)
        axis = range(rank) if axis in (None, [], ()) else axis if isinstance(axis, list) else [axis]
        return tuple(a % rank for a in axis)


# ---- operators; a kernel gives a list of results -------------------------------------------------

def elementwise(f):
    return lambda site, *x: [f(*x)]


def same(x):
    return x.make(x.value, (x, lambda g: g))


def gelu(x):
    return x * (((x + x * x * x * 0.044715) * 0.7978845608).tanh() + 1.0) * 0.5


def sigmoid(x):
    return ((-x).exp() + 1.0) ** -1.0


def cast(site, x):
    if site.out_dtype[0].startswith(("float", "bfloat")):
        return [x * 1.0]
    return [Var(np.floor(x.value).astype(int), x.tape)]


def reduction(f):
    def kernel(site, x):
        keep = bool(site.get("keep_dims", "keepdims", default=False))
        return [f(x, site.axes(len(x.shape)), keep)]
    return kernel


def softmax(site, x):
    axes = site.axes(len(x.shape), default=-1)
    e = (x - raw(x).max(axis=axes, keepdims=True)).exp()
    return [e / e.sum(axes)]


def layer_norm(site, x, gamma, beta):
    axes = tuple(range(site.get("begin_norm_axis", default=1) % len(x.shape), len(x.shape)))
    mean = x.mean(axes)
    off = x - mean
    variance = (off * off).mean(axes)
    y = off * (variance + site.get("epsilon", default=1e-7)) ** -0.5 * gamma + beta
    return [y, mean, variance]


def rms_norm(site, x, gamma):
    axes = tuple(range(len(x.shape) - len(gamma.shape), len(x.shape)))
    rstd = ((x * x).mean(axes) + site.get("epsilon", default=1e-6)) ** -0.5
    return [x * rstd * gamma, rstd]


def batch_norm(site, x, gamma, beta, *_):
    """Statistics of all ranks: each gives the mean of its own part and gets the common one."""
    axes, row = (0, *range(2, len(x.shape))), (1, -1, *[1] * (len(x.shape) - 2))
    mean = yield 1, x.mean(axes, False)
    off = x - mean.reshape(row)
    variance = yield 2, (off * off).mean(axes, False)
    norm = (variance + site.get("epsilon", default=1e-5)) ** -0.5
    y = off * norm.reshape(row) * gamma.reshape(row) + beta.reshape(row)
    return [y, mean, variance, mean * 1.0, variance * 1.0]


def reshape(site, x):
    samples, shape = site.get("sequence_first"), site.out_shape[0]
    if samples:  # rows of several samples stand token by token
        rows, few = max(x.shape[0], shape[0]), min(x.shape[0], shape[0])
        split = [few // samples, samples, rows // few, -1]
        if rows == x.shape[0]:
            split[1:3] = split[2:0:-1]
        x = x.reshape(split).transpose([0, 2, 1, 3])
    return [x.reshape(shape)]


def transpose(site, x):
    return [x.transpose(site.get("perm", "input_perm"))]


def matmul(site, a, b):
    a = a.swap() if site.get("transpose_a") or site.get("transpose_x1") else a
    b = b.swap() if site.get("transpose_b") or site.get("transpose_x2") else b
    return [a.dot(b)]


def dropout(site, x):
    """Which elements are kept follows from their place in the whole."""
    index = np.indices(x.shape)
    place = sum((i + first) * prime for i, first, prime in
                zip(index, site.in_first[0], (7919, 104729, 1299709, 15485863)))
    keep = site.get("keep_prob", default=1 - site.get("p", default=0.5))
    mask = (place * 2654435761 >> 7) % 1000 < 1000 * keep
    return [x * (mask / keep), Var(mask.astype(int), x.tape)]


def split(site, x):
    """Pieces along a dimension, each as long as its result."""
    axis, ends = site.get("axis", "split_dim", default=0) % len(x.shape), [0]
    for shape in site.out_shape:
        ends.append(ends[-1] + shape[axis])
    piece = lambda a, b: (*[slice(None)] * axis, slice(a, b))
    return [x.take(piece(a, b)) for a, b in zip(ends, ends[1:])]


def choose(f):
    """The larger or the smaller one; both get half a gradient where they are equal."""
    def kernel(site, a, b):
        y = f(raw(a), raw(b))
        share = lambda x, o: (raw(x) == y) / (1.0 + (raw(x) == raw(o)))
        return [a.make(y, (a, lambda g: g * share(a, b)), (b, lambda g: g * share(b, a)))]
    return kernel


def bias_add(site, x, b):
    return [x + b.reshape((1, -1, *[1] * (len(x.shape) - 2)))]


def gather(site, table, index):
    """A rank looks up the rows that it holds, from in_first on; the others give zeroes."""
    axis = site.get("axis", default=0) % len(table.shape)
    if site.get("batch_dims", default=0):
        assert site.get("batch_dims") == axis == 1
        return [table.take((np.arange(len(raw(index))).reshape(-1, *[1] * (raw(index).ndim - 1)), raw(index)))]
    at = raw(index) - site.in_first[0][axis]
    here = (at >= 0) & (at < table.shape[axis])
    rows = table.take((*[slice(None)] * axis, np.where(here, at, 0)))
    tail = [1] * (len(table.shape) - axis - 1)
    return [rows * here.reshape(*[1] * axis, *here.shape, *tail).astype(float)]


def gather_d(site, x, index):
    """Elements at indices along a dimension, which is whole."""
    dim = site.get("dim") % len(x.shape)
    at = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    at[dim] = raw(index)
    return [x.take(tuple(at))]


def one_hot(site, index, on, off):
    """The classes of the slice: from out_first on."""
    axis = site.get("axis", default=-1) % len(site.out_shape[0])
    shape = [1] * len(site.out_shape[0])
    shape[axis] = -1
    classes = (np.arange(site.out_shape[0][axis]) + site.out_first[0][axis]).reshape(shape)
    chosen = (np.expand_dims(raw(index), axis) == classes).astype(float)
    return [on * chosen + off * (1 - chosen)]


def topk(site, x):
    order = np.argsort(-raw(x), axis=-1, kind="stable")[..., :site.get("k")]
    index = (*np.ogrid[tuple(slice(n) for n in order.shape)][:-1], order)
    return [x.take(index), Var(order, x.tape)]


def seats(site, index, places, first=0, experts=None):
    """Of each token's choices the place at the expert, -1 where it has none left."""
    capacity, (samples, tokens, _) = site.get("capacity"), index.shape
    each, seat = tokens * capacity // places, np.full(index.shape, -1)
    for b, s in np.ndindex(samples, tokens):
        used = {} if s % each == 0 else used
        for k, e in enumerate(index[b, s] - first):
            if experts is None or 0 <= e < experts:
                if used.setdefault(e, 0) < capacity:
                    seat[b, s, k] = s // each * capacity + used[e]
                used[e] += 1
    return seat


def topk_router(site, index):
    """The token at each place of an expert, and the place of each token's experts among all places; from 1
    on, 0 where there is none."""
    samples, experts, places = site.out_shape[0]
    token, place = np.zeros((samples, experts, places)), np.zeros(raw(index).shape)
    for b, chosen in enumerate(raw(index)):
        used = [0] * experts
        for s, k in np.ndindex(*chosen.shape):
            e = chosen[s, k]
            if used[e] < places:
                token[b, e, used[e]], place[b, s, k] = s + 1, e * places + used[e] + 1
            used[e] += 1
    return [Var(token.astype(int), index.tape), Var(place.astype(int), index.tape)]


def moe_dispatch(site, x, index):
    """Tokens at the places of the experts that the rank has, in the tokens' order."""
    samples, experts, places, _ = site.out_shape[0]
    first, token = site.out_first[0][1], np.full((samples, experts, places), -1)
    seat = seats(site, raw(index), places, first, experts)
    for b, s, k in zip(*np.nonzero(seat >= 0)):
        token[b, raw(index)[b, s, k] - first, seat[b, s, k]] = s
    rows = x.take((np.arange(samples)[:, None, None], np.maximum(token, 0)))
    return [rows * (token >= 0)[..., None].astype(float)]


def moe_weights(site, weights, index):
    """Of each choice its weight, at the place of the token at the expert."""
    samples, experts, places, _ = site.out_shape[0]
    first, token = site.out_first[0][1], np.zeros((samples, experts, places), int)
    choice, filled, seat = token.copy(), token.copy(), seats(site, raw(index), places, first, experts)
    for b, s, k in zip(*np.nonzero(seat >= 0)):
        at = b, raw(index)[b, s, k] - first, seat[b, s, k]
        token[at], choice[at], filled[at] = s, k, 1
    found = weights.take((np.arange(samples)[:, None, None], token, choice)) * filled.astype(float)
    return [found.reshape((*token.shape, 1))]


def moe_combine(site, answers, index, weights=None):
    """What a token's experts made of it, weighted or as it is."""
    samples, experts, places, _ = answers.shape
    seat = seats(site, raw(index), places)
    rows = answers.take((np.arange(samples)[:, None, None], raw(index), np.maximum(seat, 0)))
    share = (seat >= 0).astype(float)
    if weights is None:
        return [(rows * share[..., None]).sum((2,), False)]
    share = weights * share
    return [(rows * share.reshape((*share.shape, 1))).sum((2,), False)]


def cum_sum(site, x):
    axis = site.get("axis") % len(x.shape)
    n = x.shape[axis]
    before = np.tril(np.ones((n, n)), -1 if site.get("exclusive") else 0)
    before = before.T if site.get("reverse") else before
    turned = lambda v, m: np.moveaxis(np.tensordot(m, v, (1, axis)), 0, axis)
    return [x.make(turned(raw(x), before), (x, lambda g: turned(g, before.T)))]


def less(site, a, b):
    return [Var((raw(a) < raw(b)).astype(float), a.tape)]


def concat(site, *parts):
    return [join(parts, site.get("axis", default=0) % len(parts[0].shape))]


def strided_slice(site, x):
    """A dimension that is cut is taken as a whole; one of shrink_axis_mask is gone from the result."""
    index, lengths = [], list(site.out_shape[0])
    for d, n in enumerate(x.shape):
        first, step = (site.get(name, default=other)[d] for name, other in
                       (("begin", None), ("strides", [1] * len(x.shape))))
        if site.get("shrink_axis_mask", default=0) >> d & 1:
            index.append(first % n)
            continue
        if site.get("begin_mask", default=0) >> d & 1 or n != site.in_whole[0][d]:
            first = 0
        first, length = first % n, lengths.pop(0)
        index.append(slice(first, first + length * step, step))
    return [x.take(tuple(index))]


def tile(site, x):
    wide = x.reshape([1] * (len(site.out_shape[0]) - len(x.shape)) + list(x.shape))
    index = np.ix_(*[np.arange(n) % m for n, m in zip(site.out_shape[0], wide.shape)])
    return [wide.take(index)]


def windows(site, x, kernel, fill):
    """Views of x, one for each place in the window: result element o begins at o stride - pad in the
    whole operand, of which the slice begins at in_first."""
    spatial = range(len(x.shape) - 2)
    pick = lambda v, k: v if isinstance(v, int) else v[k if len(v) == len(spatial) else k + 2]
    stride = [pick(site.get("strides", "stride", default=1), k) for k in spatial]
    apart = [pick(site.get("dilation", default=1), k) for k in spatial]
    widths, counts = [(0, 0), (0, 0)], site.out_shape[0][2:]
    for k in spatial:
        reach = (kernel[k] - 1) * apart[k] + 1
        whole, made = site.in_whole[0][k + 2], site.out_whole[0][k + 2]
        mode = str(site.get("pad_mode", default="valid")).lower()
        before = {"same": max((made - 1) * stride[k] + reach - whole, 0) // 2, "valid": 0}.get(mode)
        if before is None:
            pad = site.get("pad", "pad_list", "padding", default=0)
            before = pad if isinstance(pad, int) else pad[2 * k] if len(pad) > len(spatial) else pad[k]
        before += site.in_first[0][k + 2] - site.out_first[0][k + 2] * stride[k]
        after = (counts[k] - 1) * stride[k] + reach - before - x.shape[k + 2]
        widths.append((before, after))
    x = x.pad(widths, fill)
    for place in np.ndindex(*kernel):
        part = [slice(p * a, p * a + (n - 1) * s + 1, s)
                for p, a, n, s in zip(place, apart, counts, stride)]
        yield place, x.take((slice(None), slice(None), *part))


def conv2d(site, x, weight):
    """Channels are in groups, with as many of the weight's rows each; a product for each group."""
    groups, y = site.get("group", "groups", default=1), None
    for place, part in windows(site, x, weight.shape[2:], 0.0):
        n, c, h, w = part.shape
        rows = weight.take((slice(None), slice(None), *place)).reshape([groups, -1, c // groups])
        flat = part.reshape([n, groups, c // groups, h, w]).transpose([1, 0, 3, 4, 2])
        flat = flat.reshape([groups, n * h * w, c // groups]).dot(rows.swap())
        y = flat if y is None else y + flat
    return [y.reshape([groups, n, h, w, -1]).transpose([1, 0, 4, 2, 3]).reshape([n, -1, h, w])]


def max_pool(site, x):
    kernel = site.get("kernel_size")
    kernel = [kernel] * 2 if isinstance(kernel, int) else kernel[-2:]
    parts = [p.reshape((1, *p.shape)) for _, p in windows(site, x, kernel, -np.inf)]
    return [join(parts, 0).largest((0,), False)]


def flash_attention(site, q, k, v, *mask):
    """Query i of the slice is query in_first + i of the sequence; keys are whole."""
    layout, mode = site.get("input_layout", default="BSH"), site.get("sparse_mode", default=0)
    s = layout.index("S")
    first = site.in_first[0][s]
    depth = site.in_whole[0][-1] if layout[-1] == "D" else site.in_whole[0][-1] // site.get("head_num")
    names = "".join(c for c in layout if c != "H") + ("ND" if "H" in layout else "")

    def heads(x):
        x = x.reshape([*x.shape[:-1], -1, depth]) if "H" in layout else x
        return x.transpose([names.index(c) for c in "BNSD"])

    group = site.in_whole[0][layout.index("N")] // site.in_whole[1][layout.index("N")] \
        if "N" in layout else site.in_whole[0][-1] // site.in_whole[1][-1]
    at = lambda i: site.in_first[i][layout.index("N")] if "N" in layout else \
        site.in_first[i][-1] // depth
    q, k, v = heads(q), heads(k), heads(v)
    own = (np.arange(q.shape[1]) + at(0)) // group - at(1)  # the head of keys of each head
    k, v = k.take((slice(None), own)), v.take((slice(None), own))
    queries, keys = site.in_whole[0][s], k.shape[2]
    place = np.arange(q.shape[2])[:, None] + first
    if mode in (2, 3):
        hidden = np.arange(keys) > place + (keys - queries if mode == 3 else 0)
    elif mode == 4:
        seen, far = np.arange(keys) - place - (keys - queries), 2**31 - 1
        hidden = (seen < -site.get("pre_tokens", default=far)) | (seen > site.get("next_tokens", default=far))
    elif mode == 0:
        hidden = raw(mask[0]).astype(bool) if mask else np.zeros((1, 1), bool)
    else:
        raise NotImplementedError(f"sparse_mode {mode}")
    score = q.dot(k.swap()) * float(site.get("scale_value", default=1.0))
    score = score * (~hidden).astype(float) + np.where(hidden, -1e30, 0.0)
    most = raw(score).max(axis=-1, keepdims=True)
    e = (score - most).exp()
    total = e.sum((3,))
    y = (e / total).dot(v).transpose(["BNSD".index(c) for c in names])
    lanes = [Var(np.repeat(x, 8, axis=3), q.tape) for x in (most, raw(total))]
    return [*lanes, Var(np.zeros(site.out_shape[-2]), q.tape), y.reshape(site.out_shape[-1])]


def sigmoid_loss(x, label):
    softplus = x.unary(lambda v: np.logaddexp(0, v), lambda v, _: 1 / (1 + np.exp(-v)))
    return softplus - x * label


def cross_entropy_sums(site, x, label, most):
    """Each class's exponential, and the logit of the label where the rank has it."""
    x = x - raw(most)[:, None]
    at = raw(label) - site.in_first[0][1]
    here = (at >= 0) & (at < x.shape[1])
    chosen = x.take((np.arange(len(at)), np.where(here, at, 0))) * here.astype(float)
    return [x.exp().sum((1,), False), chosen]


def loss_by_class(site, x, label):
    """The mean over the rows that are here."""
    x = x - raw(x).max(axis=1, keepdims=True)
    return [(x.exp().sum((1,), False).log() - x.take((np.arange(x.shape[0]), raw(label)))).mean((0,), False)]


def loss_by_shares(site, x, share):
    """Of each row; also the gradient by the logits, through which none flows."""
    x = x - raw(x).max(axis=1, keepdims=True)
    e = x.exp()
    loss = ((e.sum((1,)).log() - x) * raw(share)).sum((1,), False)
    return [loss, Var(raw(e) / raw(e).sum(axis=1, keepdims=True) - raw(share), x.tape)]


KERNELS = {
    "Abs": elementwise(lambda x: x.unary(np.abs, lambda v, _: np.sign(v))),
    "Add": elementwise(lambda a, b: a + b),
    "BatchMatMul": matmul,
    "BatchNorm": batch_norm,
    "BiasAdd": bias_add,
    "Cast": cast,
    "Concat": concat,
    "Conv2D": conv2d,
    "CrossEntropySums": cross_entropy_sums,
    "CumSum": cum_sum,
    "Div": elementwise(lambda a, b: a / b),
    "Dropout": dropout,
    "Exp": elementwise(Var.exp),
    "ExpandDims": reshape,
    "FlashAttentionScore": flash_attention,
    "Flatten": reshape,
    "Gather": gather,
    "GatherD": gather_d,
    "GeLU": elementwise(gelu),
    "LayerNorm": layer_norm,
    "Less": less,
    "Log": elementwise(Var.log),
    "MatMul": matmul,
    "Maximum": choose(np.maximum),
    "MaxPool": max_pool,
    "Minimum": choose(np.minimum),
    "MoeCombine": moe_combine,
    "MoeDispatch": moe_dispatch,
    "AddcmulExt": elementwise(lambda x, a, b: x + a * b),
    "MoeGate": elementwise(lambda a, b, c: a * b * c),
    "MoeWeights": moe_weights,
    "Mul": elementwise(lambda a, b: a * b),
    "Neg": elementwise(lambda x: -x),
    "OneHot": one_hot,
    "RealDiv": elementwise(lambda a, b: a / b),
    "Receive": elementwise(same),
    "ReduceMax": reduction(Var.largest),
    "ReduceMean": reduction(Var.mean),
    "ReduceMin": reduction(lambda x, axes, keep: -(-x).largest(axes, keep)),
    "ReduceSum": reduction(Var.sum),
    "ReLU": elementwise(lambda x: x.unary(lambda v: np.maximum(v, 0), lambda v, _: v > 0)),
    "Reshape": reshape,
    "RmsNorm": rms_norm,
    "Rsqrt": elementwise(lambda x: x ** -0.5),
    "Send": elementwise(same),
    "Sigmoid": elementwise(sigmoid),
    "SigmoidCrossEntropyWithLogits": elementwise(sigmoid_loss),
    "SiLU": elementwise(lambda x: x * sigmoid(x)),
    "Softmax": softmax,
    "SoftmaxCrossEntropyWithLogits": loss_by_shares,
    "SparseSoftmaxCrossEntropyWithLogits": loss_by_class,
    "Split": split,
    "Sqrt": elementwise(lambda x: x ** 0.5),
    "Square": elementwise(lambda x: x * x),
    "Squeeze": reshape,
    "StridedSlice": strided_slice,
    "Sub": elementwise(lambda a, b: a - b),
    "Tanh": elementwise(Var.tanh),
    "Tile": tile,
    "TopK": topk,
    "TopKRouter": topk_router,
    "Transpose": transpose,
}
