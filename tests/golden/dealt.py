#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dealt.py PROGRAM: layers that `plan` deals to the parts of a pipeline, and to kinds of recomputation.

Degrees, stages, segments and micro-batches are given, layers and kinds are open. Random lists of
them, priced by `evaluate`, may not take less than the bound that `plan` states, nor, where they
fit, less than its plan by more than its gap. Of small networks whose stages are a V all lists there
are are priced. AP_CASES: settings; AP_SEED: theirs.
"""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

program = os.path.abspath(sys.argv[1])
cases = max(6, int(os.environ.get("AP_CASES", "100")) // 8)
seed = int(os.environ.get("AP_SEED", "20261124"))
faults = []
TRIES = 6
NEAR = 0.002  # layers' figures leave out some of what a step takes


def fault(text):
    faults.append(text)
    print("FAULT:", text)


def run(*words):
    got = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return got.returncode, got.stdout, got.stderr


NETWORKS = {
    "gpt": (12, ["gpt3", "--layers", "12", "--hidden", "1024", "--heads", "16", "--sequence", "512",
                 "--vocabulary", "8192", "--batch", "64", "--dtype", "float16"]),
    "words": (8, ["gpt3", "--layers", "8", "--hidden", "512", "--heads", "8", "--sequence", "256",
                  "--vocabulary", "65536", "--batch", "64", "--dtype", "float16"]),
    "llama": (10, ["llama", "--layers", "10", "--hidden", "1024", "--heads", "16", "--kv-heads", "8",
                   "--inner", "2816", "--sequence", "1024", "--vocabulary", "32000", "--batch", "64",
                   "--attention", "flash", "--dtype", "bfloat16"]),
    "mixtral": (8, ["mixtral", "--layers", "8", "--hidden", "512", "--heads", "8", "--kv-heads", "4",
                    "--inner", "1024", "--experts", "4", "--active", "2", "--sequence", "256",
                    "--vocabulary", "8192", "--batch", "64", "--attention", "flash",
                    "--dtype", "bfloat16", "--kernels", "fused", "--capacity", "0"]),
}
# Kinds that may stand beside one another, the least first.
CELLS = ["activation", "layernorm+activation", "full"]
KINDS = {"megatron": ["full"], "mindformers": CELLS, "mindspore": CELLS,
         "generic": ["activation", "selective+activation", "selective+layernorm+activation", "full"]}
VEE = ["--pipeline-scheduler", "zero_bubble_v"]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def settings(rng, layers, devices, batch, executor):
    """A hybrid without layers, how many parts it has, and the other settings."""
    pp = rng.choice([2, 4] if batch > devices else [2])
    tp = rng.choice([1, 2])
    dp = devices // pp // tp
    v = rng.choice([1, 1, 2, 3]) if layers >= 3 * pp else rng.choice([1, 2])
    if rng.random() < 0.15 and (layers + 2) % pp == 0:
        v = (layers + 2) // pp  # one layer in each part but the first and the last
    mbs = rng.choice([1, 2] if batch >= 2 * dp * pp else [1])
    if v > 1 and batch // (dp * mbs) % pp:
        v = 1
    words = f"dp={dp},tp={tp},pp={pp},vpp={v},sp={int(tp > 1)},mbs={mbs}"
    level = rng.choice([[], ["--enable-parallel-optimizer"],
                        ["--enable-parallel-optimizer", "--optimizer-level", "level2"]])
    if executor == "torchtitan":
        level = ["--enable-parallel-optimizer", "--optimizer-level", rng.choice(["level2", "level3"])]
    return pp, v, words, level + (VEE if v == 2 and executor in ("generic", "torchtitan") and rng.random() < 0.7 else [])


def lists(rng, layers, pp, v, executor, vee):
    """Random layers of each part, by segment, then stage, and kinds of them."""
    ends = range(0, layers + 1) if rng.random() < 0.3 or pp * v > layers else range(1, layers)
    cuts = sorted(rng.sample(ends, pp * v - 1))
    parts = [b - a for a, b in zip([0] + cuts, cuts + [layers])]
    if rng.random() < 0.3 and layers % (pp * v) == 0:
        parts = [layers // (pp * v)] * (pp * v)
    if vee:  # data goes back through the stages
        parts = parts[:pp] + parts[pp:][::-1]
    if executor == "torchtitan":
        return parts, rng.choice(["none", "products/2", "full"])
    if executor == "megatron":
        kind = rng.choice(["none", f"full:{rng.randint(1, max(parts))}", "full"])
        return parts, kind
    rows, held = [], [0] * len(parts)
    for kind in reversed(KINDS[executor]):
        held = [rng.randint(low, n) for low, n in zip(held, parts)]
        rows.append(f"{kind}:" + "/".join(",".join(map(str, held[k * pp:(k + 1) * pp]))
                                          for k in range(v)))
    return parts, rng.choice(["none", ",".join(rows)])


def look_at(rng, folder, name, executor, chip):
    layers = NETWORKS[name][0]
    # Few micro-batches, and stages in several servers, so that sends and exchanges matter.
    devices, batch = rng.choice([(8, 64), (8, 16), (16, 64), (16, 16)])
    pp, v, hybrid, level = settings(rng, layers, devices, batch, executor)
    graph = os.path.join(folder, name + ".json")
    software = rng.choice([[], [], ["--software", "megatron-2021"], ["--software", "llm-foundry-fsdp"]])
    machine = ["--device-num", str(devices), "--chip", chip, "--executor", executor, "--batch", str(batch),
               *software]
    memory = []
    code, out, err = run("plan", graph, *machine, *level, "--hybrid", hybrid, "--json")
    if code == 0 and rng.random() < 0.6:  # so that memory binds
        most = max(m["total_bytes"] for m in json.loads(out)["prediction"]["memory"])
        memory = ["--memory", str(int(most * rng.uniform(0.75, 1)))]
        code, out, err = run("plan", graph, *machine, *memory, *level, "--hybrid", hybrid, "--json")
    what = f"{name} {' '.join(machine + memory + level)} --hybrid {hybrid}"
    if code == 7 and memory and "no plan was found that fits" in err:
        return 0  # neither found nor excluded
    if code not in (0, 5):
        fault(f"{what}: exit code {code}: {err}")
        return 0
    joint = json.loads(out)["joint"] if code == 0 else None
    bound = joint.get("least_hybrid_s", joint["step_bound_s"]) if joint else 0
    if joint and (bound > joint["step_time_s"] * (1 + 1e-12) or not joint["complete"]):
        fault(f"{what}: bound {joint}")
    met = 0
    for _ in range(TRIES):
        parts, kinds = lists(rng, layers, pp, v, executor, VEE[1] in level)
        code, out, err = run("evaluate", graph, *machine, *level, "--hybrid",
                             f"{hybrid},layers={','.join(map(str, parts))}", "--recompute", kinds, "--json")
        if code != 0:
            fault(f"{what}: layers={parts} --recompute {kinds}: {code} {err}")
            continue
        other = json.loads(out)["prediction"]
        usable = joint["usable_bytes"] if joint else int(memory[1]) * 0.95 if memory else 0
        fits = max(m["total_bytes"] for m in other["memory"]) <= usable
        met += fits
        if fits and not joint:
            fault(f"{what}: nothing fits, but layers={parts} --recompute {kinds} does")
        elif fits and other["step_time_s"] < bound * (1 - 1e-12):
            fault(f"{what}: layers={parts} --recompute {kinds} takes {other['step_time_s']}, "
                  f"the bound is {bound}")
        elif fits and other["step_time_s"] < joint["step_time_s"] * (1 - 0.02):
            fault(f"{what}: layers={parts} --recompute {kinds} takes {other['step_time_s']}, "
                  f"{joint['decided']} {joint['step_time_s']}")
    return met


def all_lists(layers, pp):
    """Every way to deal the layers to the parts of a V, and none or full to the first ones of each."""
    for n in itertools.product(range(layers + 1), repeat=2 * pp):
        if sum(n) != layers or 0 in n[1:-1]:
            continue
        parts = n[:pp] + n[pp:][::-1]
        for full in itertools.product(*(range(k + 1) for k in parts)):
            yield ",".join(map(str, parts)), "full:" + ",".join(map(str, full[:pp])) + "/" + ",".join(map(str, full[pp:]))


def look_at_all(rng, folder):
    """A small network in a V: no list at all is below the bound, or, where it fits, faster than the plan."""
    layers, pp, m = rng.choice([(4, 2, 3), (5, 2, 2), (5, 2, 6), (5, 3, 4)])
    graph = os.path.join(folder, "small.json")
    code, _, err = run("model", "llama", "--layers", str(layers), "--hidden", "256", "--heads", "4", "--kv-heads", "4",
                       "--inner", str(rng.choice([256, 1024])), "--sequence", "128", "--vocabulary",
                       str(rng.choice([256, 16384])), "--batch", str(2 * m), "--attention", "flash", "--dtype", "bfloat16",
                       "-o", graph)
    if code != 0:
        sys.exit(f"model: {err}")
    machine = [graph, "--device-num", str(2 * pp), "--chip", "a100-80", "--executor", "generic", "--json", *VEE,
               *rng.choice([[], ["--enable-parallel-optimizer", "--optimizer-level", "level2"]])]
    hybrid = f"dp=2,tp=1,pp={pp},vpp=2,mbs=1"
    todo = list(all_lists(layers, pp))
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda t: run("evaluate", *machine, "--hybrid", f"{hybrid},layers={t[0]}", "--recompute",
                                          t[1]), todo))
    priced = []
    for words, (code, out, err) in zip(todo, got):
        if code != 0:
            fault(f"{machine}: {words}: {err}")
            continue
        told = json.loads(out)["prediction"]
        priced.append((told["step_time_s"], max(s["total_bytes"] for s in told["memory"]), words))
    sizes = sorted(p[1] for p in priced)
    for usable in (sizes[-1], sizes[len(sizes) // 3], sizes[0]):
        code, out, err = run("plan", *machine, "--hybrid", hybrid, "--recompute", "none,full", "--memory", str(usable),
                             "--headroom", "0")
        if code != 0:
            fault(f"{machine} --memory {usable}: {code} {err}")
            continue
        joint = json.loads(out)["joint"]
        bound = joint.get("least_hybrid_s", joint["step_bound_s"])
        least = min(p for p in priced if p[1] <= usable)
        if bound > least[0] * (1 + 1e-12):
            fault(f"{machine} --memory {usable}: {least} is below the bound {bound}")
        if joint["step_time_s"] > least[0] * (1 + NEAR):
            fault(f"{machine} --memory {usable}: {joint['decided']} takes {joint['step_time_s']}, {least}")
    return len(priced)


with tempfile.TemporaryDirectory() as folder:
    print("seed", seed)
    for name, (_, words) in NETWORKS.items():
        code, _, err = run("model", *words, "-o", os.path.join(folder, name + ".json"))
        if code != 0:
            fault(f"model {name}: {err}")
    fit = 0
    for case in range(cases):
        rng = random.Random(seed + case)
        name = rng.choice(sorted(NETWORKS))
        executor, chip = rng.choice([("megatron", "a100-80"), ("mindformers", "ascend910b"),
                                     ("generic", "h100"), ("generic", "h100"), ("torchtitan", "h100"),
                                     ("mindspore", "ascend910b")])
        fit += look_at(rng, folder, name, executor, chip)
    every = sum(look_at_all(random.Random(seed + case), folder) for case in range(max(1, cases // 12)))
    print(f"{cases} settings, {fit} random lists that fit; {every} lists, all there are of some networks")
    if fit < cases:
        fault("too few lists fit")
sys.exit(1 if faults else 0)
