#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""keep_plan.py PROGRAM SOURCE_ROOT: what `plan --keep` takes.

Small networks are planned, a number of the machine is moved by a per cent or by much, and they are planned again with the
old plan to be kept. What must be taken follows from two other runs: `plan` without the old plan, and `evaluate` of the old
plan on the new machine. AP_CASES: cases; AP_SEED: theirs.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

program, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
cases = int(os.environ.get("AP_CASES", "8"))
seed = int(os.environ.get("AP_SEED", "20261129"))
faults = 0
NETWORKS = [
    ["gpt3", "--layers", "4", "--hidden", "512", "--heads", "8", "--sequence", "256", "--vocabulary", "2048", "--batch",
     "16", "--dtype", "float16"],
    ["llama", "--layers", "6", "--hidden", "1024", "--heads", "16", "--kv-heads", "8", "--inner", "2816", "--sequence",
     "512", "--vocabulary", "4096", "--batch", "24", "--attention", "flash", "--dtype", "bfloat16"],
    ["mixtral", "--layers", "3", "--hidden", "512", "--heads", "8", "--kv-heads", "4", "--inner", "1024", "--experts",
     "4", "--active", "2", "--sequence", "256", "--vocabulary", "2048", "--batch", "16", "--attention", "flash",
     "--dtype", "bfloat16", "--kernels", "fused", "--capacity", "0"],
    ["resnet", "--layers", "18", "--batch", "16"],
]
EXECUTORS = ["megatron", "mindspore", "torchtitan", "generic", "deepspeed", "mindformers", "mindspeed"]
GIVEN = [[], [], [], ["--hybrid", "tp=2,4"], ["--optimizer-level", "none"], ["--pipeline-stages", "2"],
         ["--micro-batches", "2,4"], ["--recompute", "full"]]


def fault(text):
    global faults
    faults += 1
    print("FAULT:", text)


def run(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def move(chip, rng, factor):
    """Moves a number of the chip by a factor; returns its name."""
    level = rng.choice(chip["levels"])
    kind = rng.choice(["bandwidth", "memory", "peak"])
    if kind == "bandwidth":
        level["bandwidth_Bps"] *= factor
        return level["name"]
    if kind == "memory":
        chip["memory"]["bandwidth_Bps"] *= factor
        return "memory"
    for unit in chip["peak_flops"].values():
        for dtype in unit:
            unit[dtype] *= factor
    return "peak"


def hold(number, rng):
    network, executor = rng.choice(NETWORKS), rng.choice(EXECUTORS)
    devices = rng.choice([4, 8, 16])
    small = rng.random() < 0.5
    within = rng.choice([1, 1, 5]) if small else rng.choice([0, 0.5, 5, 30, 300])
    factor = rng.choice([0.99, 1.01]) if small else rng.choice([0.05, 0.3, 4])
    chip = json.loads((root / "chips" / "a100-80.json").read_text())
    moved = move(chip, rng, factor)
    given = rng.choice(GIVEN)
    what = "case %d: %s %s on %d, %s x %g, within %g, %s" % (number, network[0], executor, devices, moved, factor, within,
                                                             " ".join(given))
    pathlib.Path("chip.json").write_text(json.dumps(chip))
    run("model", *network, "-o", "net.json", "-q")
    common = ["--device-num", str(devices), "--executor", executor]
    if run("plan", "net.json", *common, "--chip", "a100-80", *given, "--plan-out", "old.json", "-q").returncode:
        return what + ": no plan"
    common += ["--chip", "chip.json"]
    free = json.loads(run("plan", "net.json", *common, "--json").stdout)
    got = run("plan", "net.json", *common, "--keep", "old.json", "--within", "%g%%" % within, "--jobs", "2", "--json",
              "--plan-out", "new.json")
    if got.returncode:
        fault("%s: %s" % (what, got.stderr))
        return what
    run("plan", "net.json", *common, "--keep", "old.json", "--within", "%g%%" % within, "--jobs", "1", "-q", "--plan-out",
        "one.json")
    if pathlib.Path("one.json").read_bytes() != pathlib.Path("new.json").read_bytes():
        fault(what + ": another plan with one thread")
    kept, best, most = json.loads(got.stdout), free["prediction"]["step_time_s"], 1 + within / 100 + 1e-9
    told, step = kept["kept"], kept["prediction"]["step_time_s"]
    old_file, new_file = (json.loads(pathlib.Path(f).read_text()) for f in ("old.json", "new.json"))
    cuts = [{op["name"]: op["in_strategy"] for op in f["operators"]} for f in (old_file, new_file)]
    changed = sum(cuts[0][n] != cuts[1][n] for n in cuts[0] if n in cuts[1])
    if told["changed"] < changed:
        fault("%s: %d operators are cut otherwise, and it says %d" % (what, changed, told["changed"]))
    whole = run("evaluate", "net.json", "--strategy", "old.json", "--chip", "chip.json", "--json")
    whole = json.loads(whole.stdout) if whole.returncode == 0 else None
    old = whole["prediction"]["step_time_s"] if whole else None
    fits = whole and max(m["total_bytes"] for m in whole["prediction"]["memory"]) <= kept["joint"]["usable_bytes"]
    for settings in (old_file["settings"], new_file["settings"]):
        if not settings["enable_parallel_optimizer"]:
            settings["optimizer_level"] = None  # none has two spellings
    if told["decision_kept"]:
        if step > min(best, step) * most:
            fault("%s: kept with %g s, and %g s is the best" % (what, step, best))
        if fits and old <= min(best, old) * most and (told["changed"] or step > old * (1 + 1e-9)):
            fault("%s: the old plan takes %g s as it is, and %d of it are changed, to %g s" % (what, old, told["changed"],
                                                                                          step))
        decided = [k for k in ("pipeline_stages", "pipeline_segments", "micro_batches", "recompute", "hybrid",
                               "enable_parallel_optimizer", "optimizer_level", "pipeline_scheduler")
                   if old_file["settings"].get(k) != new_file["settings"].get(k)]
        if decided:
            fault("%s: kept, and %s are others" % (what, decided))
    elif fits and old <= min(best, old) * most and "has to be given" not in told["why_not"]:
        fault("%s: left (%s), and the old plan takes %g s, the best %g s" % (what, told["why_not"], old, best))
    elif step > best * most:
        fault("%s: left, and the new plan takes %g s, the best %g s" % (what, step, best))
    return "%s: %s" % (what, "kept, %d changed" % told["changed"] if told["decision_kept"] else "left, " + told["why_not"])


def main():
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in range(cases):
            print(hold(number, random.Random(rng.random())), flush=True)
        os.chdir("/")
    print("%d cases from seed %d, %d faults" % (cases, seed, faults))
    sys.exit(faults > 0)


main()
