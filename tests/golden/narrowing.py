#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""narrowing.py PROGRAM SOURCE_ROOT: bounds of `plan` where layers pass on less and less.

Residual networks in pipelines of given stages, micro-batches and schedules, on devices by chance, in which it matters
behind which layers borders are. No plan of other layers by chance takes less than the bound of hybrids; of a single
micro-batch, whose passes follow one another wherever borders are, in stages of whole servers none is faster by
a per cent than what was decided, and that is near the bound. AP_CASES: pipelines (24); AP_SEED.
"""
import json
import os
import random
import subprocess
import sys

program = os.path.abspath(sys.argv[1])
models = os.path.join(sys.argv[2], "models")
cases = int(os.environ.get("AP_CASES", "24"))
seed = int(os.environ.get("AP_SEED", "20261129"))
LAYERS = 16
SERVER = 8  # devices
TRIED = 8  # plans of each pipeline
NEAR = 0.02
SAME = 1e-9
SCHEDULES = (("1f1b", 1), ("1f1b", 1), ("gpipe", 1), ("interleaved", 2), ("zero_bubble_v", 2))
faults = []


def run(*words):
    got = subprocess.run([program, *words, "--json", "--jobs", "1"], capture_output=True, text=True, check=False)
    if got.returncode == 2 and "no combination" in got.stderr:
        return None
    if got.returncode:
        sys.exit(f"{' '.join(words)}: {got.returncode}: {got.stderr}")
    return json.loads(got.stdout)


def layers_of(rng, stages, segments):
    """Numbers of layers as they are said, stage by stage; all parts but the ends have one."""
    parts = stages * segments
    while True:
        cuts = sorted(rng.randint(0, LAYERS) for _ in range(parts - 1))
        counts = [to - since for since, to in zip([0, *cuts], [*cuts, LAYERS])]
        if all(counts[1:-1]):
            return counts


def look_at(rng, number):
    scheduler, segments = rng.choice(SCHEDULES)
    stages = rng.choice([2, 4, 8] if segments == 1 else [2, 4])
    micro_batches = rng.choice([1, 1, 2, 4]) if scheduler != "interleaved" else rng.choice([stages, 2 * stages])
    devices = rng.choice([16, 64, 256])
    dp = devices // stages
    words = [os.path.join(models, rng.choice(["resnet50", "resnet50_imagenet"]) + ".json"), "--device-num", str(devices),
             "--chip", rng.choice(["a100-80", "h100-80"]), "--executor", "generic", "--recompute", "none",
             "--pipeline-stages", str(stages), "--pipeline-scheduler", scheduler, "--micro-batches", str(micro_batches)]
    if segments > 1:
        words += ["--pipeline-segments", str(segments)]
    words += rng.choice([["--no-enable-parallel-optimizer"], ["--enable-parallel-optimizer", "--optimizer-level", "level1"]])
    what = f"case {number}: {' '.join(words)}"
    told = run("plan", *words, "--hybrid", "tp=1")
    if not told:
        return False
    joint = told["joint"]
    bound, step = joint.get("least_hybrid_s", joint["step_bound_s"]), joint["step_time_s"]
    alone = micro_batches == 1 and segments == 1 and dp % SERVER == 0
    if not bound <= step * (1 + SAME) or (alone and step > bound * (1 + NEAR)):
        fault(f"{what}: {joint['decided']} takes {step}, bound {bound}")
    for _ in range(TRIED):
        counts = layers_of(rng, stages, segments)
        if scheduler == "zero_bubble_v":
            counts[stages:] = counts[:stages - 1:-1]
        hybrid = f"dp={dp},tp=1,pp={stages},vpp={segments},layers={','.join(map(str, counts))}"
        took = run("evaluate", *words, "--hybrid", hybrid)["prediction"]["step_time_s"]
        if took < bound * (1 - SAME):
            fault(f"{what}: {hybrid} takes {took}, below the bound {bound}")
        if alone and took < step * (1 - NEAR / 2):
            fault(f"{what}: {joint['decided']} takes {step}, {hybrid} {took}")
    return alone


def fault(text):
    faults.append(text)
    print("FAULT:", text, flush=True)


print("seed", seed)
alone = sum(look_at(random.Random(f"{seed} {n}"), n) for n in range(cases))
print(f"{cases} pipelines, {alone} of one micro-batch")
if cases >= 12 and not alone:
    fault("no pipeline of one micro-batch")
if faults:
    sys.exit(f"{len(faults)} faults; AP_SEED={seed}")
