#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""decided.py PLANNER fits|gaps|both [MODEL...]: tables of what `plan` decides.

Each bundled model, or these, on 8 to 1,024 devices of three chips, for an executor that fits: MindFormers and
Megatron for decoders, mindspore and generic for others. fits: step, memory of the fullest device and hybrid, or
how much is short. gaps: how far the step is above its bound, and how many combinations were priced.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

MODELS = ["multiple_mix", "resnet50", "resnet50_imagenet", "wide_deep", "wide_deep_large", "bert_large", "vit_l",
          "gpt3_1.3b", "gpt3_13b", "gpt3_13b_flash", "gpt3_175b", "llama2_7b", "llama2_70b", "mixtral_8x7b"]
DECODERS = ("gpt3", "llama", "mixtral")
CHIPS = {"ascend910b": ("Ascend 910B3", "mindformers", "mindspore"), "a100-80": ("A100", "megatron", "generic"),
         "h100-80": ("H100", "megatron", "generic")}
DEVICES = (8, 64, 256, 1024)
UNSAID = ("dp", "micro-batches", "1f1b", "interleaved", "recompute=none", "v=1", "pp=1", "tp=1", "mbs=1")


def plan(planner, model, devices, chip):
    """The summary, or the error."""
    executor = CHIPS[chip][1 if model.startswith(DECODERS) else 2]
    graph = os.path.join(os.path.dirname(__file__), "..", "models", model + ".json")
    got = subprocess.run([planner, "plan", graph, "--device-num", str(devices), "--chip", chip, "--executor", executor,
                          "--json", "--jobs", "1"], capture_output=True, text=True, check=False)
    if got.returncode in (0, 8):
        return json.loads(got.stdout), None
    if got.returncode not in (2, 5):
        sys.exit(f"{model} on {devices} {chip} for {executor}: {got.returncode}: {got.stderr}")
    return None, got.stderr


def amount(x, units):
    """Three digits, with the largest of the units (its name, how much) that is not above x."""
    name, unit = next((u for u in units if x >= u[1]), units[-1])
    return f"{x / unit:#.3g}".rstrip(".") + " " + name


def seconds(s):
    return amount(s, [("s", 1), ("ms", 1e-3), ("us", 1e-6)])


def gibibytes(b):
    return amount(b, [("GiB", 2**30), ("MiB", 2**20)])


def hybrid(joint):
    """The words of a decision that say something, dp and micro-batches aside, which are what is left."""
    words = [w for w in joint["decided"].split() if w not in UNSAID and w.split("=")[0] not in UNSAID]
    words = [re.sub(r"=(?=\d+$)", "", w.replace("recompute=", "")).replace("sp1", "sp") for w in words]
    return " ".join(words) or "dp"


def fits(told, error):
    if told:
        most = max(s["total_bytes"] for s in told["prediction"]["memory"])
        cuts = ", cuts" if "searched_s" in told["joint"] else ""
        return f"{seconds(told['prediction']['step_time_s'])}, {gibibytes(most)}; {hybrid(told['joint'])}{cuts}"
    short = re.search(r"less headroom, (\S+ [KMGT]iB) are short", error)
    return f"**{short.group(1)} short**" if short else "no combination"


def percent(share):
    return f"{100 * share:.2g} %" if share >= 5e-5 else "0 %"


def gaps(told, error):
    if not told:
        return "nothing fits" if "less headroom" in error else "no combination"
    joint, prediction = told["joint"], told["prediction"]
    text = f"{joint['priced']:,} of {joint['combinations']:,}"
    if "searched_s" in joint:
        less = 1 - joint["searched_s"] / joint["step_time_s"]
        bounded = prediction["step_bound_s"] > 0
        return f"{text}; cuts {percent(less)} less, " + \
            (f"gap {percent(prediction['step_gap'])}" if bounded else "open")
    bound = joint.get("least_hybrid_s", joint["step_bound_s"])
    gap = prediction["step_time_s"] / bound - 1 if bound > 0 else None
    return text if gap is not None and gap < 1e-9 else f"{text}; " + ("open" if gap is None else f"gap {percent(gap)}")


def tables(cell, told, models):
    for chip, (name, decoders, others) in CHIPS.items():
        print(f"\n{name}, {decoders} and {others}:\n\n| model | " + " | ".join(f"{n:,}" for n in DEVICES) + " |")
        print("| --- |" + " --- |" * len(DEVICES))
        for model in models:
            print(f"| `{model}` | " + " | ".join(cell(*told[chip, model, n].result()) for n in DEVICES) + " |", flush=True)


def main():
    cells = {"fits": [fits], "gaps": [gaps], "both": [fits, gaps]}
    if len(sys.argv) < 3 or sys.argv[2] not in cells:
        sys.exit("usage: decided.py PLANNER fits|gaps|both [MODEL...]")
    models = sys.argv[3:] or MODELS
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        told = {(c, m, n): pool.submit(plan, sys.argv[1], m, n, c) for c in CHIPS for m in models for n in DEVICES}
        for cell in cells[sys.argv[2]]:
            tables(cell, told, models)


main()
