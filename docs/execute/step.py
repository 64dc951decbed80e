# SPDX-License-Identifier: Apache-2.0
"""Operators on all ranks of their stage, and a training step of them, for execute_plan.py."""
import math

import numpy as np

from eighths import Copies
from kernels import KERNELS, Site, Tape, Var
from ranks import (Fault, all_gather, all_reduce, all_to_all, box, cut, dealt_part, exchange, gather_parts, group, layout_of_map,
                   layout_of_pairs, move, need, own_part, parts, send)


# ---- operators -----------------------------------------------------------------------------------

class Oper:
    """An operator of the plan; alone: as one rank has it, whole and without communications."""

    def __init__(self, o, attrs, moves, ranks, alone=False, recipe=None, sent=None, first=()):
        self.name, self.type, self.attrs = o["name"], o["type"], attrs
        self.stage, self.segment, self.once = o["stage"], o["segment"], o.get("once", False)
        self.inputs, self.outputs, self.out_dtype = o["inputs"], o["outputs"], o["out_dtype"]
        maps = [[layout_of_map(o["dev_matrix"], m) for m in o[side + "_tensor_map"]]
                for side in ("in", "out")]
        need(math.prod(o["dev_matrix"]) == ranks, "dev_matrix does not arrange", ranks, "ranks")
        self.in_whole, self.out_whole = (
            [[n * parts(axes) for n, axes in zip(size, layout)] for size, layout in zip(o[key], of)]
            for key, of in (("in_slice", maps[0]), ("out_slice", maps[1])))
        if alone:
            maps, moves, ranks = [[[[] for _ in m] for m in of] for of in maps], {}, 1
        self.in_layout, self.out_layout = maps
        self.ranks, self.moves, self.alone = ranks, moves, alone
        self.comms = [] if alone else o["communications"]
        self.in_8_bits, self.recipe = o.get("in_8_bits"), recipe
        # To another number of devices piece by piece: what a Send sends, and gets back; first ranks of stages.
        self.sent, self.first = not alone and bool(sent), first
        self.comes_back = self.sent and "back_sends" in sent

    def of(self, phase, which, index):
        return [c for c in self.comms if c["phase"] == phase and c.get(which) == index]

    def stays_inside(self, k):
        """A result that only its way back reads, where others are exchanged: it is not laid out as is said."""
        exchanged = [c["result"] for c in self.comms
                     if c["phase"] == "forward" and c["kind"] == "AlltoAll" and "result" in c]
        return bool(exchanged) and k not in exchanged


class Run:
    """An operator on all ranks, between its forward and its backward pass."""

    def __init__(self, oper, operands):
        self.oper, self.grown = oper, []
        need(oper.type in KERNELS, oper.type, "has no kernel")
        boxes = [[box(s, l, r) for s, l in zip(oper.in_whole, oper.in_layout)]
                 for r in range(oper.ranks)]
        for i, value in enumerate(operands):
            for rank, x in enumerate(value):
                need(list(x.shape) == boxes[rank][i][1], f"operand {i} comes as {x.shape}, not as",
                     boxes[rank][i][1])
        for comm in oper.comms:
            if comm["phase"] == "forward" and comm["kind"] == "NeighborExchange":
                i = comm["operand"]
                operands[i] = exchange(operands[i], comm)
                self.grown.append(comm)
                for rank, b in enumerate(boxes):
                    b[i][0][comm["dim"]] -= comm["before"][group(rank, comm["axes"]).index(rank)]
            elif comm["phase"] == "forward" and comm["kind"] == "Ring":
                i = comm["operand"]
                operands[i] = all_gather(operands[i], comm["axes"], comm["dim"])
                for b in boxes:
                    b[i][0][comm["dim"]] = 0
            elif comm["phase"] == "forward" and comm["kind"] == "AlltoAll" and "operand" in comm:
                i = comm["operand"]
                operands[i] = all_to_all(operands[i], comm)
                for rank, b in enumerate(boxes):
                    b[i][0][comm["concat_dim"]] = 0
                    own = group(rank, comm["axes"]).index(rank)
                    b[i][0][comm["dim"]] += own * operands[i][rank].shape[comm["dim"]]
        self.copies = Copies(oper, operands, [[b[0] for b in of] for of in boxes]) if oper.in_8_bits else None
        self.statistics, self.tapes, self.ins = {}, [], []
        kernels = [self.begin(rank, [x[rank] for x in operands], boxes[rank])
                   for rank in range(oper.ranks)]
        outs = self.finish(kernels)
        self.outs, self.made, self.results = [], [], []
        for k in range(len(oper.outputs)):
            self.outs.append([out[k] for out in outs])
            self.made.append([v.value for v in self.outs[k]])
            comms = [] if k in self.statistics else oper.of("forward", "result", k)
            self.results.append(self.collect(self.made[k], comms))

    def begin(self, rank, operands, in_box):
        """Calls the kernel of a rank. A result that is dealt is computed for the whole group."""
        oper, tape = self.oper, Tape()
        out = [box(s, l, rank) for s, l in zip(oper.out_whole, oper.out_layout)]
        for k, (first, size) in enumerate(out):
            for c in oper.of("forward", "result", k):
                if c["kind"] == "ReduceScatter":
                    first[0] -= group(rank, c["axes"]).index(rank) * size[0]
                    size[0] *= parts(c["axes"])
                elif c["kind"] == "AlltoAll":
                    first[c["dim"]], size[c["dim"]] = 0, size[c["dim"]] * parts(c["axes"])
                    size[c["concat_dim"]] //= parts(c["axes"])
        site = Site(oper.type, oper.attrs, len(operands), [b[0] for b in in_box], oper.in_whole,
                    [b[0] for b in out], [b[1] for b in out], oper.out_whole, oper.out_dtype)
        self.tapes.append(tape)
        self.ins.append([Var(x, tape) for x in operands])
        if self.copies:
            self.copies.made.append(out[0][0])
            return self.copies.product(rank, site, *self.ins[rank])
        return KERNELS[oper.type](site, *self.ins[rank])

    def finish(self, kernels):
        """Results of all ranks. Kernels that need a statistic of all ranks give theirs first."""
        if isinstance(kernels[0], list):
            return kernels
        found, outs = [next(kernel) for kernel in kernels], []
        while not outs:
            k, given = found[0][0], [var for _, var in found]
            comms = self.oper.of("forward", "result", k)
            share = math.prod(parts(c["axes"]) for c in comms)
            common = self.collect([v.value / share for v in given], comms)
            leaf = [Var(x, tape) for x, tape in zip(common, self.tapes)]
            self.statistics[k] = (given, leaf, [len(tape) for tape in self.tapes], share)
            found = []
            for kernel, var in zip(kernels, leaf):
                try:
                    found.append(kernel.send(var))
                except StopIteration as end:
                    outs.append(end.value)
        return outs

    def collect(self, value, comms):
        for c in comms:
            if c["kind"] == "AllReduce":
                value = all_reduce(value, c["axes"], c["reduce"])
            elif c["kind"] == "ReduceScatter":
                value = own_part(all_reduce(value, c["axes"]), c["axes"])
            elif c["kind"] == "AlltoAll":
                value = all_to_all(value, c)
            else:
                need(c["kind"] == "Send", c["kind"], "of a result")
        return value

    # ---- backward ----

    def gradient_of_made(self, k, grads):
        """From the gradient of a result to that of what each rank computed before it was combined."""
        forward = [c["axes"] for c in self.oper.of("forward", "result", k) if "axes" in c]
        for c in self.oper.of("backward", "result", k):
            need(c["axes"] in forward, c["kind"], "of the gradient of a result in another group")
            if c["kind"] == "AllReduce":
                grads = all_reduce(grads, c["axes"])
            elif c["kind"] == "AllGather":
                grads = all_gather(grads, c["axes"])
            elif c["kind"] == "AlltoAll":
                grads = all_to_all(grads, c)
        for c in self.oper.of("forward", "result", k):
            if c["kind"] != "AllReduce":
                continue
            if c["reduce"] == "mean":
                grads = [g / parts(c["axes"]) for g in grads]
            elif c["reduce"] in ("max", "min"):
                grads = [g * (own == common) for g, own, common in
                         zip(grads, self.made[k], self.results[k])]
        return grads

    def backward(self, douts, partial, wanted):
        """Gradients of operands from those of results; None where none has come or is wanted."""
        for k, grads in enumerate(douts):
            if grads is not None and k not in self.statistics:
                grads = self.gradient_of_made(k, grads)
                if self.copies:
                    self.copies.copy_gradients(grads)
                for var, g in zip(self.outs[k], grads):
                    need(g.shape == var.shape, f"the gradient of result {k} comes as {g.shape}")
                    var.add_grad(g)
        for k, (given, leaf, lengths, share) in reversed(self.statistics.items()):
            for tape, length in zip(self.tapes, lengths):
                tape.sweep(length)
            zeroes = [np.zeros(v.shape) for v in leaf]
            outside = douts[k] or zeroes
            grads = [z if v.grad is None else v.grad for v, z in zip(leaf, zeroes)]
            grads = [g + o for g, o in zip(grads, outside)] if partial else grads
            for c in self.oper.of("backward", "result", k):
                grads = all_reduce(grads, c["axes"])
            grads = grads if partial else [g + o for g, o in zip(grads, outside)]
            for var, g in zip(given, grads):
                var.add_grad(g / share)
        for tape in self.tapes:
            tape.sweep()
        return [self.gradient_of_operand(i) if w else None for i, w in enumerate(wanted)]

    def gradient_of_operand(self, i):
        of_rank = [ins[i] for ins in self.ins]
        if all(var.grad is None for var in of_rank):
            return None
        grads = [np.zeros(v.shape) if v.grad is None else v.grad for v in of_rank]
        back = self.oper.of("backward", "operand", i)
        for comm in reversed([c for c in self.grown if c["operand"] == i]):
            at = next((c for c in back if c["kind"] == "NeighborExchange" and
                       c["axes"] == comm["axes"]), None)
            need(at, "elements of neighbours give no gradients back")
            grads = exchange(grads, at, back=True)
        for c in back:
            if c["kind"] == "AllReduce":
                grads = all_reduce(grads, c["axes"])
            elif c["kind"] == "Ring":
                grads = own_part(all_reduce(grads, c["axes"]), c["axes"], c["dim"])
            elif c["kind"] == "AlltoAll":
                grads = all_to_all(grads, c)
        return grads


# ---- a step --------------------------------------------------------------------------------------

class Step:
    """All operators of a step over all micro-batches. source(tensor) is a whole array."""

    def __init__(self, opers, source, weights, wanted, partial, nbatch, params=()):
        self.params = {p["name"]: p for p in params}
        self.opers, self.source, self.weights = opers, source, weights
        self.wanted, self.partial, self.nbatch = wanted, partial, nbatch
        self.values, self.grads, self.runs, self.use_grads = {}, {}, {}, {}
        self.copies, self.waiting = {}, {}  # by redistribution: what others share; their gradients
        self.late = {}  # gradients of weights that another stage sent, which go back once

    def operand(self, k, i, m):
        """The value of an operand in the layout of its operator."""
        oper, tensor = self.opers[k], self.opers[k].inputs[i]
        move_to = oper.moves.get(i)
        if tensor in self.weights:
            value = self.weights[tensor]
            gathers = [c for c in oper.comms if c["phase"] == "forward" and
                       c["kind"] == "AllGather" and c.get("tensor") == tensor]
            return gather_parts(value, self.params[tensor], gathers[0]["axes"]) if gathers else value
        if (tensor, m) in self.values or (tensor, None) in self.values:
            value = self.values.get((tensor, m), self.values.get((tensor, None)))
        else:
            whole = self.source(tensor)
            for d, (n, micro) in enumerate(zip(whole.shape, oper.in_whole[i])):
                need(micro in (n, n // self.nbatch), tensor, "is", whole.shape)
                if micro != n:
                    whole = np.split(whole, self.nbatch, d)[m]
            layout = layout_of_pairs(move_to["from_layout"]) if move_to else oper.in_layout[i]
            value = cut(whole, layout, oper.ranks)
        if move_to and "shares" in move_to:
            need((move_to["shares"], m) in self.copies, tensor, "has no copy to share")
            return list(self.copies[move_to["shares"], m])
        if move_to and "from_stage" in move_to:
            need("sends" in move_to, tensor, "is sent in more pieces than are listed")
            return send(value, move_to, "sends", oper.in_whole[i], oper.first)
        for step in move_to["steps"] if move_to else []:
            value = move(value, step)
        if move_to:
            self.copies[move_to["index"], m] = list(value)
        return value

    def forward(self, k, m):
        oper = self.opers[k]
        run = Run(oper, [self.operand(k, i, m) for i in range(len(oper.inputs))])
        self.runs[k, m] = run
        if oper.type == "Send" and not (oper.alone or oper.sent or oper.of("forward", "result", 0)):
            return  # nothing is sent
        for tensor, value in zip(oper.outputs, run.results):
            self.values[tensor, m] = value

    def add(self, where, key, grads):
        old = where.get(key)
        where[key] = grads if old is None else [a + b for a, b in zip(old, grads)]

    def backward(self, k, m):
        oper = self.opers[k]
        douts = [self.grads.get((tensor, m)) for tensor in oper.outputs]
        if oper.type == "Send" and not (oper.alone or oper.comes_back or oper.of("backward", "result", 0)):
            return
        if all(d is None for d in douts) or not any(t in self.wanted for t in oper.outputs):
            return
        wanted = [t in self.wanted for t in oper.inputs]
        for i, grads in enumerate(self.runs[k, m].backward(douts, self.partial, wanted)):
            tensor = oper.inputs[i]
            if grads is None:
                continue
            once = (tensor, None) in self.values
            if tensor in self.weights:
                self.add(self.use_grads, (k, i), grads)
            elif once and m is not None and not self.partial:
                self.add(self.late, (k, i), grads)
            elif "shares" in oper.moves.get(i, {}):
                self.add(self.waiting, (oper.moves[i]["shares"], m), grads)
            else:
                others = self.waiting.pop((oper.moves.get(i, {}).get("index"), m), None)
                grads = [a + b for a, b in zip(grads, others)] if others else grads
                self.add(self.grads, (tensor, None if once else m), self.brought_back(k, i, grads))

    def brought_back(self, k, i, grads):
        """The gradient of an operand in the layout of its producer."""
        move_to = self.opers[k].moves.get(i)
        if move_to and "from_stage" in move_to:
            need("back_sends" in move_to, "the gradient of", self.opers[k].inputs[i], "has no way back")
            return send(grads, move_to, "back_sends", self.opers[k].in_whole[i], self.opers[k].first)
        if move_to and self.partial:
            for step in reversed(move_to["steps"]):
                grads = move(grads, step, back=True)
        elif move_to:
            need("back_steps" in move_to, "the gradient of", self.opers[k].inputs[i],
                 "has no way back")
            for step in move_to["back_steps"]:
                grads = move(grads, step)
        return grads

    def gather_late(self, k):
        """What the users of a received weight added up over all micro-batches is exchanged."""
        for tensor in self.opers[k].outputs:
            for user, i in uses_of(self.opers, tensor):
                grads = self.late.get((user, i))
                if grads is None:
                    continue
                for c in self.opers[user].of("gradient", "operand", i):
                    grads = all_reduce(grads, c["axes"])
                self.add(self.grads, (tensor, None), self.brought_back(user, i, grads))

    def begin_gradient(self, loss, m):
        value = self.values[loss, m]
        one = 1 / len(value) if self.partial else 1
        self.add(self.grads, (loss, m), [np.full(x.shape, float(one)) for x in value])

    def run_slot(self, loss, part, backward, m):
        ks = [k for k, o in enumerate(self.opers)
              if not o.once and part in (None, (o.stage, o.segment))]
        for k in reversed(ks) if backward else ks:
            try:
                if backward and loss in self.opers[k].outputs:
                    self.begin_gradient(loss, m)
                (self.backward if backward else self.forward)(k, m)
            except (Fault, ValueError, IndexError, KeyError) as fault:
                way = "backward of " if backward else ""
                raise Fault(f"{way}{self.opers[k].name}, micro-batch {m}: {fault}") from fault

    def is_ready(self, part, backward, m):
        """Has what other stages send come?"""
        for k, o in enumerate(self.opers):
            if o.once or (o.stage, o.segment) != part:
                continue
            if not backward and o.type == "Receive" and (o.inputs[0], m) not in self.values:
                return False
            if backward and o.type == "Send" and (o.comes_back or o.of("backward", "result", 0)) and \
                    (o.outputs[0], m) not in self.grads:
                return False
        return True

    def run(self, loss, stages=None):
        """Without stages with slots: one micro-batch after the other."""
        once = [k for k, o in enumerate(self.opers) if o.once]
        for k in once:
            self.forward(k, None)
        slots = [list(s.get("slots", [])) for s in stages or []]
        while any(slots):
            ready = [s for s in slots if s and (s[0]["pass"] == "weight" or self.is_ready(
                s[0]["part"], s[0]["pass"] == "backward", s[0]["micro_batch"]))]
            need(ready, "every stage waits for another")
            slot = ready[0].pop(0)
            if slot["pass"] != "weight":  # all gradients are computed in the backward pass
                self.run_slot(loss, slot["part"], slot["pass"] == "backward", slot["micro_batch"])
        for m in range(0 if stages else self.nbatch):
            self.run_slot(loss, None, False, m)
            self.run_slot(loss, None, True, m)
        need(not self.waiting, "gradients wait for one whose way back they share")
        for k in reversed(once):
            self.gather_late(k)
            self.backward(k, None)


# ---- parameters ----------------------------------------------------------------------------------

def uses_of(opers, name):
    return [(k, i) for k, o in enumerate(opers) for i, t in enumerate(o.inputs) if t == name]


def exchanged(step, param, partial):
    """The gradient of a parameter, of the part that each rank updates."""
    dealt = param["optimizer_group"]
    said = [(g["operator"], g["operand"], g["kind"], g["axes"]) for g in param["gradient_groups"]]
    found, total = [], None

    def through(value, comms):
        whole = dealt is not None
        for c in comms:
            found.append((c["of"], c["operand"], c["kind"], c["axes"]))
            if c.get("part") and whole:
                value, whole = dealt_part(value, param), False
            value = all_reduce(value, c["axes"])
            if c["kind"] == "ReduceScatter":
                value, whole = dealt_part(value, param | {"optimizer_group": c}), False
        return dealt_part(value, param) if whole else value

    uses, of_uses = uses_of(step.opers, param["name"]), []
    at = {o.name: k for k, o in enumerate(step.opers)}
    joined = [(at[s["operator"]], s["operand"]) for s in param.get("gradient_sums", [])]
    need(set(joined) <= set(uses) and (param["gradient_groups"] or not joined),
         "gradient_sums names what is no use, or no exchange is there")
    for use in joined:  # to the owner's, whose exchange is the first
        first = param["gradient_groups"][0]
        owner = at[first["operator"]], first["operand"]
        mine, others = step.use_grads.pop(use), step.use_grads[owner]
        step.use_grads[owner] = [a + b for a, b in zip(others, mine)]
    for k, i in uses:
        comms = [dict(c, of=step.opers[k].name) for c in step.opers[k].of("gradient", "operand", i)]
        of_uses.append(comms)
        grads = step.use_grads.get((k, i))
        if grads is not None:
            grads = grads if partial else through(grads, comms)
            total = grads if total is None else [a + b for a, b in zip(total, grads)]
    if partial and total is not None:
        total = through(total, [c for comms in of_uses for c in comms])
    need(total is None or sorted(map(str, found)) == sorted(map(str, said)),
         "gradient_groups are not those of the operators")
    return total


def updated(step, param, weight, grads):
    """Each rank updates its part; what the slice becomes, or the part where it is gathered for use."""
    weight = dealt_part(weight, param) if param["optimizer_group"] else weight
    need(all(w.shape == g.shape for w, g in zip(weight, grads)), "the gradient is of another part")
    weight = [w - g / 10 for w, g in zip(weight, grads)]
    for k, i in uses_of(step.opers, param["name"]):
        for c in step.opers[k].of("optimizer", "operand", i):
            weight = gather_parts(weight, param, c["axes"]) if c["kind"] == "AllGather" else weight
    return weight
