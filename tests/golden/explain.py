# SPDX-License-Identifier: Apache-2.0
"""Usage: explain.py PROGRAM SOURCE_ROOT

Holds what `explain` tells of plans against the plans: its terms add up to what the plan states, and the sum of the
plan's cut, and of a cut that is given, is what a search with that cut finds.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if k not in ("RANK_TABLE_FILE", "NO_COLOR")}
ENV["AUTOPAR_PLAN_MODELS"] = str(ROOT / "models")
failed = 0

# a search, a pipeline with micro-batches, a hybrid with experts and its own order of ranks, recomputation
CASES = [
    ["search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b"],
    ["search", "gpt3_1.3b", "--device-num", "16", "--chip", "a100-80", "--executor", "generic",
     "--pipeline-stages", "2", "--micro-batches", "4", "--recompute", "selective"],
    ["evaluate", "mixtral_8x7b", "--device-num", "32", "--chip", "h100", "--executor", "megatron",
     "--hybrid", "dp=8,tp=4,ep=4,sp=1"],
    ["search", "gpt3_1.3b", "--device-num", "16", "--chip", "ascend910b", "--enable-parallel-optimizer",
     "--optimizer-level", "level2", "--micro-batches", "2", "--batch", "32"],
]


def run(*args):
    p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL)
    if p.returncode:
        print("FAILED:", " ".join(args), p.returncode, p.stderr)
        sys.exit(1)
    return p.stdout


def ask(condition, *what):
    global failed
    if not condition:
        failed += 1
        print("FAILED:", *what)


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-18


def explain(plan, *args):
    return json.loads(run("explain", plan, *args, "--json"))["things"]


def check_operator(plan, doc, op):
    cost, name = op["cost"], op["name"]
    thing = explain(plan, name)[0]
    ask(thing["kind"] == "operator" and thing["name"] == name, name, thing["name"])
    rows = thing["time"]["rows"]
    total = sum(r["step_s"] for r in rows)
    each = sum(r["step_s"] for r in rows if r["phase"] == "gradient" and r["times"] > 1)
    stated = sum(v for k, v in cost.items() if k.endswith("_s") and "_launch_" not in k)
    stated += sum(max(0, cost.get(key + "_launch_s", 0) - cost[key + "_s"]) for key in ("forward", "backward"))
    ask(near(total, thing["time"]["total_s"]), name, "rows and total")
    ask(near(total - each, stated), name, "time", total - each, stated)
    for r in rows:
        ask(near(r["step_s"], r["times"] * r["once_s"]), name, "times")
    for kind, key in (("forward", "forward"), ("backward", "backward")):
        kernels = sum(r["step_s"] for r in rows if r["phase"] == kind and " of " not in r["what"] and
                      not r["what"].startswith("bringing"))
        gradients = sum(r["step_s"] for r in rows if r["phase"] == kind and
                        (r["what"].startswith("gradient of the") or r["what"].startswith("sum of") or
                         r["what"].startswith("start of")))
        ask(near(kernels + gradients, cost[key + "_s"]), name, kind, kernels + gradients, cost[key + "_s"])
    for key, value in op["memory"].items():
        ask(thing["memory"][key] == value, name, key, thing["memory"][key], value)
    moves = [m for m in doc["redistributions"] if name in (m["to"], m["from"])]
    ask(near(thing["neighbours"]["total_s"], sum(m["forward_s"] + m["backward_s"] for m in moves)), name,
        "redistributions")
    ask(len(thing["neighbours"]["rows"]) == len(moves), name, "redistributions listed")
    other = thing["alternatives"]
    if "rows" in other:
        taken = [r for r in other["rows"] if r["verdict"] == "the plan's"]
        ask(len(taken) == 1, name, "the plan's cut")
        ask(taken[0]["sum_s"] <= other["plan_s"], name, "a sum above the plan's")
        ask(taken[0]["step_s"] == doc["prediction"]["step_time_s"], name, "step")
        known = [r for r in other["rows"] if r["sum_s"] is not None]
        ask(other["least_s"] == min(r["sum_s"] for r in known), name, "least of all")
        for r in known:
            ask(near(r["sum_s"] - taken[0]["sum_s"],
                     (r["own_s"] - taken[0]["own_s"]) + r["others_more_s"]), name, "its own and others'")


def check_collectives(plan, doc, table):
    """All that the plan says is sent is in the table, once, as it runs."""
    sums = {}

    def add(kind, phase, count, total, seconds):
        row = sums.setdefault((kind, phase), [0, 0, 0])
        row[0] += count
        row[1] += count * total
        row[2] += count * seconds

    for op in doc["operators"]:
        for c in op["communications"]:
            last = c["phase"] in ("gradient", "optimizer") # of a step, then
            each = c.get("each_micro_batch") or not (last or op.get("once"))
            count = (doc["settings"]["micro_batches"] if each else 1) - (last and c["kind"] != "Send")
            if count:
                add(c["kind"], "pipeline" if c["kind"] == "Send" else c["phase"], count, c["bytes"], c["time_s"])
    for b in doc["fusion"]:
        add(b["kind"], "optimizer" if b["kind"] == "AllGather" else "gradient", 1, b["bytes"], b["time_s"])
    moved = sum(m["forward_s"] + m["backward_s"] for m in doc["redistributions"])
    rows = table.get("rows", [])
    for (kind, phase), (count, total, seconds) in sums.items():
        found = [r for r in rows if r["collective"] == kind and r["phase"] == phase]
        ask(sum(r["count"] for r in found) == count, plan, kind, phase, "calls", count)
        ask(near(sum(r["bytes"] for r in found), total), plan, kind, phase, "bytes", total)
        ask(near(sum(r["step_s"] for r in found), seconds), plan, kind, phase, "seconds", seconds)
    ask(near(sum(r["step_s"] for r in rows if r["phase"] == "redistribution"), moved), plan, "redistributions", moved)
    ask(near(table["total_s"], sum(v[2] for v in sums.values()) + moved), plan, "collectives in all")
    ask(len({(r["collective"], r["phase"], r["ranks"], r["level"]) for r in rows}) == len(rows), plan, "rows folded")
    for r in rows:
        ask(r["longest_s"] * r["count"] >= r["step_s"] * (1 - 1e-9), plan, r, "longest call")
        ask(r["ranks"] > 1 and r["level"], plan, r, "ranks and level")


def check_layers(plan, rows, stage, kinds):
    """Layers of a stage hold what the stage does, and each is there once."""
    rows = [r for r in rows if r["stage"] == stage]
    for key, kind in (("weights", "weights"), ("gathered", "gathered"), ("gradients", "gradients"),
                      ("optimizer", "optimizer"), ("activations", "activations")):
        ask(sum(r["count"] * r[key + "_bytes"] for r in rows) == kinds[kind], plan, stage, key, "of layers")
    numbers = []
    for r in rows:
        ask(r["each_bytes"] * r["count"] == r["total_bytes"], plan, stage, r["layers"], "in all")
        if r["layers"][0].isdigit():
            ends = [part.split("-") for part in r["layers"].split(",")]
            mine = [n for e in ends for n in range(int(e[0]), int(e[-1]) + 1)]
            ask(len(mine) == r["count"], plan, stage, r["layers"], "count")
            numbers += mine
    ask(len(set(numbers)) == len(numbers), plan, stage, "layers told twice")
    return numbers


def check_whole(plan, doc):
    thing = explain(plan)[0]
    rows = {r["plan"]: r for r in thing["baselines"]["rows"]}
    for key in ("compute_s", "exposed_communication_s", "bubble_s", "optimizer_s"):
        ask(near(rows["this plan"][key], doc["prediction"][key]), plan, key)
    for r in rows.values():
        ask(near(r["step_s"], r["compute_s"] + r["exposed_communication_s"] + r["bubble_s"] + r["optimizer_s"]),
            plan, r["plan"], "terms of the step")
    for b in doc["baselines"]:
        if b["name"] in rows and "step_time_s" in b:
            ask(near(rows[b["name"]]["step_s"], b["step_time_s"]), plan, b["name"], "step")
    ask(thing["memory"]["total_bytes"] == sum(r["bytes"] for r in thing["memory"]["rows"]), plan, "memory")
    ask(len(thing["decisions"].get("rows", [])) <= 10, plan, "ten decisions")
    check_collectives(plan, doc, thing["collectives"])
    layers = set()
    for stage in doc["stages"]:
        s = explain(plan, "stage:%d" % stage["id"])[0]
        ask(s["memory"]["total_bytes"] == stage["memory_bytes"], plan, "memory of stage", stage["id"])
        ask(s["memory"]["total_bytes"] == sum(r["bytes"] for r in s["memory"]["rows"]), plan, "kinds of memory")
        kinds = {r["kind"]: r["bytes"] for r in s["memory"]["rows"]}
        layers |= set(check_layers(plan, thing["layers"]["rows"], stage["id"], kinds))
        ask(s["layers"]["rows"] == [r for r in thing["layers"]["rows"] if r["stage"] == stage["id"]], plan, "a stage's")
    ask(layers == set(range(len(layers))), plan, "layers from 0 on")


def runs_of(ranks):
    """Ranks as explain has them: runs, of more than eight the first."""
    runs = []
    for r in ranks:
        if runs and runs[-1][1] == r - 1:
            runs[-1][1] = r
        else:
            runs.append([r, r])
    texts = ["%d" % a if a == b else "%d-%d" % (a, b) for a, b in runs]
    more = ",.. (%d ranks, to %d)" % (len(ranks), ranks[-1]) if len(runs) > 8 else ""
    return ",".join(texts[:8]) + more


def check_holders(plan, doc, param, first_rank):
    """Who holds what, by the device matrix and the tensor map of the plan file."""
    thing = [t for t in explain(plan, param["name"]) if t["kind"] == "tensor" and t["name"] == param["name"]][0]
    matrix, held = param["dev_matrix"], {}
    for rank in range(math.prod(matrix)):
        at, left = [0] * len(matrix), rank
        for axis in reversed(range(len(matrix))):
            left, at[axis] = divmod(left, matrix[axis])
        part = []
        for size, whole, axis in zip(param["slice_shape"], param["tensor_shape"], param["tensor_map"]):
            start = 0 if axis < 0 else at[len(matrix) - 1 - axis] * size
            part.append(":" if size == whole else "%d:%d" % (start, start + size))
        held.setdefault("[%s]" % ",".join(part), []).append(first_rank + rank)
    want = {part: runs_of(ranks) for part, ranks in held.items()} if len(held) > 1 else {}
    got = {r["part"]: r["ranks"] for r in thing.get("holders", {}).get("rows", [])}
    ask(got == want if len(want) <= 40 else got.items() <= want.items(), plan, param["name"], got, want)
    return len(held) > 1


def main():
    held = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(CASES):
            plan = os.path.join(folder, "%d.plan.json" % i)
            run(*case, "-q", "--plan-out", plan)
            with open(plan, encoding="utf-8") as f:
                doc = json.load(f)
            check_whole(plan, doc)
            ops = doc["operators"]
            for op in ops[::max(1, len(ops) // 4)]:
                check_operator(plan, doc, op)
            first = {stage["id"]: stage["first_rank"] for stage in doc["stages"]}
            plain = [p for p in doc["parameters"] if p.get("tensor_map") and min(p["tensor_map"]) >= -1]
            for param in plain[::max(1, len(plain) // 8)]:
                held += check_holders(plan, doc, param, first[param["stage"]])
    ask(held > 8, "few parameters in parts:", held)
    sys.exit(1 if failed else 0)


main()
