# SPDX-License-Identifier: Apache-2.0
"""Small graphs for execute.py: what the models of make_model do not have, or have too large."""


class Graph:
    def __init__(self, name, inputs):
        self.name, self.inputs = name, inputs
        self.operators, self.parameters, self.constants = [], [], []

    def parameter(self, name, *shape, trainable=True):
        self.parameters.append({"name": name, "shape": list(shape), "dtype": "float32",
                                "trainable": trainable})
        return name

    def op(self, name, kind, inputs, *more, in_strategy=None, out_strategy=None, **attrs):
        """Its first result is called as the operator is."""
        o = {"name": f"Default/{name}/{kind}-op0", "type": kind, "inputs": inputs, "attrs": attrs,
             "outputs": [{"name": n} for n in (name, *more)]}
        o |= {k: v for k, v in (("in_strategy", in_strategy), ("out_strategy", out_strategy)) if v}
        self.operators.append(o)
        return name

    def loss(self, x, classes):
        """Softmax of x [batch, classes], and the mean of the label's logarithm."""
        self.constants += [{"name": n, "shape": [], "dtype": "float32"} for n in ("on", "off")]
        self.op("one_hot", "OneHot", ["label", "on", "off"], depth=classes, axis=-1)
        x = self.op("log", "Log", [self.op("softmax", "Softmax", [x], axis=[-1])])
        x = self.op("sum", "ReduceSum", [self.op("chosen", "Mul", [x, "one_hot"])], axis=[-1])
        self.op("loss", "ReduceMean", [x])
        return {"schema": "autopar-graph/1", "name": self.name, "inputs": self.inputs,
                "parameters": self.parameters, "constants": self.constants,
                "operators": self.operators, "outputs": ["loss"]}


def features(*shape):
    return [{"name": "x", "shape": list(shape), "dtype": "float32", "batch_dim": 0},
            {"name": "label", "shape": [shape[0]], "dtype": "int32", "batch_dim": 0}]


def mlp(pins=(), tied=False):
    """Three products, tied: the last with the first one's weight; pins: strategies of some."""
    pins, g = dict(pins), Graph("mlp", features(24, 12))
    first = g.parameter("fc1.weight", 24, 12)
    last = first if tied else g.parameter("fc3.weight", 24, 12)

    def product(name, *inputs, **attrs):
        strategy = pins.get(name, (None, None))
        return g.op(name, "MatMul", list(inputs), in_strategy=strategy[0], out_strategy=strategy[1],
                    **attrs)

    x = product("fc1", "x", first, transpose_b=True)
    x = g.op("bias1", "BiasAdd", [x, g.parameter("fc1.bias", 24)])
    x = g.op("relu", "ReLU", [x])
    x = product("fc2", x, g.parameter("fc2.weight", 24, 24))
    x = g.op("tanh", "Tanh", [x])
    return g.loss(product("fc3", x, last), 12)


def look():
    """A table that is looked up and multiplied with, both cut by its rows."""
    g = Graph("look", [{"name": n, "shape": [24], "dtype": "int32", "batch_dim": 0}
                       for n in ("ids", "label")])
    table = g.parameter("table", 12, 8)
    x = g.op("look", "Gather", [table, "ids"], axis=0, in_strategy=[[4, 1], [1]])
    x = g.op("dropped", "Dropout", [g.op("tanh", "Tanh", [x])], "mask", keep_prob=0.75)
    return g.loss(g.op("head", "MatMul", [x, table], transpose_b=True,
                       in_strategy=[[2, 1], [4, 1]]), 12)


def views():
    """Products of equal views of one tensor, cut as in tensor parallelism; one view has another reader."""
    g = Graph("views", features(24, 2, 4))
    x = g.op("gain", "Mul", ["x", g.parameter("gain.weight", 4)], in_strategy=[[1, 1, 4], [4]])
    y = []
    for name in "abc":
        view = g.op("rows." + name, "Flatten", [x])
        y.append(g.op("product." + name, "MatMul", [view, g.parameter(name + ".weight", 8, 8)], transpose_b=True,
                      in_strategy=[[1, 1], [4, 1]]))
    y.append(g.op("again", "MatMul", ["rows.b", g.parameter("again.weight", 8, 8)], transpose_b=True,
                  in_strategy=[[4, 1], [1, 1]]))
    x = y[0]
    for i, name in enumerate(y[1:]):
        x = g.op(f"add{i}", "Add", [x, name])
    return g.loss(g.op("tanh", "Tanh", [x]), 8)


def cnn(pins=()):
    """Windows that overlap, with padding at both ends, at one, and none; pins: height and width."""
    pins, g = dict(pins), Graph("cnn", features(12, 3, 24, 16))

    def conv(name, x, *shape, **attrs):
        strategy = [[1, 1, *pins[name]], [1, 1, 1, 1]] if name in pins else None
        return g.op(name, "Conv2D", [x, g.parameter(name + ".weight", *shape)],
                    in_strategy=strategy, kernel_size=list(shape[2:]), **attrs)

    def norm(name, x, channels):
        inputs = [x] + [g.parameter(f"{name}.{p}", channels, trainable=p in ("gamma", "beta"))
                        for p in ("gamma", "beta", "moving_mean", "moving_variance")]
        more = [f"{name}.{r}" for r in ("mean", "variance", "saved_mean", "saved_variance")]
        return g.op(name, "BatchNorm", inputs, *more, is_training=True, epsilon=1e-4)

    x = conv("conv1", "x", 6, 3, 3, 3, stride=[1, 1], pad_mode="same")
    x = g.op("relu1", "ReLU", [norm("norm1", x, 6)])
    x = g.op("pool", "MaxPool", [x], kernel_size=[2, 2], strides=[2, 2], pad_mode="valid")
    x = conv("conv2", x, 4, 6, 4, 4, stride=[2, 2], pad_mode="pad", pad=[1, 1, 1, 1])
    y = norm("norm2", x, 4)
    x = conv("conv3", y, 4, 4, 3, 3, stride=[1, 1], pad_mode="same")
    x = g.op("flat", "Flatten", [g.op("relu2", "ReLU", [g.op("add", "Add", [x, y])])])
    x = g.op("dense", "MatMul", [x, g.parameter("dense.weight", 6, 96)], transpose_b=True)
    return g.loss(g.op("bias", "BiasAdd", [x, g.parameter("dense.bias", 6)]), 6)


def depthwise(pins=None):
    """Windows of each channel, and of two groups of channels; between them a norm over channels that stand last."""
    g = Graph("depthwise", features(12, 4, 12, 8))

    def conv(name, x, *shape, **attrs):
        strategy = [[1, 1, *pins], [1, 1, 1, 1]] if pins else None
        return g.op(name, "Conv2D", [x, g.parameter(name + ".weight", *shape)], in_strategy=strategy,
                    kernel_size=list(shape[2:]), pad_mode="same", stride=[1, 1], **attrs)

    y = conv("each", "x", 4, 1, 5, 5, group=4)
    y = g.op("add_bias", "BiasAdd", [y, g.parameter("each.bias", 4)])
    y = g.op("last", "Transpose", [y], perm=[0, 2, 3, 1])
    y = g.op("norm", "LayerNorm", [y, g.parameter("gamma", 4), g.parameter("beta", 4)], begin_norm_axis=-1,
             begin_params_axis=-1, epsilon=1e-5)
    y = g.op("scaled", "Mul", [y, g.parameter("scale", 4)])
    y = g.op("first", "Transpose", [y], perm=[0, 3, 1, 2])
    y = conv("pair", g.op("add", "Add", ["x", y]), 6, 2, 3, 3, group=2)
    x = g.op("mean", "ReduceMean", [y], axis=[-2, -1])
    x = g.op("dense", "MatMul", [x, g.parameter("dense.weight", 6, 6)], transpose_b=True)
    return g.loss(g.op("bias", "BiasAdd", [x, g.parameter("dense.bias", 6)]), 6)


SLOW_CHIP = {  # on which every cut is worth while
    "schema": "autopar-chip/1", "name": "slow",
    "peak_flops": {"cube": {**dict.fromkeys(("float16", "bfloat16", "float32"), 3e5),
                            **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), 6e5)},
                   "vector": dict.fromkeys(("float16", "bfloat16", "float32", "int32"), 1e6)},
    "fixed_s": {"cube": 0, "vector": 0, "memory": 0, "collective": 0},
    "efficiency": {"matmul": 1, "vector": 1, "memory": 1}, "matmul_half": [0, 0, 0],
    "memory": {"bytes": 85899345920, "usable_bytes": 83751862272, "bandwidth_Bps": 9e5},
    "levels": [{"name": "link", "kind": "switch", "span": 16, "bandwidth_Bps": 4e9,
                "latency_s": 4e-9, "efficiency": 1},
               {"name": "net", "kind": "nic", "bandwidth_Bps": 5e8, "latency_s": 2e-9,
                "efficiency": 1}],
    "devices_per_server": 16}
