#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""decided_whole.py PROGRAM: `plan` beside all combinations of settings, each evaluated by itself.

Chains of 2 to 4 operators and networks of 2 to 6 layers, by chance, on a few devices for any executor, every other one
with so little memory that much of it does not fit. What the executor can be told is written a second time here. No
combination of it that fits the memory less headroom is faster than the hybrid decided, none is below the bound, and
where one is what was decided, it takes as long. The same graph with other names and all its lists but that of outputs
in another order has the same step, to the byte. AP_CASES: graphs (30); AP_SEED.
"""
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

program = os.path.abspath(sys.argv[1])
cases = int(os.environ.get("AP_CASES", "30"))
seed = int(os.environ.get("AP_SEED", "20261123"))
faults = []
counts = {"matched": 0, "short": 0}
SAME = 1e-9


def fault(text):
    faults.append(text)
    print("FAULT:", text, flush=True)


def run(*words):
    got = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return got.returncode, got.stdout, got.stderr


# ---- graphs ----

def chain(rng, file):
    """Products one behind the other."""
    n, batch = rng.randint(2, 4), rng.choice([4, 8, 12])
    wide = [rng.choice([48, 64, 96, 128, 192]) for _ in range(n + 1)]
    graph = {"schema": "autopar-graph/1", "name": "chain",
             "inputs": [{"name": "t0", "shape": [batch * 32, wide[0]], "dtype": "float32", "batch_dim": 0}],
             "parameters": [{"name": f"w{i}", "shape": [wide[i], wide[i + 1]], "dtype": "float32"} for i in range(n)],
             "operators": [{"name": f"MatMul-op{i}", "type": "MatMul", "inputs": [f"t{i}", f"w{i}"],
                            "outputs": [{"name": f"t{i + 1}", "shape": [batch * 32, wide[i + 1]], "dtype": "float32"}]}
                           for i in range(n)],
             "outputs": [f"t{n}"]}
    with open(file, "w", encoding="utf-8") as f:
        json.dump(graph, f)
    return 0, batch * 32, 0


def network(rng, file):
    layers, batch, heads = rng.randint(2, 6), rng.choice([4, 6, 8]), rng.choice([2, 4])
    kind = rng.choice(["gpt3", "llama", "mixtral"])
    words = [kind, "--layers", str(layers), "--hidden", str(64 * heads), "--heads", str(heads), "--sequence", "64",
             "--vocabulary", "256", "--batch", str(batch), "--dtype", "bfloat16", "--attention",
             rng.choice(["flash", "small-operators"])]
    if kind != "gpt3":
        words += ["--kv-heads", str(heads), "--inner", "384"]
    if kind == "mixtral":
        words += ["--experts", "2", "--active", "1", "--capacity", "0", "--kernels", "fused"]
    code, _, err = run("model", *words, "-o", file)
    if code:
        sys.exit(f"model {' '.join(words)}: {err}")
    return layers, batch, 2 if kind == "mixtral" else 0


def renamed(rng, file, to, shuffled):
    """The same graph with other words in its names, and these lists in another order."""
    with open(file, encoding="utf-8") as f:
        graph = json.load(f)
    words = {}

    def other(name, keep=""):
        def word(m):
            if m.group() == keep:
                return keep
            if m.group() not in words:
                words[m.group()] = f"{''.join(rng.choice('abcdefghijklm') for _ in range(5))}{len(words)}x"
            return words[m.group()]
        return re.sub(r"[A-Za-z_]\w*", word, name)

    for o in graph["operators"]:
        scope, slash, own = o["name"].rpartition("/")
        o["name"] = other(scope, "Default") + slash + own
        o["inputs"] = [t and other(t) for t in o["inputs"]]
        if "after" in o:
            o["after"] = [other(t) for t in o["after"]]
        for t in o["outputs"]:
            t["name"] = other(t["name"])
    for key in ("inputs", "parameters", "constants"):
        for t in graph.get(key, []):
            t["name"] = other(t["name"])
    for c in graph.get("cells", []):
        c["name"] = other(c["name"])
    graph["outputs"] = [other(t) for t in graph["outputs"]]
    for key in shuffled:
        rng.shuffle(graph.get(key, []))
    with open(to, "w", encoding="utf-8") as f:
        json.dump(graph, f)


# ---- what executors can be told ----

# In lists, where sums are whole and where they are dealt.
LISTED = (["none", "activation", "layernorm+activation", "selective+layernorm+activation", "full"],
          ["none", "activation", "selective+activation", "selective+communication+activation",
           "selective+communication+layernorm+activation", "full"])
KINDS = {"torchtitan": ["none", "products/2", "full"], "deepspeed": ["none", "full"]}
ACTIVATION = {"megatron": "moe_act", "mindspeed": "activation"}
MARKED = ("mindspore", "mindformers")  # by calls of cells and primitives
GATHERS = ("mindspore", "mindformers", "generic")  # weights of what is computed again, once or again
SHARED = ("mindspore", "mindformers", "torchtitan")  # a pipeline has as many micro-batches as stages
ROUNDS = ("mindspeed", "megatron", "torchtitan")  # segments run in whole rounds
VEE = ("torchtitan", "generic")
LEVELS = {"torchtitan": [2, 3], "mindspeed": [0, 1]}


GROUPS = {"megatron": [1], "torchtitan": [2, 3], "mindspeed": [], "deepspeed": [3]}  # levels; groups of ranks each have all of a parameter
DENSE = ("megatron", "torchtitan")  # but not beside dealt experts


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def turns(layers, pp, m, executor):
    """Segments and schedulers of a pipeline."""
    yield 1, "1f1b"
    most = (layers // pp if layers else 2) if pp > 1 and executor != "deepspeed" else 1
    for v in range(2, most + 1):
        if layers and layers % (pp * v):
            continue
        if m >= pp and not (executor in ROUNDS and m % pp):
            yield v, "interleaved"
        if v == 2 and executor in VEE and not (executor in ROUNDS and m % pp):
            yield v, "zero_bubble_v"


def combinations(layers, batch, experts, devices, executor):
    for pp in divisors(devices):
        if layers and (pp > layers or (executor == "deepspeed" and layers % pp)):
            continue
        for m in divisors(batch):
            if executor in SHARED and pp > 1 and m < pp:
                continue
            for v, scheduler in turns(layers, pp, m, executor):
                for tp in divisors(devices // pp):
                    dp = devices // pp // tp
                    if batch % (dp * m):
                        continue
                    for ep in divisors(experts) if experts and executor != "deepspeed" else [1]:
                        for etp in sorted({tp, 1}) if ep > 1 else [tp]:
                            for sp in (0, 1) if tp > 1 and executor != "deepspeed" else (0,):
                                if executor in ("mindspeed", "megatron") and experts and tp > 1 and not sp:
                                    continue
                                yield {"dp": dp, "tp": tp, "ep": ep, "etp": etp, "pp": pp, "vpp": v, "sp": sp,
                                       "mbs": batch // dp // m}, m, scheduler


def groups(executor, degrees, level, server):
    """Ranks that parameters are dealt to; 0: all that hold the same. Others are those inside a server."""
    yield 0
    if level in GROUPS.get(executor, [1, 2, 3]) and not (executor in DENSE and degrees["ep"] > 1):
        ranks = server // degrees["tp"] if server and server % degrees["tp"] == 0 else 1
        if 1 < ranks < degrees["dp"] and degrees["dp"] % ranks == 0:
            yield ranks


def modules(executor, experts):
    """Sets of modules that such a network has; where the core of attention is fused, selective means nothing."""
    act = "+" + ACTIVATION[executor] if experts or executor == "mindspeed" else ""
    part = "moe" if experts else "mlp"
    return ["none", "layernorm", f"selective{act}", f"selective+layernorm{act}", f"selective+{part}",
            f"selective+layernorm+{part}", "full"]


def kinds_of(executor, sums, experts):
    if executor in ACTIVATION:
        return modules(executor, experts)
    if executor in KINDS:
        return KINDS[executor]
    return LISTED[sums]


def words_of(executor, layers, batch, experts, devices, server):
    for degrees, m, scheduler in combinations(layers, batch, experts, devices, executor):
        for kind, level in itertools.product(kinds_of(executor, degrees["sp"], experts),
                                             LEVELS.get(executor, [0, 1, 2, 3])):
            if executor == "deepspeed" and degrees["pp"] > 1 and level > 1:
                continue  # stages take ZeRO 0 or 1
            for shard in groups(executor, degrees, level, server):
                words = ["--hybrid", ",".join(f"{k}={n}" for k, n in degrees.items() if k != "etp" or
                                            n != degrees["tp"]), "--micro-batches", str(m),
                         "--pipeline-scheduler", scheduler, "--recompute", kind]
                if level:
                    words += ["--enable-parallel-optimizer", "--optimizer-level", f"level{level}"]
                if shard:
                    words += ["--optimizer-weight-shard-size", str(shard)]
                told = {**degrees, "m": m, "scheduler": scheduler, "kind": kind, "level": level, "shard": shard,
                        "gathers": "once"}
                yield words, told
                if executor in GATHERS and level in (1, 2) and kind != "none":
                    yield [*words, "--parallel-optimizer-comm-recompute"], {**told, "gathers": "again"}


def decided_of(joint, executor, experts):
    """What was decided, with keys as above; None where it says more than these."""
    known = kinds_of(executor, 0, experts) + kinds_of(executor, 1, experts)
    if "layers=" in joint["decided"] or re.search(r"recompute=\S*:", joint["decided"]):
        return None  # lists, which are no combination
    got = {"ep": 1, "vpp": 1, "sp": 0, "level": 0, "shard": 0, "scheduler": "1f1b", "gathers": "once"}
    for word in joint["decided"].split():
        key, equals, value = word.partition("=")
        if not equals:
            got.update({"level": int(key[5:])} if key.startswith("level") else {"scheduler": key})
        elif key == "recompute":
            if executor in ACTIVATION and value not in known:
                value = f"selective+{value}"
            if value not in known:
                return None  # some words mean nothing in this graph
            got["kind"] = value
        elif key == "layers":
            return None
        elif key == "gathers":
            got[key] = value
        elif value.isdigit():
            got[{"v": "vpp", "micro-batches": "m"}.get(key, key)] = int(value)
        else:
            return None
    got.setdefault("etp", got["tp"])
    return got


def priced(machine, words):
    code, out, _ = run("evaluate", *machine, "--json", *words)
    if code:
        return None
    told = json.loads(out)["prediction"]
    return told["step_time_s"], max(s["total_bytes"] for s in told["memory"])


def told_whole(machine, folder, todo):
    """Those combinations whose bundle marks all that they compute again; operators of one type in a cell are marked
    alike there."""
    marked = {}
    for words, told in todo:
        key = told["kind"], told["sp"], told["tp"] > 1, told["gathers"]
        if key not in marked:
            bundle = os.path.join(folder, f"bundle{len(marked)}")
            if run("evaluate", *machine, *words, "--bundle", bundle)[0]:
                continue  # nor is it priced
            with open(os.path.join(bundle, "recompute.json"), encoding="utf-8") as f:
                marked[key] = not json.load(f)["not_applicable"]
            shutil.rmtree(bundle)
        if marked[key]:
            yield words, told


def plan_of(what, machine, *words):
    code, out, err = run("plan", *machine, "--json", *words)
    if code not in (0, 2, 5):
        fault(f"{what}: exit code {code}: {err}")
    return json.loads(out)["joint"] if code == 0 else None


def look_at(rng, folder, number):
    file = os.path.join(folder, "graph.json")
    layers, batch, experts = rng.choice([chain, network, network])(rng, file)
    executor = rng.choice(["generic", "megatron", "mindspeed", "mindspore", "mindformers", "torchtitan", "deepspeed"])
    chip = "ascend910b" if executor.startswith("mind") else rng.choice(["a100-80", "h100-80"])
    devices = rng.choice([2, 4, 4, 6, 8])
    server = rng.choice([0, 2, 4])
    machine = [file, "--device-num", str(devices), "--chip", chip, "--executor", executor]
    if server:
        machine += ["--devices-per-server", str(server)]
    batches = []
    if not layers:  # rows are samples there; a few micro-batches of them
        batches = ["--micro-batches", "1,2,4"]
    what = f"case {number}: {layers} layers, {experts} experts, batch {batch}, {' '.join(machine[1:])}"
    todo = [t for t in words_of(executor, layers, batch, experts, devices, server if server < devices else 0) if layers or t[1]["m"] in (1, 2, 4)]
    if len(todo) > most:
        return 0
    if executor in MARKED:
        todo = list(told_whole(machine, folder, todo))
    with ThreadPoolExecutor(2) as pool:
        all_priced = list(pool.map(lambda t: priced(machine, t[0]), todo))
    known = [(t, p) for t, p in zip(todo, all_priced) if p]
    memory = []
    usable = None
    if known and rng.random() < 0.5:
        bytes_ = sorted(p[1] for _, p in known)
        usable = bytes_[rng.randrange(len(bytes_))]
        memory = ["--memory", str(-(-usable * 100 // 95) + 1)]
    joint = plan_of(what, machine, *memory, *batches)
    if joint:
        usable = joint["usable_bytes"]
    fits = [(p[0], t) for t, p in known if usable is None or p[1] <= usable]
    what += " " + " ".join(memory)
    if not joint:
        if fits:
            fault(f"{what}: nothing is decided, {fits[0]} fits")
        return len(todo)
    step = joint["step_time_s"]
    least, (words, _) = min(fits, key=lambda f: f[0], default=(float("inf"), ([], {})))
    if step > least * (1 + SAME):
        fault(f"{what}: {joint['decided']} takes {step}, {' '.join(words)} {least}")
    bound = joint.get("least_hybrid_s", joint["step_bound_s"])
    if bound > least * (1 + SAME):
        fault(f"{what}: {' '.join(words)} takes {least}, below the bound {bound}")
    told = decided_of(joint, executor, experts)
    own = [p for t, p in known if t[1] == told]
    counts["matched"] += bool(own)
    counts["short"] += len(fits) < len(known)
    if told and (not own or abs(own[0][0] - step) > SAME * step or own[0][1] > usable):
        fault(f"{what}: decided {joint['decided']}, {step}; evaluated {own}, usable {usable}")
    other = os.path.join(folder, "renamed.json")
    renamed(rng, file, other, ["inputs", "parameters", "constants", "operators", "cells"])
    again = plan_of(what + " renamed", [other, *machine[1:]], *memory, *batches)
    if not again or again["step_time_s"] != step:
        fault(f"{what}: {step}, renamed and in other orders {again and again['step_time_s']}")
    return max(len(todo), 1)


most = int(os.environ.get("AP_MOST", "400"))  # combinations of a graph; those with more are left out
with tempfile.TemporaryDirectory() as tmp:
    print("seed", seed)
    met = total = drawn = 0
    while met < cases:
        drawn += 1
        n = look_at(random.Random(f"{seed} {drawn}"), tmp, drawn)
        met += n > 0
        total += n
    print(f"{met} graphs, {total} combinations, {drawn - met} graphs with too many; decided is one of them in "
          f"{counts['matched']}, memory is short in {counts['short']}")
    if cases >= 10 and not (counts["matched"] and counts["short"]):
        fault("no decision was compared, or memory was short nowhere")
if faults:
    sys.exit(f"{len(faults)} faults; AP_SEED={seed}")
