# SPDX-License-Identifier: Apache-2.0
"""As much of MindSpore's surface as a bundle's apply_plan.py touches; every call is kept in `calls`."""
import os
import sys
import types

calls = []


class Primitive:
    """type(p).__name__ is the primitive's type. As in MindSpore 2.7 an attribute goes into __dict__, where that of
    recompute() hides the method from then on."""

    def __init__(self, path):
        self.path = path
        self.attrs = {}

    def add_prim_attr(self, name, value):
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    def recompute(self, mode=True):
        assert isinstance(mode, bool)
        calls.append(("Primitive.recompute", self.path, mode))
        return self.add_prim_attr("recompute", mode)

    def shard(self, in_strategy=None, out_strategy=None):
        """As in MindSpore: tuples of tuples."""
        for strategy in filter(None, (in_strategy, out_strategy)):
            assert isinstance(strategy, tuple) and all(isinstance(parts, tuple) for parts in strategy)
        assert in_strategy is not None or out_strategy is None
        calls.append(("Primitive.shard", self.path, in_strategy, out_strategy))
        for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if strategy is not None:
                self.add_prim_attr(name, strategy)
        return self


def primitive(kind, path):
    return type(kind, (Primitive,), {})(path)


class Cell:
    once = False  # as in 2.0 a second recompute() is an error; in 2.7 it takes over the arguments

    def __init__(self, path=""):
        self.__dict__["path"] = path
        self.__dict__["_cells"] = {}
        self.__dict__["_has_config_recompute"] = False

    def __setattr__(self, name, value):
        if isinstance(value, Cell):
            self._cells[name] = value
        elif name.startswith("pipeline_"):
            calls.append((name, self.path, value))
        self.__dict__[name] = value

    def cells_and_names(self):
        yield self.path, self
        for cell in self._cells.values():
            yield from cell.cells_and_names()

    def recompute(self, mp_comm_recompute=True, parallel_optimizer_comm_recompute=False,
                  recompute_slice_activation=False):
        if self._has_config_recompute and Cell.once:
            raise RuntimeError("The recompute interface can be configured only once.")
        self.__dict__["_has_config_recompute"] = True
        calls.append(("Cell.recompute", self.path, mp_comm_recompute,
                      parallel_optimizer_comm_recompute, recompute_slice_activation))


def network(operators):
    """A network of (cell path, type) pairs, with the operator's attribute as a third part where it is not
    its type in small letters: "matmul", or "list.0"."""
    root = Cell()
    for path, kind, *attribute in operators:
        cell, at = root, ""
        for name in filter(None, path.split(".")):
            at = at + "." + name if at else name
            if name not in cell._cells:
                setattr(cell, name, Cell(at))
            cell = cell._cells[name]
        name, _, index = (attribute or [kind.lower()])[0].partition(".")
        made = primitive(kind, at + "/" + (attribute or [kind])[0])
        if index:
            vars(cell).setdefault(name, []).insert(int(index), made)
        elif name not in vars(cell):
            setattr(cell, name, made)
    return root


class Layout:
    def __init__(self, device_matrix, alias_name):
        assert isinstance(device_matrix, tuple) and isinstance(alias_name, tuple)
        self.form = (device_matrix, alias_name)

    def __call__(self, *tensor_map):
        return ("Layout",) + self.form + (tensor_map,)


def _path(value):
    return isinstance(value, str)


def _absolute(value):
    return isinstance(value, str) and os.path.isabs(value) and value.endswith(".json")


def _dataset(value):
    if isinstance(value, str):
        return value in ("full_batch", "data_parallel")
    return isinstance(value, tuple) and all(isinstance(entry, tuple) for entry in value)


class AutoParallel(Cell):
    """Takes the methods, arguments and modes of MindSpore 2.7's class."""

    MODES = ("semi_auto", "sharding_propagation", "recursive_programming")
    METHODS = {  # what each takes: None: nothing, a check of its only argument, or checks by name
        "load_param_strategy_file": _path, "disable_strategy_file_only_for_trainable_params": None,
        "load_operator_strategy_file": _absolute, "dataset_strategy": _dataset,
        "hsdp": {"shard_size": lambda n: type(n) is int and (n > 0 or n == -1),
                 "threshold": lambda n: type(n) is int and n >= 0,
                 "optimizer_level": ("level1", "level2", "level3").__contains__},
        "pipeline": {"stages": lambda n: type(n) is int and n > 0,
                     "output_broadcast": lambda on: type(on) is bool,
                     "interleave": lambda on: type(on) is bool,
                     "scheduler": ("1f1b", "gpipe").__contains__},
        "comm_fusion": lambda config: isinstance(config, dict),
        "enable_fp32_communication": None, "enable_gradients_mean": None,
        "disable_gradient_fp32_sync": None, "disable_loss_repeated_mean": None,
        "transformer_opt": _path, "print_local_norm": None, "dump_local_norm": _path,
        "enable_device_local_norm": None}

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__()
        assert parallel_mode in self.MODES
        self.__dict__["network"] = network
        calls.append(("AutoParallel", parallel_mode))

    def __getattr__(self, name):
        if name not in self.METHODS:
            raise AttributeError(name)
        wanted = self.METHODS[name]

        def call(*args, **kwargs):
            if isinstance(wanted, dict):
                assert not args and all(wanted[key](value) for key, value in kwargs.items()), kwargs
            else:
                assert not kwargs and (wanted(*args) if wanted else not args), args
            calls.append((name,) + args + ((kwargs,) if kwargs else ()))
        return call


def _wrapper(name):
    def wrap(network, *args, **kwargs):
        calls.append((name,) + args + ((kwargs,) if kwargs else ()))
        cell = Cell()
        cell.__dict__["network"] = network
        return cell
    return wrap


def install(rank=0, old=False, devices=8):
    """Puts the modules where import finds them; old: as they were before the class AutoParallel."""
    del calls[:]
    Cell.once = old
    for name in [name for name in sys.modules if name.split(".")[0] == "mindspore"]:
        del sys.modules[name]
    names = ["mindspore", "mindspore.communication", "mindspore.nn", "mindspore.parallel"]
    if not old:
        names += ["mindspore.parallel.nn", "mindspore.parallel.auto_parallel"]
    modules = {name: types.ModuleType(name) for name in names}
    for name in names:
        modules[name].__path__ = []
        sys.modules[name] = modules[name]
    modules["mindspore"].Layout = Layout
    for name in ("set_auto_parallel_context", "set_context"):
        setattr(modules["mindspore"], name, _call(name))
    modules["mindspore.parallel"].set_op_strategy_config = _call("set_op_strategy_config")
    modules["mindspore.communication"].get_rank = lambda: rank
    modules["mindspore.communication"].get_group_size = lambda: devices
    for name in ("PipelineCell", "GradAccumulationCell", "MicroBatchInterleaved"):
        setattr(modules["mindspore.nn"], name, _wrapper(name))
    if not old:
        for name in ("Pipeline", "GradAccumulation", "MicroBatchInterleaved"):
            setattr(modules["mindspore.parallel.nn"], name, _wrapper(name))
        modules["mindspore.parallel.auto_parallel"].AutoParallel = AutoParallel


def _call(name):
    return lambda **kwargs: calls.append((name, kwargs))
