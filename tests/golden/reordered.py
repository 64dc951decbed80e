#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reordered.py PROGRAM MODELS [NAME]...: bundled models with other names and other orders of all lists but that of
outputs: predictions of `search`, `evaluate --hybrid` and `plan` are the same to the byte. AP_SEED; NAME: these alone.
"""
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

program, models, *names = sys.argv[1:]
seed = int(os.environ.get("AP_SEED", "20261128"))
RUNS = [["search", "--device-num", "8"], ["search", "--device-num", "8", "--pipeline-stages", "2", "--micro-batches", "4"],
        ["evaluate", "--device-num", "8", "--hybrid", "dp=4,tp=2", "--memory", "100000GB"],
        ["plan", "--device-num", "8", "--executor", "megatron"], ["plan", "--device-num", "64"]]
faults, planned = [], 0


def reorder(rng, graph):
    words = {}

    def other(name, keep=""):
        def word(m):
            if m.group() == keep:
                return keep
            return words.setdefault(m.group(), f"{''.join(rng.choice('abcdefghijklm') for _ in range(5))}{len(words)}x")
        return re.sub(r"[A-Za-z_]\w*", word, name)

    for o in graph["operators"]:
        scope, slash, own = o["name"].rpartition("/")
        o["name"] = other(scope, "Default") + slash + own
        for key in ("inputs", "after"):
            if key in o:
                o[key] = [t and other(t) for t in o[key]]
        if "cell" in o:
            o["cell"] = other(o["cell"])
        for t in o["outputs"]:
            t["name"] = other(t["name"])
    for key in ("inputs", "parameters", "constants", "cells"):
        for t in graph.get(key, []):
            t["name"] = other(t["name"])
    graph["outputs"] = [other(t) for t in graph["outputs"]]
    for key in ("inputs", "parameters", "constants", "operators", "cells"):
        rng.shuffle(graph.get(key, []))


def predicted(file, words, folder):
    out = os.path.join(folder, "plan.json")
    if os.path.exists(out):
        os.remove(out)
    command, *options = words
    got = subprocess.run([program, command, file, "--chip", "a100-80", "--plan-out", out, *options],
                         capture_output=True, text=True, check=False)
    if got.returncode:
        return got.returncode
    with open(out, encoding="utf-8") as f:
        return json.dumps(json.load(f)["prediction"])


with tempfile.TemporaryDirectory() as tmp:
    print("seed", seed)
    for name in names or sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(models, "*.json"))):
        file, changed = os.path.join(models, name + ".json"), os.path.join(tmp, "changed.json")
        with open(file, encoding="utf-8") as f:
            graph = json.load(f)
        reorder(random.Random(f"{seed} {name}"), graph)
        with open(changed, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        for words in RUNS:
            one, two = predicted(file, words, tmp), predicted(changed, words, tmp)
            planned += isinstance(one, str)
            if one != two:
                faults.append(name)
                print(f"FAULT: {name} {' '.join(words)}: {one}, reordered {two}", flush=True)
print(planned, "plans,", len(faults), "faults")
sys.exit(bool(faults) or not planned)
