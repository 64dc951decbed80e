#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joint.py PROGRAM: what `plan` decides.

Small networks are planned for several executors; the decision must be that without pruning, no
random combination of the settings that `evaluate` plans may be faster and fit, and the bytes are
the same for any number of jobs. AP_CASES: combinations per network; AP_SEED: theirs.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
cases = int(os.environ.get("AP_CASES", "100")) // 4
seed = int(os.environ.get("AP_SEED", "20261123"))
faults = []
beyond = 0  # plans that their executor cannot be told


def fault(text):
    faults.append(text)
    print("FAULT:", text)


def run(*words):
    got = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return got.returncode, got.stdout, got.stderr


NETWORKS = {
    "gpt": ["gpt3", "--layers", "4", "--hidden", "512", "--heads", "8", "--sequence", "256",
            "--vocabulary", "2048", "--batch", "16", "--dtype", "float16"],
    "llama": ["llama", "--layers", "8", "--hidden", "1024", "--heads", "16", "--kv-heads", "8",
              "--inner", "2816", "--sequence", "512", "--vocabulary", "4096", "--batch", "24",
              "--attention", "flash", "--dtype", "bfloat16"],
    "mixtral": ["mixtral", "--layers", "4", "--hidden", "512", "--heads", "8", "--kv-heads", "4",
                "--inner", "1024", "--experts", "4", "--active", "2", "--sequence", "256",
                "--vocabulary", "2048", "--batch", "16", "--attention", "flash",
                "--dtype", "bfloat16", "--kernels", "fused", "--capacity", "0"],
    "resnet": ["resnet", "--layers", "18", "--batch", "16"],
}
RUNS = [
    ("gpt", "megatron", "a100-80", 8, None),
    ("gpt", "mindspore", "ascend910b", 8, "1536MB"),
    ("llama", "megatron", "h100", 16, "4GB"),
    ("llama", "torchtitan", "h100", 8, None),
    ("llama", "mindformers", "ascend910b", 16, "3GB"),
    ("mixtral", "megatron", "a100-80", 8, None),
    ("gpt", "generic", "h100", 8, None),
    ("llama", "deepspeed", "a100-80", 8, "3GB"),
    ("llama", "torchtitan", "a100-80", 8, "3500MB"),
    ("resnet", "generic", "a100-80", 4, None),  # BatchNorm: one micro-batch
]
DEAR = {("llama", "mindformers"), ("gpt", "generic"), ("llama", "torchtitan")}  # without pruning


# torch has two classes of checkpoints; no attribute of MindSpore's cells holds one of two products alone
KINDS = {"torchtitan": ["none", "products/2", "full"], "deepspeed": ["none", "full"],
         "megatron": ["none", "selective", "full"], "mindspeed": ["none", "selective", "full"],
         "generic": ["none", "activation", "selective+activation", "full"]}
CELLS = ["none", "activation", "full"]  # of MindSpore
FREE = ("mindspore", "generic")  # take every operator's cut


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def combination(rng, layers, batch, devices, executor):
    """Words of evaluate for a combination in the executor's language."""
    pp = rng.choice([d for d in divisors(devices) if max(layers, 1) % d == 0])
    tp = rng.choice(divisors(devices // pp))
    dp = devices // pp // tp
    v = rng.choice(divisors(layers // pp)) if pp > 1 and executor != "deepspeed" else 1
    mbs = rng.choice(divisors(batch // dp)) if batch % dp == 0 else 1
    if batch % (dp * mbs):
        return None
    micro = batch // dp // mbs
    if executor in ("mindspore", "mindformers", "torchtitan") and pp > 1 and micro < pp:
        return None  # such a pipeline does not start
    if executor in ("mindspeed", "megatron", "torchtitan") and v > 1 and micro % pp:
        return None
    sp = tp > 1 and executor != "deepspeed" and rng.random() < 0.5
    level = rng.choice(([] if executor == "torchtitan" else [None, "level1"]) +
                       ([] if executor == "mindspeed" or (executor == "deepspeed" and pp > 1) else ["level2", "level3"]))
    words = ["--hybrid", f"dp={dp},tp={tp},pp={pp},vpp={v},sp={int(sp)},mbs={mbs}",
             "--recompute", rng.choice(KINDS.get(executor, CELLS))]
    if level:
        words += ["--enable-parallel-optimizer", "--optimizer-level", level]
    return words


def hybrids_bound(joint):
    return joint.get("least_hybrid_s", joint["step_bound_s"])


def look_at_cuts(what, graph, machine, layers, rng):
    """A search under given stages and micro-batches is never below the bound that plan states of them."""
    pp, micro = rng.choice([1, 2, 4]), rng.choice([1, 2, 4, 8])
    v = rng.choice(divisors(layers // pp)) if pp > 1 and micro % pp == 0 else 1
    words = [graph, *machine, "--json", "--pipeline-stages", str(pp), "--pipeline-segments", str(v),
             "--micro-batches", str(micro)]
    code, out, _ = run("plan", *words)
    if code != 0:
        return None
    bound = json.loads(out)["joint"]["step_bound_s"]
    level = rng.choice([[], ["--enable-parallel-optimizer", "--optimizer-level", rng.choice(["level1", "level2"])]])
    code, out, err = run("search", *words, *level, "--work-limit", "100000000")
    if code != 0:
        return None
    step = json.loads(out)["prediction"]["step_time_s"]
    if bound <= 0 or step < bound * (1 - 1e-12):
        fault(f"{what}: {pp} stages of {v} segments, {micro} micro-batches, {level}: searched {step}, bound {bound}")
    return bound / step


def words_of(decided):
    """Options of `evaluate` for what was decided."""
    hybrid, words = [], []
    for word in decided.split():
        key, _, value = word.partition("=")
        if key in ("dp", "tp", "cp", "ep", "etp", "pp", "sp", "mbs", "layers"):
            hybrid.append(word)
        elif key == "v":
            hybrid.append("vpp=" + value)
            words += ["--pipeline-segments", value]
        elif key in ("recompute", "micro-batches"):
            words += ["--" + key, value]
        elif key.startswith("level"):
            words += ["--enable-parallel-optimizer", "--optimizer-level", key]
        else:
            words += ["--pipeline-scheduler", key]
    return ["--hybrid", ",".join(hybrid), *words]


def look_beyond(what, joint, step, graph, machine):
    """What the executor cannot be told is faster, fits, and is what `evaluate` says; no bound is above it."""
    free = joint.get("free")
    if not free:
        return 0
    least = min(step, free.get("step_time_s", step))
    if free["step_bound_s"] > least * (1 + 1e-12):
        fault(f"{what}: step {step}, {free}")
    if "decided" not in free:
        return 0
    code, out, err = run("evaluate", graph, *machine, "--json", *words_of(free["decided"]))
    got = json.loads(out)["prediction"] if code == 0 else {"step_time_s": 0, "memory": []}
    if free["step_time_s"] >= step or abs(got["step_time_s"] - free["step_time_s"]) > 1e-12 * step or \
            max(m["total_bytes"] for m in got["memory"]) > joint["usable_bytes"]:
        fault(f"{what}: step {step}, {free}, evaluated {got['step_time_s']} {err}")
    return 1


def decided_step(joint):
    return joint["fastest"][0]["step_time_s"]


def look_at(folder, name, executor, chip, devices, memory, software):
    graph = os.path.join(folder, name + ".json")
    machine = ["--device-num", str(devices), "--chip", chip, "--executor", executor, *software]
    if memory:
        machine += ["--memory", memory]
    what = f"{name} for {executor} on {devices} {chip} {' '.join(software)}"
    files = [os.path.join(folder, f"{jobs}.plan.json") for jobs in (1, 4)]
    outs = []
    for jobs, file in zip((1, 4), files):
        code, out, err = run("plan", graph, *machine, "--json", "--jobs", str(jobs),
                             "--plan-out", file)
        if code == 5 and memory and software and "fits the memory" in err:
            return  # the memory is what the executor's own profile leaves little of
        if code != 0:
            fault(f"{what}: exit code {code}: {err}")
            return
        outs.append(json.loads(out))
    with open(files[0], "rb") as one, open(files[1], "rb") as four:
        if one.read() != four.read():
            fault(f"{what}: other bytes with other --jobs")
    joint, step = outs[0]["joint"], outs[0]["prediction"]["step_time_s"]
    decided = joint.get("searched_s", joint["step_time_s"])
    if decided > joint["step_time_s"] or ("searched_s" in joint and executor not in FREE):
        fault(f"{what}: searched cuts: {joint}")
    if abs(decided - step) > 1e-12 * step:
        fault(f"{what}: decided at {joint['step_time_s']}, planned {step}")
    if joint["too_large"] + joint["slower"] + joint["refused"] + joint["fit"] + joint["open"] != \
            joint["combinations"] or not joint["complete"]:
        fault(f"{what}: combinations do not add up: {joint}")
    if name == "resnet" and "micro-batches=1 " not in joint["decided"]:
        fault(f"{what}: micro-batches change what BatchNorm computes: {joint['decided']}")
    if outs[0]["prediction"]["memory"][0]["total_bytes"] > joint["usable_bytes"]:
        fault(f"{what}: does not leave the headroom")
    if ("free" in joint) != (executor != "generic"):
        fault(f"{what}: {joint.get('free')}")
    global beyond
    beyond += look_beyond(what, joint, step, graph, machine)
    code, out, err = run("plan", graph, *machine, "--json", "--no-prune", "--top", "1000")
    whole = json.loads(out)["joint"] if code == 0 else {}
    # Layers are dealt under other limits then: a plan may be another one, but no bound is wrong.
    if whole["step_time_s"] < joint["step_time_s"] * (1 - 1e-3) or \
            joint["step_time_s"] < whole["step_time_s"] * (1 - 1e-3):
        fault(f"{what}: {joint['decided']} {joint['step_time_s']}, without pruning "
              f"{whole.get('decided')} {whole.get('step_time_s')}")
    if max(hybrids_bound(joint), hybrids_bound(whole)) > \
            min(joint["step_time_s"], whole["step_time_s"]) * (1 + 1e-12):
        fault(f"{what}: bounds {hybrids_bound(joint)}, {hybrids_bound(whole)} of "
              f"{joint['step_time_s']}, {whole['step_time_s']}")
    if not 0.2 * step < joint["step_bound_s"] <= step or joint["step_bound_s"] > hybrids_bound(joint) or \
            ("least_hybrid_s" in joint) != (executor in FREE):
        fault(f"{what}: step {step}, bounds {joint['step_bound_s']}, {hybrids_bound(joint)}")
    if joint["priced"] >= whole["priced"]:
        fault(f"{what}: priced {joint['priced']} and, without pruning, {whole['priced']}")
    if "error" in whole and whole["fit"] <= 1000:
        near = [p for p in whole["fastest"]
                if p["step_time_s"] <= decided_step(whole) * (1 + whole["error"]["step_percent"] / 100)]
        every = [set(p["decided"].split()) for p in near]
        common = [w for w in whole["error"]["common"].split() if w.split("=")[0] in ("tp", "pp", "mbs")]
        # A combination that gathers weights again, and whose plan has nothing to gather, is that of another one.
        maybe = whole["error"]["maybe"] and "gathers=once" not in whole["error"]["common"].split()
        if whole["error"]["plans"] != len(near) or maybe or \
                not all(w in words for w in common for words in every):
            fault(f"{what}: {len(near)} plans are near, not {whole['error']}")
    for one in whole.get("instead", []) if whole["decided"] == joint["decided"] else []:
        for other in joint["instead"]:
            if one["name"] == other["name"] and \
                    one["step_time_s"] < other["step_bound_s"] * (1 - 1e-9):
                fault(f"{what}: {one} is below the bound {other}")
    code, out, err = run("check", files[0])
    if code != 0:
        fault(f"{what}: check: {out}{err}")
    code, out, err = run("check", files[0], "--against", graph)
    if code != 0:
        fault(f"{what}: check --against: {out}{err}")
    rng = random.Random(seed)
    layers = {"gpt": 4, "llama": 8, "mixtral": 4, "resnet": 0}[name]
    batch = {"gpt": 16, "llama": 24, "mixtral": 16, "resnet": 16}[name]
    met = 0
    if executor in FREE and layers:
        near = [look_at_cuts(what, graph, machine, layers, rng) for _ in range(max(3, cases // 3))]
        if not any(n and n > 0.4 for n in near):
            fault(f"{what}: bounds of cuts tell nothing: {near}")
    for _ in range(cases):
        words = combination(rng, layers, batch, devices, executor)
        if not words or not layers:
            continue
        if name == "mixtral" and "sp=0" in words[1] and ",tp=1," not in words[1]:
            continue  # Megatron's experts want sp beside tp
        code, out, err = run("evaluate", graph, *machine, "--json", *words)
        if code == 2:
            continue
        other = json.loads(out)["prediction"]
        met += 1
        if max(m["total_bytes"] for m in other["memory"]) <= joint["usable_bytes"] and \
                other["step_time_s"] < step * (1 - 1e-12):
            fault(f"{what}: {words} takes {other['step_time_s']}, {joint['decided']} {step}")
    if layers and cases >= 10 and met == 0:
        fault(f"{what}: no combination was a plan")


with tempfile.TemporaryDirectory() as folder:
    print("seed", seed)
    for name, words in NETWORKS.items():
        code, _, err = run("model", *words, "-o", os.path.join(folder, name + ".json"))
        if code != 0:
            fault(f"model {name}: {err}")
    # Each software profile in turn, behind all runs with that of their executor; a few cases are for quick ones.
    others = RUNS
    if cases < 25:
        RUNS = [one for one in RUNS if one[:2] not in DEAR]
        others = [("gpt", "megatron", "a100-80", 4, None)]
    profiles = [p["name"] for p in json.loads(run("list", "software", "--json")[1])]
    for one in RUNS:
        look_at(folder, *one, [])
    for i, profile in enumerate(profiles):
        look_at(folder, *others[i % len(others)], ["--software", profile])
    if not beyond:
        fault("nothing is faster that an executor cannot be told")
    print(beyond, "plans that executors cannot be told are faster")
    code, _, err = run("plan", os.path.join(folder, "gpt.json"), "--device-num", "8", "--chip",
                       "a100-80", "--executor", "megatron", "--memory", "1200MB", "--batch", "2048",
                       "--hybrid", "mbs=256")
    if code != 5 or "none of" not in err:
        fault(f"what fits nowhere: {code} {err}")
    code, out, _ = run("plan", os.path.join(folder, "gpt.json"), "--device-num", "8", "--chip",
                       "a100-80", "--executor", "megatron", "--hybrid", "tp=1,2", "--pipeline-stages",
                       "2..4", "--recompute", "selective|full", "--headroom", "0", "--json")
    joint = json.loads(out)["joint"] if code == 0 else {"decided": "nothing"}
    words = dict(w.split("=") for w in joint["decided"].split() if "=" in w)
    if words.get("tp") not in ("1", "2") or words.get("pp") not in ("2", "4") or \
            words.get("recompute") not in ("selective", "full") or joint["headroom_percent"] != 0:
        fault(f"values asked for: {joint}")
    stopped = os.path.join(folder, "stopped.json")
    with subprocess.Popen(
            [program, "plan", os.path.join(os.path.dirname(__file__), "../../models/gpt3_175b.json"),
             "--device-num", "1024", "--chip", "a100-80", "--executor", "megatron", "--no-prune",
             "--plan-out", stopped],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as late:
        try:
            late.wait(1)
        except subprocess.TimeoutExpired:
            late.send_signal(signal.SIGTERM)
            code = late.wait()
            with open(stopped, encoding="utf-8") as file:
                complete = json.load(file)["joint"]["complete"]
            if code != 8 or complete or run("check", stopped)[0] != 0:
                fault(f"told to stop: exit code {code}, complete {complete}")
if faults:
    sys.exit(f"{len(faults)} faults; AP_SEED={seed}")
