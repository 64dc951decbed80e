# SPDX-License-Identifier: Apache-2.0
"""Applies a bundle of autopar-plan, the folder that this file is in, to a network of MindSpore.

With the class AutoParallel (MindSpore 2.5 and later):

    net = apply_plan.apply(net)                 # marks, wraps and configures
    net = apply_plan.configure(train_step)      # or apart: what holds apply_plan.prepare(net)

With set_auto_parallel_context():

    apply_plan.set_context()
    net = apply_plan.prepare(net)

net is the network with its loss, before it is compiled and after mindspore.communication.init().
"""
import importlib
import json
import os

import mindspore

HERE = os.path.dirname(os.path.abspath(__file__))


def _read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


def _rows(api):
    return [row for row in _read("settings.json") if row["api"] == api]


def _context(name):
    return next(row["value"] for row in _rows("set_auto_parallel_context") if row["name"] == name)


def _stage(rank):
    """The pipeline stage of a rank; of this process, where none is given."""
    devices = _context("device_num")
    if rank is None and devices > 1:
        group = importlib.import_module("mindspore.communication")
        if group.get_group_size() != devices:
            raise ValueError("the plan is for %d devices, the job has %d"
                             % (devices, group.get_group_size()))
        rank = group.get_rank()
    return (rank or 0) // (devices // _context("pipeline_stages"))


def _file(name, stage):
    path = os.path.join(HERE, *name.format(stage=stage).split("/"))
    if not os.path.isfile(path):
        raise FileNotFoundError("the bundle lacks %s" % path)
    return path


def _layout(entry):
    """A tuple of parts, or a Layout."""
    if isinstance(entry, list):
        return tuple(entry)
    make = getattr(mindspore, "Layout", None) or importlib.import_module("mindspore.parallel").Layout
    return make(tuple(entry["device_matrix"]), tuple(entry["alias_name"]))(*entry["tensor_map"])


def _value(value, kind, stage):
    """As MindSpore takes it: names of the bundle's files are paths, tuples are tuples."""
    if isinstance(value, dict):
        return {key: _value(part, None, stage) for key, part in value.items()}
    if kind == "tuple":
        return tuple(_layout(entry) for entry in value)
    if isinstance(value, str) and value.endswith((".ckpt", ".json")):
        return _file(value, stage)
    return value


def _attribute(cell, path):
    """What a cell holds under an attribute, "matmul", or in a list of it, "list.0"; None: nothing."""
    for part in path.split("."):
        try:
            cell = cell[int(part)] if part.isdigit() else getattr(cell, part)
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
    return cell


def _primitives(cell, mark, method):
    """The primitives of a cell that a mark is for: its attribute, or all that have its type."""
    if "instance" in mark:
        held = [_attribute(cell, mark["instance"])]
    else:
        held = list(vars(cell).values()) + list(vars(cell).get("_primitives", {}).values())
        held = [p for p in held if type(p).__name__ == mark["type"]]
    return list({id(p): p for p in held if callable(getattr(p, method, None))}.values())


def _check(cells, marks, shards, placed):
    """KeyError for what the network lacks, before anything is changed."""
    calls = [(mark, "recompute") for mark in marks["primitives"]] + [(mark, "shard") for mark in shards]
    names = [mark["cell"] for mark in marks["cells"]] + [mark["cell"] for mark, _ in calls]
    names += [name for config in placed.values() for name in config]
    missing = sorted({name for name in names if name not in cells})
    if missing:
        raise KeyError("the network has no cell %s; it has %s" % (
            ", ".join(repr(name) for name in missing), ", ".join(sorted(filter(None, cells)))))
    missing = ["%s of cell %r" % (mark.get("instance") or mark["type"], mark["cell"])
               for mark, method in calls if not _primitives(cells[mark["cell"]], mark, method)]
    if missing:
        raise KeyError("no attribute of its cell holds the primitive %s" % ", ".join(missing))


def prepare(net):
    """Marks what is cut, what is recomputed and the stages of cells, and wraps net for its micro-batches."""
    cells = dict(net.cells_and_names())
    marks = _read("recompute.json")
    shards = _read("shard.json")["shards"] if os.path.exists(os.path.join(HERE, "shard.json")) else []
    placed = {}
    if _context("pipeline_stages") > 1:
        placed["pipeline_stage"] = _read("stage_config.json")
        segments = _read("segment_config.json")
        if any(segments.values()):
            placed["pipeline_segment"] = segments
    _check(cells, marks, shards, placed)
    for mark in shards:
        for primitive in _primitives(cells[mark["cell"]], mark, "shard"):
            primitive.shard(*(tuple(tuple(parts) for parts in mark[key])
                              for key in ("in_strategy", "out_strategy") if key in mark))
    for mark in marks["primitives"]:
        for primitive in _primitives(cells[mark["cell"]], mark, "recompute"):
            primitive.recompute(mark["recompute"])
    for mark in marks["cells"]:
        cells[mark["cell"]].recompute(**{k: v for k, v in mark.items() if k != "cell"})
    for attribute, config in placed.items():
        for name, number in config.items():
            setattr(cells[name], attribute, number)
    try:
        api = "mindspore.parallel.nn"
        wrappers = importlib.import_module(api)
    except ImportError:
        api = "mindspore.nn"
        wrappers = importlib.import_module(api)
    for row in _rows(api):
        net = getattr(wrappers, row["name"])(net, **row["value"])
    return net


def configure(net, rank=None):
    """AutoParallel around net, as planned."""
    rows = _rows("AutoParallel")
    if not rows:
        raise ValueError("AutoParallel does not have the mode %r; use set_context()"
                         % _context("parallel_mode"))
    stage = _stage(rank)
    values = [_value(row["value"], row["type"], stage) for row in rows]
    auto_parallel = importlib.import_module("mindspore.parallel.auto_parallel")
    net = auto_parallel.AutoParallel(net, parallel_mode=values[0])
    for row, value in zip(rows[1:], values[1:]):
        method = getattr(net, row["name"])
        if row["type"] == "none":
            method()
        elif row["type"] == "kwargs":
            method(**value)
        else:
            method(value)
    return net


def set_context(rank=None):
    """The same for all networks, by set_auto_parallel_context()."""
    stage = _stage(rank)
    mindspore.set_auto_parallel_context(**{
        row["name"]: _value(row["value"], row["type"], stage)
        for row in _rows("set_auto_parallel_context")})
    for row in _rows("set_context"):
        mindspore.set_context(**{row["name"]: _value(row["value"], row["type"], stage)})
    for row in _rows("set_op_strategy_config"):
        parallel = importlib.import_module("mindspore.parallel")
        parallel.set_op_strategy_config(**_value(row["value"], row["type"], stage))


def apply(net, rank=None):
    """prepare() and configure(); where AutoParallel lacks the mode, set_context()."""
    _stage(rank)  # before anything is changed: is this the plan's job?
    if _rows("AutoParallel"):
        return configure(prepare(net), rank)
    net = prepare(net)
    set_context(rank)
    return net
