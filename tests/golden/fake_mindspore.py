# SPDX-License-Identifier: Apache-2.0
"""As much of MindSpore's surface as a bundle's apply_plan.py touches; every call is kept in `calls`."""
import sys
import types

calls = []


class Primitive:
    """type(p).__name__ is the primitive's type."""

    def __init__(self, path):
        self.path = path

    def recompute(self, mode=True):
        calls.append(("Primitive.recompute", self.path, mode))

    def shard(self, in_strategy=None, out_strategy=None):
        """As in MindSpore: tuples of tuples."""
        for strategy in filter(None, (in_strategy, out_strategy)):
            assert isinstance(strategy, tuple) and all(isinstance(parts, tuple) for parts in strategy)
        calls.append(("Primitive.shard", self.path, in_strategy, out_strategy))


def primitive(kind, path):
    return type(kind, (Primitive,), {})(path)


class Cell:
    def __init__(self, path=""):
        self.__dict__["path"] = path
        self.__dict__["_cells"] = {}

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


class AutoParallel(Cell):
    """Takes the methods and modes of MindSpore 2.7's class."""

    MODES = ("semi_auto", "sharding_propagation", "recursive_programming")
    METHODS = ("load_param_strategy_file", "disable_strategy_file_only_for_trainable_params",
               "load_operator_strategy_file", "dataset_strategy", "hsdp", "pipeline", "comm_fusion",
               "enable_fp32_communication", "enable_gradients_mean", "disable_gradient_fp32_sync",
               "disable_loss_repeated_mean", "transformer_opt")

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__()
        assert parallel_mode in self.MODES
        self.__dict__["network"] = network
        calls.append(("AutoParallel", parallel_mode))

    def __getattr__(self, name):
        if name not in self.METHODS:
            raise AttributeError(name)
        return lambda *args, **kwargs: calls.append((name,) + args + ((kwargs,) if kwargs else ()))


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
