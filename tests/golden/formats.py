#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: formats.py PROGRAM SOURCE_ROOT PROTOC

Bundles of several models in 1, 2 and 4 stages, read with other means than ours: JSON by Python, protobuf
by protoc. Operator strategies have the keys and types that MindSpore's reader throws without, say what the
plan says, and take the names of a template; the group file has the group of every gradient and the ranks
to restore from, which are found anew from dev_matrix and tensor_map; stage files merged by MindSpore's
rules are the merged file.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM, SOURCE, PROTOC = sys.argv[1:4]
STATES = ("accu_grads", "moment1", "moment2", "moments", "accum", "stat")
asked = 0


def ask(what, holds, *told):
    global asked
    asked += 1
    if not holds:
        sys.exit("%s: %s" % (what, " ".join(map(str, told))[:400] or "does not hold"))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=unique)


def unique(pairs):
    ask("a key is there once", len({key for key, _ in pairs}) == len(pairs), [key for key, _ in pairs])
    return dict(pairs)


def run(*args, fails=None):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=False)
    ask(" ".join(args), done.returncode == (fails or 0), done.returncode, done.stderr)
    return done.stderr


# ---- protobuf: the text of protoc as lists of (field, value), in order ----

def decoded(message, path):
    with open(path, "rb") as file:
        text = subprocess.run(
            [PROTOC, "--proto_path=" + os.path.join(SOURCE, "proto"),
             "--decode=mindspore.straspb." + message, "node_strategy.proto"],
            stdin=file, capture_output=True, check=True).stdout.decode()
    stack = [[]]
    for line in map(str.strip, text.splitlines()):
        if line == "}":
            stack.pop()
        elif line.endswith("{"):
            inner = []
            stack[-1].append((line[:-1].strip(), inner))
            stack.append(inner)
        else:
            field, value = line.split(": ", 1)
            stack[-1].append((field, json.loads(value)))
    return stack[0]


def every(message, field):
    return [value for name, value in message if name == field]


def one(message, field):
    values = every(message, field)
    ask("one " + field, len(values) == 1, values)
    return values[0]


def dims(message, field):
    return [every(vector, "dim") for vector in every(message, field)]


# ---- operator strategies ----

def is_ints(value, least):
    return isinstance(value, list) and all(type(i) is int and i >= least for i in value)


def check_strategy(name, value):
    ask(name, set(value) == {"stage", "parallel_strategy"}, value)
    ask(name + ": stage", type(value["stage"]) is int and value["stage"] >= 0)
    ask(name + ": vectors", isinstance(value["parallel_strategy"], list) and
        all(is_ints(vector, 1) for vector in value["parallel_strategy"]), value)


def check_layouts(name, value):
    ask(name + ": indices", list(value) == [str(i) for i in range(len(value))], list(value))
    for layout in value.values():
        ask(name, set(layout) == {"dev_matrix", "tensor_map", "interleaved_parallel", "alias_name"})
        ask(name + ": dev_matrix", is_ints(layout["dev_matrix"], 1))
        ask(name + ": interleaved_parallel", type(layout["interleaved_parallel"]) is bool)
        ask(name + ": alias_name", len(set(layout["alias_name"])) == len(layout["dev_matrix"]) and
            all(isinstance(alias, str) for alias in layout["alias_name"]), layout["alias_name"])
        ask(name + ": tensor_map", all(is_ints(axes, -1) for axes in layout["tensor_map"]))
        cut = [axis for axes in layout["tensor_map"] for axis in axes if axis >= 0]
        ask(name + ": axes", len(set(cut)) == len(cut) and all(axis < len(layout["dev_matrix"])
                                                               for axis in cut), cut)


FORMS = {
    "parallel_strategy_item": check_strategy, "parallel_out_strategy_item": check_strategy,
    "parallel_layout_value_item": check_layouts, "parallel_out_layout_value_item": check_layouts,
}


def product(values):
    total = 1
    for value in values:
        total *= value
    return total


def check_forms(file):
    ask("keys of operator strategies", set(file) <= set(FORMS) | {"current_stage"}, list(file))
    ask("current_stage", type(file["current_stage"]) is int)
    for key in set(file) - {"current_stage"}:
        for name, value in file[key].items():
            FORMS[key](name, value)


def in_cell(cell, cells):
    return any(cell == other or cell.startswith(other + ".") for other in cells)


def full_name(operator, recomputed):
    return ("recompute_" if in_cell(operator["cell"], recomputed) else "") + operator["name"]


def says_out(operator):
    """Sums are left whole unless an out_strategy deals them; those of a look-up with whole indices are dealt
    unless it leaves them whole."""
    sums = {c["kind"] for c in operator["communications"] if c["phase"] == "forward"}
    if operator["type"] not in ("Gather", "EmbeddingLookup", "IndexSelect", "Embedding"):
        return "ReduceScatter" in sums
    return "AllReduce" in sums or ("ReduceScatter" in sums and product(operator["in_strategy"][1]) > 1)


def asked_operators(plan):
    return [o for o in plan["operators"] if o["type"] not in ("Send", "Receive", "Cast")]


def check_operators(folder, plan):
    file = load(folder + "/operator_strategies.json")
    check_forms(file)
    recomputed = [cell["cell"] for cell in load(folder + "/recompute.json")["cells"]]
    named = {full_name(o, recomputed): o for o in asked_operators(plan)}
    said = dict(file["parallel_strategy_item"])
    inputs = [said.pop(name)["parallel_strategy"] for name in list(said)
              if name.endswith("/_VirtualDataset-op0")]
    ask("one dataset", len(inputs) == 1, len(inputs))
    ask("its parts", len({product(v) for v in inputs[0]} - {1}) <= 1, inputs)
    ask("names", set(said) == set(named), set(said) ^ set(named))
    ask("order", list(file["parallel_strategy_item"]) == sorted(file["parallel_strategy_item"]))
    devices = plan["machine"]["devices"] // max(1, len(plan["stages"]))
    for name, operator in named.items():
        vectors = said[name]["parallel_strategy"]
        ask(name, vectors == operator["in_strategy"], vectors, operator["in_strategy"])
        ask(name + ": devices", all(devices % product(v) == 0 for v in vectors), vectors)
    dealt = {full_name(o, recomputed): o["out_strategy"][:1] for o in asked_operators(plan) if says_out(o)}
    ask("results that are dealt", {name: value["parallel_strategy"] for name, value in
                                   file["parallel_out_strategy_item"].items()} == dealt)
    return file, len(dealt)


def renumbered(name):
    return re.sub(r"-op(\d+)$", lambda m: "-op%d" % (2 * int(m.group(1)) + 3), name)


def check_template(work, command, file):
    """Another order and other numbers; what is said are ones; a Reshape and a Cast more."""
    names = sorted(file["parallel_strategy_item"], key=lambda name: name[::-1])
    saved = {renumbered(name): {"stage": 0, "parallel_strategy": [
        [1] * len(v) for v in file["parallel_strategy_item"][name]["parallel_strategy"]]} for name in names}
    other = {"D/x/Reshape-op77": {"stage": 0, "parallel_strategy": [[2, 1]]},
             "D/x/Cast-op7": {"stage": 0, "parallel_strategy": [[4]]}}
    saved.update(other)
    path, folder = work + "/saved.json", work + "/filled"

    def fill(items, **kwargs):
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"current_stage": 0, "parallel_strategy_item": items}, out)
        return run(*command, "--bundle", folder, "--operator-strategy-template", path, **kwargs)

    fill(saved)
    filled = load(folder + "/operator_strategies.json")
    check_forms(filled)
    ask("names and order of the template", list(filled["parallel_strategy_item"]) == list(saved))
    for name in names:
        value = filled["parallel_strategy_item"][renumbered(name)]
        ask(name, value == (saved[renumbered(name)] if "/Reshape-op" in name
                            else file["parallel_strategy_item"][name]), value)
    for name, value in other.items():
        ask(name, filled["parallel_strategy_item"][name] == value)
    lost = next(name for name in names if "/Reshape-op" not in name and "_VirtualDataset-" not in name)
    bare = lost.replace("recompute_", "", 1)
    said = fill({name: value for name, value in saved.items() if name != renumbered(lost)}, fails=4)
    ask("who is missing", '"%s"' % bare in said, said)
    said = fill({**saved, "D/x/Dense-op0": saved[renumbered(lost)]}, fails=4)
    ask("who is too many", "/D~1x~1Dense-op0" in said, said)


# ---- stage files ----

def merge_json(stages):
    merged = {"current_stage": 1, "parallel_strategy_item": {}, "parallel_layout_item": {}}
    for file in stages:
        items = file["parallel_strategy_item"]
        stage = next(iter(items.values()))["stage"]
        merged["parallel_strategy_item"].update(items)
        for name, layout in file["parallel_layout_item"].items():
            merged["parallel_layout_item"]["%d-%s" % (stage, name)] = layout
    return merged


def merge_protobuf(stages):
    items, layouts = [], []
    for file in stages:
        stage = one(one(every(file, "parallel_strategy_item")[0], "parallel_strategys"), "stage")
        items += every(file, "parallel_strategy_item")
        layouts += [[("param_name", "%d-%s" % (stage, one(item, "param_name")))] + item[1:]
                    for item in every(file, "parallel_layout_item")]
    return [("current_stage", 1)] + [("parallel_strategy_item", item) for item in items] + \
        [("parallel_layout_item", item) for item in layouts]


def check_merge(folder, plan, jsons):
    """False: a stage has no parameter, which MindSpore's merging refuses."""
    n = len(plan["stages"])
    files = ["%s/stages/stage_%d.ckpt" % (folder, stage) for stage in range(n)]
    stages = [decoded("ParallelStrategyMap", file) for file in files]
    ask("stage files", sorted(os.listdir(folder + "/stages")) == [os.path.basename(f) for f in files])
    if not all(every(file, "parallel_strategy_item") for file in stages):
        return False
    ask("merged file", decoded("ParallelStrategyMap", folder + "/strategy.ckpt") == merge_protobuf(stages))
    parts = [load("%s.stages/stage_%d.json" % (jsons, stage)) for stage in range(n)]
    ask("merged JSON", load(jsons + ".json") == merge_json(parts))
    return True


# ---- groups ----

def holders(layout, rank):
    """Ranks that hold the same slice: equal in all coordinates that the tensor_map names."""
    matrix = dims(layout, "dev_matrix")[0]
    used = {axis for vector in dims(layout, "tensor_map") for axis in vector if axis >= 0}

    def place(r):
        at = []
        for axis, size in enumerate(reversed(matrix)):
            at += [r % size] if axis in used else []
            r //= size
        return at
    return [r for r in range(product(matrix)) if place(r) == place(rank)]


def check_groups(folder, plan, rank):
    n = plan["machine"]["devices"] // len(plan["stages"])
    stage, local = divmod(rank, n)
    file = decoded("ParallelGroupMap", folder + "/group_info.pb")
    groups = [every(one(item, "parallel_group_ranks"), "dim") for item in every(file, "parallel_group_item")]
    names = [one(item, "group_name") for item in every(file, "parallel_group_item")]
    ask("names of groups", len(set(names)) == len(names))
    for name, ranks in zip(names, groups):
        ask(name, ranks == sorted(set(ranks)) and rank in ranks, ranks)
        ask(name, name.endswith("world_group") or re.fullmatch(r"%d-\d+" % len(ranks), name), ranks)
    path = folder + ("/stages/stage_%d.ckpt" % stage if len(plan["stages"]) > 1 else "/strategy.ckpt")
    equal = set(range(n))
    gradients = 0
    for item in every(decoded("ParallelStrategyMap", path), "parallel_layout_item"):
        name, layout = one(item, "param_name"), one(item, "parallel_layouts")
        if name.split(".")[0] in STATES:
            continue
        same = holders(layout, local)
        size = one(layout, "opt_weight_shard_size")
        dealt = len(same) if size == -1 else size if size else 1
        own = same.index(local)
        copies = same[own % dealt::dealt]
        chunk = same[own - own % dealt:][:dealt]
        equal &= set(copies)
        for group in (copies, chunk):
            if len(group) > 1:
                ask("group of the gradient of " + name, [stage * n + r for r in group] in groups, group)
                gradients += 1
    ask("ranks to restore from", every(one(file, "ckpt_restore_rank_list"), "dim") ==
        sorted(stage * n + r for r in equal), sorted(equal))
    return gradients


CASES = [(model, stages, ["search"], []) for stages in (1, 2, 4)
         for model in ("multiple_mix", "vit_l", "gpt3_1.3b", "resnet50", "wide_deep", "bert_large")] + [
    ("multiple_mix", 2, ["search"], ["--batch", "4096", "--enable-parallel-optimizer"]),
    ("gpt3_1.3b", 2, ["search"], ["--enable-parallel-optimizer"]),
    ("gpt3_1.3b", 1, ["evaluate"], ["--hybrid", "dp=4,tp=2", "--enable-parallel-optimizer",
                                    "--optimizer-weight-shard-size", "2"]),
    ("gpt3_1.3b", 1, ["evaluate"], ["--hybrid", "dp=2,tp=4,sp=1", "--recompute", "full"]),
]


def main():
    merged = gradients = dealt = 0
    with tempfile.TemporaryDirectory() as work:
        for i, (model, stages, verb, options) in enumerate(CASES):
            folder, jsons = "%s/%d" % (work, i), "%s/json%d" % (work, i)
            rank = (3 * i + 1) % 8
            command = verb + ["%s/models/%s.json" % (SOURCE, model),
                              SOURCE + "/models/topo/ascend910_8p.json", "--memory", "60GB", "-q"] + options
            if verb == ["search"]:
                command += ["--pipeline-stages", str(stages), "--micro-batches", "8"]
            output = [] if verb == ["evaluate"] else ["-o", jsons + ".json"]
            run(*command, *output, "--bundle", folder, "--global-rank", str(rank))
            plan = load(folder + "/plan.json")
            ask("stages of the plan", len(plan["stages"]) == stages, len(plan["stages"]))
            file, n = check_operators(folder, plan)
            dealt += n
            check_template(work, command, file)
            gradients += check_groups(folder, plan, rank)
            merged += stages > 1 and check_merge(folder, plan, jsons)
    ask("pipelines that were merged", merged >= 10, merged)
    ask("gradients with a group", gradients > 500, gradients)
    ask("results that are dealt", dealt > 10, dealt)
    print("%d things were asked: %d merged, %d gradients, %d dealt" % (asked, merged, gradients, dealt))


main()
