#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""published.py PROGRAM SOURCE_ROOT [all | CASE...]: `plan` beside plans that people published.

Each case is a network on a machine with the degrees of one or several published runs. What `plan` decides must
not be slower than any of them that fits the memory less headroom, nor than their neighbours, which differ in one
degree, in what is recomputed or dealt. `evaluate --hybrid` prices all of them. A line a case: step decided, bound, fastest of the
others, seconds and bytes of the run, combinations priced. Without a word the quick ones; AP_SEED: of the
neighbours of neighbours, AP_CASES of them.
"""
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

program = os.path.abspath(sys.argv[1])
root = sys.argv[2]
seed = int(os.environ.get("AP_SEED", "20261123"))
more = int(os.environ.get("AP_CASES", "0"))
FREE = ("mindspore", "generic")  # take stages of operators
KEYS = ("dp", "tp", "cp", "ep", "pp", "vpp", "sp", "mbs")
faults = []


def gpt(layers, hidden, heads, sequence=2048, vocabulary=51200, dtype="float16", *more_words):
    return ["gpt3", "--layers", str(layers), "--hidden", str(hidden), "--heads", str(heads), "--sequence",
            str(sequence), "--vocabulary", str(vocabulary), "--dtype", dtype, *more_words]


def llama(layers, hidden, heads, inner, vocabulary, sequence, *more_words):
    return ["llama", "--layers", str(layers), "--hidden", str(hidden), "--heads", str(heads), "--kv-heads", "8",
            "--inner", str(inner), "--vocabulary", str(vocabulary), "--sequence", str(sequence), "--attention",
            "flash", "--dtype", "bfloat16", *more_words]


LLAMA2_70B = llama(80, 8192, 64, 28672, 32000, 4096)
LLAMA3_70B = llama(80, 8192, 64, 28672, 128256, 8192)
FUSED = ("--kernels", "fused", "--loss", "vocabulary-parallel")
MIXTRAL = ["mixtral", "--layers", "32", "--hidden", "4096", "--heads", "32", "--kv-heads", "8", "--inner", "14336",
           "--vocabulary", "32000", "--experts", "8", "--active", "2", "--attention", "flash", "--dtype", "bfloat16",
           "--kernels", "fused", "--capacity", "0"]
DEEPSEEK_V3 = {  # a configuration as Hugging Face has it
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True,
    "routed_scaling_factor": 2.5, "hidden_act": "silu", "max_position_embeddings": 163840, "vocab_size": 129280,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-06, "rope_theta": 10000}


def even(parts, layers):
    """Layers of parts of which the first and the last have one less than the others."""
    each = (layers + 2) // parts
    return ",".join(str(each - (i in (0, parts - 1))) for i in range(parts))


# Name: network, devices, chip, executor, batch, plans; a quick case is True. Degrees as --hybrid has them, dp and
# mbs what is left of devices and 1; "again" what is recomputed, "level" of the optimizer.
CASES = {
    "llama2-7b-16": (llama(32, 4096, 32, 11008, 32000, 4096), 16, "h100-80", "megatron", 64, [
        {"tp": 2, "pp": 1, "sp": 1, "level": 1, "again": "selective"}, {"tp": 2, "pp": 2, "vpp": 4, "sp": 1, "level": 1},
        {"level": 3, "mbs": 2}], True),
    "gpt-1.3b-32": ("gpt3_1.3b", 32, "ascend910b", "mindspore", 64, [
        {"tp": 2, "sp": 1, "level": 1}, {"tp": 2, "pp": 2, "vpp": 3, "sp": 1}], True),
    "gpt3-175b-64": ("gpt3_175b", 64, "a100-80", "megatron", 64, [
        {"tp": 8, "pp": 8, "vpp": 3, "sp": 1, "again": "selective"}, {"tp": 8, "pp": 8, "vpp": 3, "again": "full"}]),
    "gpt3-175b-512": ("gpt3_175b", 512, "a100-80", "megatron", 1536, [
        {"tp": 4, "pp": 32, "mbs": 2, "again": "full"}, {"tp": 4, "pp": 16, "mbs": 2, "again": "full"},
        {"tp": 8, "pp": 8, "mbs": 3, "again": "full"}, {"tp": 2, "pp": 32, "mbs": 3, "again": "full"}]),
    "gpt3-175b-1024": ("gpt3_175b", 1024, "a100-80", "megatron", 1536, [
        {"tp": 4, "pp": 8, "vpp": 12, "sp": 1, "level": 1}, {"tp": 4, "pp": 16, "vpp": 6, "sp": 1, "level": 1},
        {"tp": 4, "pp": 8, "vpp": 12, "sp": 1, "level": 1, "again": "selective"},
        {"tp": 8, "pp": 12, "again": "full"}, {"tp": 8, "pp": 16, "vpp": 2, "again": "full"}]),
    "gpt3-175b-128h": (gpt(96, 12288, 96, 2048, 51200, "bfloat16", "--attention", "flash", *FUSED), 128, "h100-80",
                       "megatron", 256, [{"tp": 4, "pp": 8, "vpp": 6, "sp": 1, "level": 1}]),
    "gpt3-175b-512h": (gpt(96, 12288, 96, 2048, 51200, "bfloat16", "--attention", "flash", *FUSED), 512, "h100-80",
                       "megatron", 2048, [{"tp": 4, "pp": 8, "vpp": 6, "sp": 1, "mbs": 2, "level": 1}]),
    "gpt3-175b-128b": (gpt(96, 12288, 96, 2048, 50432, "float16", "--attention", "flash", *FUSED), 128, "ascend910b",
                       "mindspeed", 1024, [{"tp": 8, "pp": 16, "vpp": 3, "mbs": 2, "sp": 1}]),
    "mt-nlg-280": (gpt(105, 20480, 128, 2048, 51200, "float16", *FUSED), 280, "a100-80", "megatron", 280, [
        {"tp": 8, "pp": 35, "vpp": 3, "sp": 1, "again": "selective"}, {"tp": 8, "pp": 35, "vpp": 3, "again": "full"}]),
    "mt-nlg-2240": (gpt(105, 20480, 128, 2048, 51200, "float16", *FUSED), 2240, "a100-80", "megatron", 2240, [
        {"tp": 8, "pp": 35, "vpp": 3, "sp": 1, "again": "selective"}]),
    "gpt-1t-512": (gpt(128, 25600, 160, 2048, 51200, "float16", *FUSED), 512, "a100-80", "megatron", 512, [
        {"tp": 8, "pp": 64, "sp": 1, "again": "selective"}, {"tp": 8, "pp": 64, "again": "full"}]),
    "gpt-1t-3072": (gpt(128, 25600, 160, 2048, 51200, "float16", *FUSED), 3072, "a100-80", "megatron", 3072, [
        {"tp": 8, "pp": 64, "again": "full"}]),
    "llama3-405b-8k": (llama(126, 16384, 128, 53248, 128256, 8192), 16384, "h100-80", "megatron", 2048, [
        {"tp": 8, "pp": 16, "sp": 1, "level": 1, "layers": even(16, 126)},
        {"tp": 8, "pp": 16, "vpp": 8, "sp": 1, "level": 1, "layers": even(128, 126)},
        {"tp": 8, "pp": 16, "vpp": 8, "sp": 1, "level": 2, "layers": even(128, 126)},
        {"tp": 8, "pp": 16, "vpp": 4, "sp": 1, "level": 2, "layers": even(64, 126)}]),
    "llama3-405b-128k": (llama(126, 16384, 128, 53248, 128256, 131072), 16384, "h100-80", "megatron", 128, [
        {"tp": 8, "cp": 16, "pp": 16, "sp": 1, "level": 1, "layers": even(16, 126)},
        {"tp": 8, "cp": 16, "pp": 16, "vpp": 8, "sp": 1, "level": 1, "layers": even(128, 126)},
        {"tp": 8, "cp": 16, "pp": 16, "vpp": 4, "sp": 1, "level": 2, "layers": even(64, 126)}]),
    "deepseek-v3": (DEEPSEEK_V3, 2048, "h800-80", "megatron", 15360, [
        {"pp": 16, "ep": 64, "level": 1, "layers": "3,4,4,4,4,4,4,4,4,4,4,4,4,4,4,2", "again": "full"},
        {"pp": 16, "ep": 64, "level": 1, "layers": "3,4,4,4,4,4,4,4,4,4,4,4,4,4,4,2", "again": "selective"},
        {"pp": 16, "ep": 32, "tp": 2, "sp": 1, "level": 1, "layers": "3,4,4,4,4,4,4,4,4,4,4,4,4,4,4,2"}]),
    "pangu-200b": (gpt(64, 16384, 128, 1024, 40960, "float16"), 2048, "ascend910a", "mindspore", 1024, [
        {"tp": 8, "pp": 16, "sp": 1, "level": 1, "again": "full"}, {"tp": 8, "pp": 16, "level": 1, "again": "full"},
        {"tp": 8, "pp": 8, "vpp": 4, "sp": 1, "level": 1, "again": "selective"}]),
    "llama2-70b-64": (LLAMA2_70B, 64, "h100-80", "megatron", 128, [
        {"tp": 4, "pp": 4, "vpp": 20, "sp": 1, "level": 1}, {"tp": 4, "pp": 4, "vpp": 10, "sp": 1, "level": 1}]),
    "llama2-70b-256": (LLAMA2_70B, 256, "h100-80", "megatron", 512, [
        {"tp": 4, "pp": 4, "vpp": 20, "sp": 1, "level": 1}]),
    "llama3-70b-64": (LLAMA3_70B, 64, "h100-80", "megatron", 128, [
        {"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "sp": 1, "level": 1},
        {"tp": 4, "pp": 8, "vpp": 5, "sp": 1, "level": 1}]),
    "llama3-70b-128": (LLAMA3_70B, 128, "h100-80", "megatron", 256, [
        {"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "sp": 1, "level": 1},
        {"tp": 4, "pp": 8, "vpp": 5, "sp": 1, "level": 1}]),
    "llama3-70b-64b": (LLAMA3_70B, 64, "ascend910b", "mindformers", 256, [
        {"tp": 8, "pp": 8, "sp": 1, "level": 1, "again": "activation:10,8,6,4,2,0,0,0"},
        {"tp": 8, "pp": 8, "sp": 1, "level": 1, "again": "selective:10,8,6,4,2,0,0,0"}]),
    "nemotron-340b": (["llama", "--layers", "96", "--hidden", "18432", "--heads", "96", "--kv-heads", "8", "--inner",
                       "73728", "--activation", "squared_relu", "--vocabulary", "256000", "--sequence", "4096",
                       "--attention", "flash", "--dtype", "bfloat16"], 128, "h100-80", "megatron", 32, [
                           {"tp": 8, "pp": 8, "vpp": 12, "sp": 1, "level": 1}]),
    "mixtral-64": (MIXTRAL + ["--sequence", "4096"], 64, "h100-80", "megatron", 128, [
        {"tp": 1, "pp": 4, "vpp": 8, "ep": 8, "level": 1}, {"tp": 2, "pp": 4, "vpp": 8, "ep": 8, "sp": 1, "level": 1},
        {"tp": 1, "pp": 2, "ep": 8, "level": 1, "again": "selective"}]),
    "mixtral-64b": (MIXTRAL + ["--sequence", "32768"], 64, "ascend910b", "mindspeed", 128, [
        {"tp": 8, "pp": 4, "cp": 2, "sp": 1, "level": 1}, {"tp": 8, "pp": 4, "cp": 2, "sp": 1, "level": 1, "again": "full"}]),
    "mpt-70b-128": (gpt(80, 8192, 64, 2048, 50368, "bfloat16", "--attention", "flash", "--inner", "32768"), 128,
                    "h100-80", "generic", 1024, [{"level": 3, "mbs": 8, "again": "full"}]),
}


def run(*words):
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    got = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return got.returncode, got.stdout, got.stderr, (time.monotonic() - began,
                                                    after.ru_utime - before.ru_utime, after.ru_maxrss)


def fault(text):
    faults.append(text)
    print("FAULT:", text, flush=True)


def words_of(p, devices):
    """The settings of a plan as words of evaluate; None where it does not divide."""
    rest = devices
    for key in ("tp", "cp", "pp"):
        if rest % p.get(key, 1):
            return None
        rest //= p.get(key, 1)
    degrees = {"dp": rest, "mbs": 1, **{k: p[k] for k in KEYS if k in p}}
    if degrees.get("pp", 1) == 1:
        degrees.pop("vpp", None)
    hybrid = ",".join(f"{k}={degrees[k]}" for k in KEYS if k in degrees)
    if "layers" in p and p.get("pp", 1) > 1:
        hybrid += ",layers=" + p["layers"]
    words = ["--hybrid", hybrid, "--recompute", p.get("again", "none")]
    if p.get("level"):
        words += ["--enable-parallel-optimizer", "--optimizer-level", f"level{p['level']}"]
    return words


def neighbours(p):
    """Plans that differ from p in one thing; a list of layers goes with its stages and segments."""
    for key in ("tp", "cp", "ep", "pp", "vpp", "mbs"):
        for factor in (2, 3, 0.5):
            n = p.get(key, 1) * factor
            if n == int(n) and n >= 1:
                q = {**p, key: int(n)}
                if key in ("pp", "vpp"):
                    q.pop("layers", None)
                yield q
    for key, values in (("again", ("none", "selective", "full")), ("level", (0, 1, 2, 3)), ("sp", (0, 1))):
        for v in values:
            if p.get(key, values[0]) != v:
                yield {**p, key: v}
    if p.get("tp", 1) > 1:
        yield {**p, "tp": p["tp"] // 2, "pp": p.get("pp", 1) * 2, **({"layers": None} if "layers" in p else {})}
        yield {**p, "tp": p["tp"] // 2, "mbs": p.get("mbs", 1) * 2}


def look_at(folder, name, network, devices, chip, executor, batch, experts, _quick=False):
    graph = os.path.join(folder, name + ".json")
    sequence = []
    if isinstance(network, str):
        graph = os.path.join(root, "models", network + ".json")
    elif isinstance(network, dict):
        with open(graph, "w", encoding="utf-8") as f:
            json.dump(network, f)
        sequence = ["--sequence", "4096"]
    else:
        code, _, err, _ = run("model", *network, "--batch", str(batch), "-o", graph)
        if code:
            fault(f"{name}: model: {err}")
            return
    machine = [graph, "--device-num", str(devices), "--chip", chip, "--executor", executor, "--batch", str(batch), *sequence]
    code, out, err, (wall, user, kib) = run("plan", *machine, "--json")
    joint, step, usable = {}, float("inf"), None
    if code == 0:
        told = json.loads(out)
        joint, step = told["joint"], told["prediction"]["step_time_s"]
        usable = joint["usable_bytes"]
    elif code != 5:
        fault(f"{name}: plan {' '.join(machine)}: exit code {code}: {err}")
        return
    rng = random.Random(f"{seed} {name}")
    tried, best, best_words, fit = set(), float("inf"), "", 0
    expert = float("inf")
    todo = [(q, True) for q in experts] + [(n, False) for q in experts for n in neighbours(q)]
    for i in range(more):
        todo.append((rng.choice(list(neighbours(rng.choice(todo)[0]))), False))
    for q, own in todo:
        q = {k: v for k, v in q.items() if v is not None}
        words = words_of(q, devices)
        if not words or " ".join(words) in tried:
            continue
        tried.add(" ".join(words))
        code, out, err, _ = run("evaluate", *machine, "--json", *words)
        if code not in (0, 2, 4):
            fault(f"{name}: evaluate {' '.join(machine + words)}: exit code {code}: {err}")
        if code:
            if own:
                print(f"  {name}: {words[1]} is no plan: {err.strip().splitlines()[-1][:160]}")
            continue
        told = json.loads(out)
        cut = told.get("pipeline") or {}
        if executor not in FREE and cut.get("stages", 1) > 1 and cut["cut"] != "layers":
            continue  # inside layers, of which these executors are told none
        need, takes = max(m["total_bytes"] for m in told["prediction"]["memory"]), told["prediction"]["step_time_s"]
        if usable is None:
            usable = told["machine"]["capacity_bytes"] * 0.95
        if own:
            print(f"  {name}: {words[1]} {q.get('again', 'none')} level{q.get('level', 0)}: {takes:.4g} s, "
                  f"{need / 2**30:.1f} GiB{'' if need <= usable else ', does not fit'}", flush=True)
        if need > usable:
            continue
        fit += 1
        expert = min(expert, takes) if own else expert
        if takes < best:
            best, best_words = takes, " ".join(words)
    ratio = step / best if best < float("inf") else 0
    print(f"{name}: step {step:.5g} s, bound {joint.get('step_bound_s', 0):.5g}, "
          f"of hybrids {joint.get('least_hybrid_s', joint.get('step_bound_s', 0)):.5g}, experts' {expert:.5g} s, ratio to the fastest of "
          f"{fit} that fit {ratio:.4f}; {wall:.1f} s, {user:.1f} s user, {kib >> 10} MiB, priced {joint.get('priced')}; "
          f"{joint.get('decided')}", flush=True)
    if best < step * (1 - 1e-9):
        fault(f"{name}: {best_words} takes {best:.6g} s, plan {' '.join(machine)} decides {joint.get('decided')}, "
              f"{step:.6g} s")


names = sys.argv[3:] or [n for n, c in CASES.items() if len(c) > 6]
if names == ["all"]:
    names = list(CASES)
with tempfile.TemporaryDirectory() as tmp:
    print("seed", seed)
    for n in names:
        look_at(tmp, n, *CASES[n])
if faults:
    sys.exit(f"{len(faults)} faults; AP_SEED={seed}")
