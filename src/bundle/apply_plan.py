# SPDX-License-Identifier: Apache-2.0
"""Applies a bundle of autopar-plan, the folder that this file is in, to a network of MindSpore.

With the class AutoParallel (MindSpore 2.5 and later):

    net = apply_plan.apply(net)                 # marks, wraps and configures
    net = apply_plan.configure(train_step)      # or apart: what holds apply_plan.prepare(net)

With set_auto_parallel_context():

    apply_plan.set_context()
    net = apply_plan.prepare(net)

net is the network with its loss, before it is compiled and after mindspore.communication.init(). Nothing is done
where a file of the bundle is missing, or is not the one that manifest.json has the hash of.
"""
import hashlib
import importlib
import json
import os

import mindspore

HERE = os.path.dirname(os.path.abspath(__file__))

# The calls of settings.json, each made once: the types that its argument may have.
_CALLS = {
    "mindspore.parallel.nn": {
        "MicroBatchInterleaved": "kwargs", "Pipeline": "kwargs", "GradAccumulation": "kwargs"},
    "mindspore.nn": {
        "MicroBatchInterleaved": "kwargs", "PipelineCell": "kwargs", "GradAccumulationCell": "kwargs"},
    "AutoParallel": {
        "parallel_mode": "str", "load_param_strategy_file": "file",
        "disable_strategy_file_only_for_trainable_params": "none", "load_operator_strategy_file": "file",
        "dataset_strategy": "str tuple", "hsdp": "kwargs", "pipeline": "kwargs", "comm_fusion": "dict",
        "enable_fp32_communication": "none", "enable_gradients_mean": "none",
        "disable_gradient_fp32_sync": "none", "disable_loss_repeated_mean": "none",
        "transformer_opt": "file", "print_local_norm": "none", "dump_local_norm": "str",
        "enable_device_local_norm": "none"},
    "set_auto_parallel_context": {
        "device_num": "int", "parallel_mode": "str", "search_mode": "str",
        "strategy_ckpt_load_file": "file", "strategy_ckpt_config": "dict", "full_batch": "bool",
        "dataset_strategy": "str tuple", "enable_parallel_optimizer": "bool",
        "parallel_optimizer_config": "dict", "optimizer_weight_shard_aggregated_save": "bool",
        "pipeline_stages": "int", "pipeline_config": "dict", "pipeline_result_broadcast": "bool",
        "comm_fusion": "dict", "all_reduce_fusion_config": "list", "force_fp32_communication": "bool",
        "gradients_mean": "bool", "gradient_fp32_sync": "bool", "loss_repeated_mean": "bool",
        "enable_alltoall": "bool", "parameter_broadcast": "bool", "communi_parallel_mode": "str",
        "dump_local_norm": "bool", "dump_local_norm_path": "str", "dump_device_local_norm": "bool"},
    "set_op_strategy_config": {"set_op_strategy_config": "kwargs"},
    "set_context": {"ascend_config": "dict"},
}
_TYPES = {"none": type(None), "bool": bool, "int": int, "str": str, "file": str, "list": list, "tuple": list,
          "dict": dict, "kwargs": dict}
_FILES = ("load_file", "path", "parallel_speed_up_json_path")  # keys of a dict whose value names a file

_wrapped = []  # what was returned as wrapped or configured: it is not done again


def _manifest():
    """{name: file} of manifest.json, which is written after all other files."""
    path = os.path.join(HERE, "manifest.json")
    if not os.path.isfile(path):
        raise FileNotFoundError("the bundle lacks %s: the run that made it has not ended or was killed; "
                                "make the bundle again" % path)
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    if manifest.get("schema") != "autopar-bundle/1":
        raise ValueError("%s: the schema is %r; 'autopar-bundle/1' is expected" % (path, manifest.get("schema")))
    return {file["name"]: file for file in manifest["files"]}


def _verify():
    """FileNotFoundError or ValueError for a bundle that is not whole: copied in part, edited, or of two runs."""
    for name, file in _manifest().items():
        path = os.path.join(HERE, *name.split("/"))
        if not os.path.isfile(path):
            raise FileNotFoundError("the bundle lacks %s; copy all of it, or make it again" % path)
        digest = hashlib.sha256()
        with open(path, "rb") as opened:
            for piece in iter(lambda: opened.read(1 << 20), b""):
                digest.update(piece)
        if digest.hexdigest() != file["sha256"]:
            raise ValueError("%s is not the file that manifest.json lists: it was changed, or is of another "
                             "bundle; make the bundle again" % path)


def _read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


def _settings():
    """The rows of settings.json; ValueError for calls that are not known, or made twice."""
    rows = _read("settings.json")
    seen = set()
    for row in rows:
        call = (row["api"], row["name"])
        kinds = _CALLS.get(row["api"], {}).get(row["name"])
        if kinds is None:
            raise ValueError("settings.json: %s of %s is no call that a bundle makes" % (call[1], call[0]))
        if call in seen:
            raise ValueError("settings.json: %s of %s is called twice" % (call[1], call[0]))
        seen.add(call)
        kind = [kind for kind in kinds.split() if kind.replace("file", "str") == row["type"]]
        if not kind or type(row["value"]) is not _TYPES[kind[0]]:  # a bool is no int
            raise ValueError("settings.json: %s of %s takes %s, not %s %r" % (
                call[1], call[0], kinds.replace("file", "str").replace(" ", " or "), row["type"],
                row["value"]))
        row["type"] = kind[0]
    return rows


def _rows(api):
    return [row for row in _settings() if row["api"] == api]


def _context(name):
    for row in _rows("set_auto_parallel_context"):
        if row["name"] == name:
            return row["value"]
    raise ValueError("settings.json lacks %s of set_auto_parallel_context" % name)


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
    if kind in ("dict", "kwargs"):
        return {key: _file(part, stage) if key in _FILES else part for key, part in value.items()}
    if kind == "tuple":
        return tuple(_layout(entry) for entry in value)
    return _file(value, stage) if kind == "file" else value


def _attribute(cell, path):
    """What a cell holds under an attribute, "matmul", or in a list of it, "list.0"; None: nothing."""
    for part in path.split("."):
        try:
            cell = cell[int(part)] if part.isdigit() else getattr(cell, part)
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
    return cell


def _primitives(cell, mark, method):
    """The primitives of a cell that a mark is for: its attribute, or all that have its type. Marks of a primitive
    are attributes of it, and that of recompute() hides the method: methods are those of its class."""
    if "instance" in mark:
        held = [_attribute(cell, mark["instance"])]
    else:
        held = list(vars(cell).values()) + list(vars(cell).get("_primitives", {}).values())
        held = [p for p in held if type(p).__name__ == mark["type"]]
    return list({id(p): p for p in held if callable(getattr(type(p), method, None))}.values())


def _recompute(cell, arguments):
    """Cell.recompute(). Of a cell that is recomputed already MindSpore 2.7 takes over the arguments; there are older
    ones that refuse, and what was said first holds."""
    before = getattr(cell, "_has_config_recompute", False)
    try:
        cell.recompute(**arguments)
    except RuntimeError:
        if not before:
            raise


def _check(cells, marks, shards, placed):
    """KeyError for what the network lacks, before anything is changed."""
    calls = [(mark, "recompute") for mark in marks["primitives"]] + [(mark, "shard") for mark in shards]
    calls += [(mark, "add_prim_attr") for mark in marks["communications"]]
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


def _keep(net):
    _wrapped.append(net)
    return net


def _is_wrapped(net):
    return any(net is known for known in _wrapped)


def _prepare(net):
    if _is_wrapped(net):
        return net
    cells = dict(net.cells_and_names())
    marks = _read("recompute.json")
    shards = _read("shard.json")["shards"] if "shard.json" in _manifest() else []
    placed = {}
    if _context("pipeline_stages") > 1:
        placed["pipeline_stage"] = _read("stage_config.json")
        segments = _read("segment_config.json")
        if any(segments.values()):
            placed["pipeline_segment"] = segments
    _check(cells, marks, shards, placed)
    for mark in shards:
        for primitive in _primitives(cells[mark["cell"]], mark, "shard"):
            type(primitive).shard(primitive, *(tuple(tuple(parts) for parts in mark[key])
                                               for key in ("in_strategy", "out_strategy") if key in mark))
    for mark in marks["primitives"]:
        for primitive in _primitives(cells[mark["cell"]], mark, "recompute"):
            type(primitive).recompute(primitive, mark["recompute"])
    for mark in marks["communications"]:
        for primitive in _primitives(cells[mark["cell"]], mark, "add_prim_attr"):
            type(primitive).add_prim_attr(primitive, "recompute_comm_op", mark["recompute_comm_op"])
    for mark in marks["cells"]:
        _recompute(cells[mark["cell"]], {k: v for k, v in mark.items() if k != "cell"})
    for attribute, config in placed.items():
        for name, number in config.items():
            setattr(cells[name], attribute, number)
    try:
        api = "mindspore.parallel.nn"
        wrappers = importlib.import_module(api)
    except ImportError:
        api = "mindspore.nn"
        wrappers = importlib.import_module(api)
    rows = _rows(api)
    for row in rows:
        net = getattr(wrappers, row["name"])(net, **row["value"])
    return _keep(net) if rows else net


def _configure(net, rank):
    rows = _rows("AutoParallel")
    if not rows:
        raise ValueError("AutoParallel does not have the mode %r; use set_context()"
                         % _context("parallel_mode"))
    auto_parallel = importlib.import_module("mindspore.parallel.auto_parallel")
    if _is_wrapped(net) and isinstance(net, auto_parallel.AutoParallel):
        return net
    stage = _stage(rank)
    values = {row["name"]: (row["type"], _value(row["value"], row["type"], stage)) for row in rows}
    net = auto_parallel.AutoParallel(net, parallel_mode=values.pop("parallel_mode")[1])
    for name, (kind, value) in values.items():
        method = getattr(net, name)
        if kind == "none":
            method()
        elif kind == "kwargs":
            method(**value)
        else:
            method(value)
    return _keep(net)


def _set_context(rank):
    stage = _stage(rank)
    mindspore.set_auto_parallel_context(**{
        row["name"]: _value(row["value"], row["type"], stage)
        for row in _rows("set_auto_parallel_context")})
    for row in _rows("set_context"):
        mindspore.set_context(**{row["name"]: _value(row["value"], row["type"], stage)})
    for row in _rows("set_op_strategy_config"):
        parallel = importlib.import_module("mindspore.parallel")
        parallel.set_op_strategy_config(**_value(row["value"], row["type"], stage))


def prepare(net):
    """Marks what is cut, what is recomputed and the stages of cells, and wraps net for its micro-batches. May be
    called again; what it returned wrapped stays as it is."""
    _verify()
    return _prepare(net)


def configure(net, rank=None):
    """AutoParallel around net, as planned."""
    _verify()
    return _configure(net, rank)


def set_context(rank=None):
    """The same for all networks, by set_auto_parallel_context()."""
    _verify()
    _set_context(rank)


def apply(net, rank=None):
    """prepare() and configure(); where AutoParallel lacks the mode, set_context()."""
    _verify()
    _stage(rank)  # before anything is changed: is this the plan's job?
    if _rows("AutoParallel"):
        return _configure(_prepare(net), rank)
    net = _prepare(net)
    _set_context(rank)
    return net
