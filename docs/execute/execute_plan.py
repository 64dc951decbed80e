#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""execute_plan.py GRAPH PLAN: one training step of a plan on virtual ranks, held against one rank.

Everything is done as EXECUTING A PLAN of autopar-plan(5) says, from the two files alone: operators on
slices, redistributions, collectives, pipelines with micro-batches, gradients and their exchange, an
update of every parameter (w - gradient / 10). ranks.py has what goes on between ranks, step.py the order
of things, kernels.py what operators compute, eighths.py products in 8 bits. Values of inputs, parameters
and constants, which no file has, are drawn from their names; gradients_mean, which only scales, is left
out. numpy is needed (Debian: python3-numpy).
"""
import argparse
import json
import sys
import zlib

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

from ranks import (Fault, cut, dealt_part, group, layout_of_map, layout_of_pairs, need,  # noqa: E402
                   same_layout)
from step import Oper, Step, exchanged, updated, uses_of  # noqa: E402

TOLERANCE = 1e-9


class Files:
    def __init__(self, graph, plan, values=None, seed=0):
        self.graph, self.plan, self.given, self.seed = graph, plan, values or {}, seed
        need(plan["schema"] == "autopar-plan/1", "no plan")
        of_graph = {o["name"]: o for o in graph["operators"]}
        pipeline = plan["pipeline"]
        equal = pipeline["devices_per_stage"] if pipeline and "devices_per_stage" in pipeline else plan["machine"]["devices"]
        self.ranks = pipeline["stage_devices"] if pipeline and "stage_devices" in pipeline else [equal] * len(plan["stages"])
        self.nbatch = plan["stages"][0]["micro_batches"]
        self.partial = plan["settings"]["executor"].startswith(("mindspore", "mindformers"))
        self.loss = plan["graph"]["outputs"][0]
        moves = {}
        for index, r in enumerate(plan["redistributions"]):
            moves.setdefault(r["to"], {})[r["operand"]] = dict(r, index=index)
        self.sent = {r["from"]: r for r in plan["redistributions"] if "from_stage" in r}
        self.opers, self.alone = ([
            Oper(o, {**(of_graph.get(o["name"], {}).get("attrs") or {}),
                     "sequence_first": o.get("sequence_first", 0)}, moves.get(o["name"], {}),
                 self.ranks[o["stage"]], alone, plan["settings"].get("fp8_recipe"), self.sent.get(o["name"]),
                 [s["first_rank"] for s in plan["stages"]]) for o in plan["operators"]]
            for alone in (False, True))
        self.tensors = {t["name"]: t for key in ("inputs", "parameters", "constants")
                        for t in graph.get(key, [])}
        self.stages = [dict(s, slots=[dict(x, part=(s["id"], x["segment"])) for x in s["slots"]])
                       for s in plan["stages"]] if pipeline else None
        self.wanted = {p["name"] for p in plan["parameters"] if p["trainable"]}
        for o in plan["operators"]:
            if any(t in self.wanted for t in o["inputs"]):
                self.wanted |= {t for t, d in zip(o["outputs"], o["out_dtype"]) if "float" in d}
        self.cache = {}
        self.check(plan)

    def check_group(self, said, stage):
        """A group stands there twice."""
        if said and "axes" in said and "ranks" in said:
            first = self.plan["stages"][stage]["first_rank"]
            need([first + rank for rank in group(0, said["axes"])] == said["ranks"],
                 said["ranks"], "are not the group of", said["axes"])

    def check(self, plan):
        """Does every operand come in the shape and the layout that its operator says?"""
        for p in plan["parameters"]:
            for said in (p["optimizer_group"], p["gradient_group"], *p["gradient_groups"]):
                self.check_group(said, p["stage"])
        made = {t: (o.out_whole[k], o.out_layout[k], o.stage) for o in self.opers for k, t in enumerate(o.outputs)}
        made |= {p["name"]: (p["tensor_shape"], self.layout(p), p["stage"]) for p in plan["parameters"]}
        of_step = lambda whole, shape: len(whole) == len(shape) and all(
            n in (whole_n, whole_n / self.nbatch) for n, whole_n in zip(whole, shape))
        for o, said in zip(self.opers, plan["operators"]):
            need(all(map(of_step, o.out_whole, said["out_shape"])), o.name, "has other out_shape")
            need(set(o.moves) <= set(range(len(o.inputs))), o.name, "has no such operand")
            for i in (i for i, m in o.moves.items() if "sent_as" in m):
                self.check_8_bits(self.opers.index(o), i)
            need(o.in_8_bits or not any("sent_as" in c for c in o.comms), o.name, "sends in 8 bits")
            for c in o.comms:
                self.check_group(c, min(c.get("from_stage", o.stage), c.get("to_stage", o.stage)))
            for i, tensor in enumerate(o.inputs):
                whole, layout, stage = made.get(tensor, (None, o.in_layout[i], o.stage))
                need(o.in_whole[i] == whole if whole is not None else
                     of_step(o.in_whole[i], self.tensors[tensor]["shape"]),
                     f"operand {i} of {o.name} is {o.in_whole[i]}, not {whole}")
                m = o.moves.get(i)
                ends = [layout_of_pairs(m[end]) for end in ("from_layout", "to_layout")] if m else []
                layout = ends[0] if m and m["from"] is None else layout
                need(same_layout(layout, ends[0] if m else o.in_layout[i], self.ranks[stage]) and
                     same_layout(o.in_layout[i], ends[1] if m else layout, o.ranks),
                     tensor, "comes to", o.name, "in another layout")
                need(self.ranks[stage] == o.ranks or m and "from_stage" in m and
                     (m["from_stage"], m["to_stage"]) == (stage, o.stage),
                     tensor, "comes to", o.name, "from another number of devices")

    def check_8_bits(self, k, i):
        """What comes in 8 bits is read by products in 8 bits alone, themselves or behind views."""
        o = self.opers[k]
        if o.type in ("Reshape", "Transpose"):
            uses = uses_of(self.opers, o.outputs[0])
            need(uses, o.outputs[0], "comes in 8 bits and is read by nobody")
            for use in uses:
                self.check_8_bits(*use)
        else:
            need(o.in_8_bits and i == 0, o.inputs[i], "is sent in 8 bits to", o.name)

    def limit(self, tensor):
        """Indices must be smaller than the length that they look up."""
        least = [1 << 30]
        for o in self.alone:
            for i in [i for i, t in enumerate(o.inputs) if t == tensor]:
                if o.type == "Gather" and i == 1:
                    axis = o.attrs.get("axis", 0)
                    least.append(o.in_whole[0][axis])
                elif o.type == "OneHot" and i == 0:
                    least.append(o.attrs["depth"])
                elif o.type in ("CrossEntropySums", "SparseSoftmaxCrossEntropyWithLogits") and i == 1:
                    least.append(o.in_whole[0][1])
                elif o.type in ("Reshape", "Cast", "Send", "Receive", "Transpose"):
                    least.append(self.limit(o.outputs[0]))
        return min(least)

    def source(self, name):
        """Numbers of an input, a parameter or a constant; parameters small, constants positive."""
        if name not in self.cache:
            t, rng = self.tensors[name], np.random.RandomState(zlib.crc32(name.encode()) + self.seed)
            kind = t in self.graph["parameters"], "float" in t["dtype"]
            if name in self.given:
                x = np.full(t["shape"], self.given[name])
            elif not kind[1]:
                x = rng.randint(0, min(self.limit(name), 1 << 30 if kind[0] else 64), t["shape"])
            elif t in self.graph.get("constants", []):
                x = rng.uniform(0.5, 1.5, t["shape"])
            else:
                x = rng.standard_normal(t["shape"]) * (0.5 if kind[0] else 1)
            self.cache[name] = np.asarray(x)
        return self.cache[name]

    def layout(self, param):
        return layout_of_map(param["dev_matrix"], param["tensor_map"])

    def gathered_for_use(self, param):
        return param["optimizer_group"] and not any(
            o.of("optimizer", "operand", i) for o in self.opers
            for i, t in enumerate(o.inputs) if t == param["name"])

    def run_alone(self):
        weights = {p["name"]: [self.source(p["name"])] for p in self.plan["parameters"]}
        step = Step(self.alone, self.source, weights, self.wanted, False, self.nbatch)
        step.run(self.loss)
        return step

    def run_ranks(self):
        weights = {}
        for p in self.plan["parameters"]:
            weights[p["name"]] = cut(self.source(p["name"]), self.layout(p), self.ranks[p["stage"]])
            if self.gathered_for_use(p):
                weights[p["name"]] = dealt_part(weights[p["name"]], p)
        step = Step(self.opers, self.source, weights, self.wanted, self.partial, self.nbatch,
                    self.plan["parameters"])
        step.run(self.loss, self.stages)
        return step


def compare(what, got, want, scale):
    """Relative to the largest number of the tensor; scale: of all such tensors."""
    error = 0.0
    for rank, (a, b) in enumerate(zip(got, want)):
        need(a.shape == b.shape, what, f"of rank {rank} is {a.shape}, not {b.shape}")
        size = max(float(np.abs(b).max(initial=0)), 1e-6 * scale, 1e-30)
        off = float(np.abs(a - b).max(initial=0)) / size
        need(off <= TOLERANCE, what, f"of rank {rank} differs by {off:.1e}")
        error = max(error, off)
    return error


def execute(graph, plan, values=None, seed=0, truth=None):
    """Runs both; returns what to say, and the step of one rank, which other plans can share."""
    files = Files(graph, plan, values, seed)
    need(files.loss in [t for o in files.opers for t in o.outputs] and
         all(o.out_whole[o.outputs.index(files.loss)] == [] for o in files.opers
             if files.loss in o.outputs), "the first output is no scalar: there is no loss")
    alone = truth or files.run_alone()
    step = files.run_ranks()
    errors = []
    for o in files.opers:
        for k, tensor in enumerate(o.outputs):
            if o.stays_inside(k):
                continue
            for m in [None] if o.once else range(files.nbatch):
                want = cut(alone.values[tensor, m][0], o.out_layout[k], o.ranks)
                need((tensor, m) in step.values, tensor, "is not there")
                errors.append(compare(tensor, step.values[tensor, m], want, 1.0))
    truth_of = {p["name"]: [alone.use_grads[u][0] for u in uses_of(files.alone, p["name"])
                            if u in alone.use_grads] for p in plan["parameters"]}
    largest = max((float(np.abs(g).max()) for of in truth_of.values() for g in of), default=0.0)
    trained = 0
    for p in plan["parameters"]:
        name, layout = p["name"], files.layout(p)
        want = truth_of[name]
        grads = exchanged(step, p, files.partial)
        need((grads is None) == (not want) and (not want or p["trainable"]), name, "has no gradient")
        if not want:
            continue
        trained += 1
        whole = sum(want)
        of_slice = cut(whole, layout, files.ranks[p["stage"]])
        of_part = dealt_part(of_slice, p) if p["optimizer_group"] else of_slice
        errors.append(compare("gradient of " + name, grads, of_part, largest))
        weight = cut(files.source(name), layout, files.ranks[p["stage"]])
        new = cut(files.source(name) - whole / 10, layout, files.ranks[p["stage"]])
        new = dealt_part(new, p) if files.gathered_for_use(p) else new
        errors.append(compare(name, updated(step, p, weight, grads), new, 1.0))
    need(trained, "no parameter is trained")
    losses = [float(alone.values[files.loss, m][0]) for m in range(files.nbatch)]
    return (f"{sum(files.ranks)} ranks, {files.nbatch} micro-batches: loss "
            f"{sum(losses) / len(losses):.12g}, {trained} parameters updated, largest relative error "
            f"{max(errors):.1e}"), alone


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("plan")
    parser.add_argument("--seed", type=int, default=0, help="of the values that are drawn")
    parser.add_argument("--value", action="append", default=[], metavar="NAME=NUMBER",
                        help="of all elements of an input, a parameter or a constant")
    args = parser.parse_args()
    files = []
    for path in (args.graph, args.plan):
        with open(path, encoding="utf-8") as file:
            files.append(json.load(file))
    try:
        given = {k: float(v) for k, v in (x.split("=", 1) for x in args.value)}
        print(execute(*files, values=given, seed=args.seed)[0])
        return 0
    except Fault as fault:
        why = str(fault)
    except KeyError as key:
        why = f"{key} is missing"
    print(f"execute_plan.py: {args.plan}: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
