#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: planner_memory.py PROGRAM HELD SOURCE_ROOT

Climbs a ladder of --planner-memory for some networks: the process stays within a quarter of what was asked, a
plan that a smaller limit gave is not lost by a larger one, what is written is whole, and is held against the
inputs by `check`. With status 8 the plan says that it is not complete."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM, HELD, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
MIB = 1 << 20
LEAST = 16 * MIB  # below it the program itself is more than a quarter
OWN = 6 * MIB  # of the program, its libraries and threads

A64 = ["--device-num", "64", "--devices-per-server", "8"]
NETWORKS = {
    "dense": (["gpt3_13b", *A64, "--chip", "ascend910b", "--micro-batches", "8",
               "--enable-parallel-optimizer", "--no-fold"],
              [4, 12, 16, 20, 24, 32, 38, 40, 64, 96, 160, 240]),
    "short of memory": (["gpt3_13b_flash", *A64, "--chip", "a100-80", "--batch", "96"],
                        [8, 16, 18, 24, 32, 48, 64]),
    "pipeline": (["gpt3_13b", *A64, "--chip", "ascend910b", "--pipeline-stages", "4", "--micro-batches", "16",
                  "--batch", "64"],
                 [12, 16, 20, 28, 40, 56, 80]),
    "route": (["gpt3_1.3b", *A64, "--chip", "ascend910b", "--executor", "mindspore-sharding-propagation"],
              [8, 10, 12, 16, 20, 28, 40, 64]),
    "small": (["multiple_mix", "--device-num", "8", "--chip", "ascend910a"], [1, 2, 3, 4, 6, 8, 16]),
    "recursion": (["gpt3_1.3b", *A64, "--chip", "ascend910b", "--search-mode", "recursive_programming"],
                  [8, 10, 12, 16, 24, 40]),
}
faults = 0


def fault(text):
    global faults
    faults += 1
    print("FAILED: " + text)


def run(args):
    """Exit status and the most bytes that the process held."""
    told = subprocess.run([HELD, PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    status, held = told.stdout.split()[-2:]
    return int(status), int(held)


def climb(name, args, ladder, folder):
    args = [os.path.join(SOURCE, "models", args[0] + ".json"), *args[1:]]
    best = None  # the least limit that gave a plan
    codes = []
    for mib in ladder:
        plan, ckpt = (os.path.join(folder, f"{name}-{mib}.{s}") for s in ("json", "ckpt"))
        stages = os.path.join(folder, f"{name}-{mib}.stages.json")
        code, held = run(["search", *args, "-q", "--planner-memory", f"{mib}MB", "-o", ckpt,
                          "--plan-out", plan, "--stage-config-out", stages])
        codes.append(f"{mib} MiB: {code}")
        most = mib * MIB * 5 // 4 + (0 if mib * MIB >= LEAST else OWN)
        if held > most:
            fault(f"{name}: with {mib} MiB {held / MIB:.1f} MiB were held")
        if code not in (0, 7, 8):
            fault(f"{name}: with {mib} MiB: status {code}")
        if code == 7:
            if best:
                fault(f"{name}: {best} MiB gave a plan, {mib} MiB none")
            if os.path.exists(plan) or os.path.exists(ckpt):
                fault(f"{name}: with {mib} MiB: a file without a plan")
            continue
        best = best or mib
        with open(plan, encoding="utf-8") as f:
            found = json.load(f)
        complete = found["search"]["complete"]
        recut = (found.get("pipeline") or {}).get("cut") in ("layers", "memory")  # not as evaluate cuts by itself
        if complete != (code == 0):
            fault(f"{name}: with {mib} MiB: status {code}, complete {complete}")
        if run(["check", ckpt])[0]:
            fault(f"{name}: with {mib} MiB: the checkpoint is not sound")
        code, _ = run(["evaluate", *args[:1], *[a for a in args[1:] if a != "--no-fold"], "--strategy", ckpt, "-q",
                       *(["--stage-config", stages] if recut else [])]
                      if "--search-mode" not in args else ["check", plan])
        if code:
            fault(f"{name}: with {mib} MiB: the plan's checkpoint evaluates to {code}")
    print(f"{name}: {', '.join(codes)}")
    if not best:
        fault(f"{name}: no plan with {ladder[-1]} MiB")


with tempfile.TemporaryDirectory() as scratch:
    for network, (arguments, steps) in NETWORKS.items():
        climb(network, arguments, steps, scratch)
print(f"{faults} faults")
sys.exit(faults > 0)
