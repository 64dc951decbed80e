# SPDX-License-Identifier: Apache-2.0
"""What frameworks take: a second opinion on the files that a bundle has for them.

A script is run by bash, with a torchrun of the tests' own in front of the path, so what is judged is what
the framework would be given. Each rule is one that the framework's own checks have, or that its first step would
stop at; Refused names it. The files become the same few facts: degrees, layers of each part, batch, what is
recomputed.
"""
import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import types

import yaml


class Refused(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Refused(text)


# ---- scripts ----

FAKE = """#!/bin/sh
{ printf '%s\\0' "$@"; printf '\\n'; env -0; } >"$FAKE_OUT"
"""


def run_script(folder, name, extra):
    """(arguments of torchrun, its environment) of a script as bash runs it."""
    tools = os.path.join(folder, "tools")
    os.makedirs(tools, exist_ok=True)
    torchrun = os.path.join(tools, "torchrun")
    if not os.path.exists(torchrun):
        with open(torchrun, "w", encoding="utf-8") as f:
            f.write(FAKE)
        os.chmod(torchrun, 0o755)
    out = os.path.join(folder, "started")
    env = {"PATH": tools + ":" + os.environ["PATH"], "FAKE_OUT": out, **extra}
    done = subprocess.run(["bash", os.path.join(folder, name)], env=env, capture_output=True, text=True)
    need(done.returncode == 0, f"{name}: {done.stderr}")
    with open(out, encoding="utf-8") as f:
        words, _, variables = f.read().partition("\n")
    return words.split("\0")[:-1], dict(v.split("=", 1) for v in variables.split("\0") if "=" in v)


def demands(folder, name, variable):
    """Does the script stop, and say why, where the variable is not set?"""
    done = subprocess.run(["bash", os.path.join(folder, name)], env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True)
    return done.returncode != 0 and variable in done.stderr


def torchrun_words(words, script):
    """Its own options, and the words behind the script."""
    own, at = {}, 0
    while at < len(words) and words[at] != script:
        need(re.fullmatch("--(nnodes|nproc-per-node|node-rank|master-addr|master-port)", words[at]), words[at])
        own[words[at][2:]] = words[at + 1]
        at += 2
    need(at < len(words), f"torchrun is not given {script}")
    return own, words[at + 1:]


# ---- Megatron-LM ----

FLAG, NUMBER, WORD, WORDS = "flag", "number", "word", "words"
MEGATRON = {
    FLAG: """sequence-parallel use-distributed-optimizer overlap-grad-reduce overlap-param-gather use-megatron-fsdp
        tp-comm-overlap fp8-param-gather distribute-saved-activations recompute-activations swiglu squared-relu bf16 fp16
        disable-bias-linear untie-embeddings-and-output-weights group-query-attention qk-layernorm add-qkv-bias
        multi-latent-attention mock-data moe-grouped-gemm moe-router-pre-softmax moe-router-enable-expert-bias
        moe-enable-deepep overlap-moe-expert-parallel-comm moe-shared-expert-gate moe-shared-expert-overlap moe-pad-expert-input-to-capacity""",
    NUMBER: """tensor-model-parallel-size pipeline-model-parallel-size context-parallel-size
        expert-model-parallel-size expert-tensor-parallel-size micro-batch-size global-batch-size
        num-distributed-optimizer-instances num-virtual-stages-per-pipeline-rank num-layers-per-virtual-pipeline-stage decoder-first-pipeline-num-layers
        decoder-last-pipeline-num-layers recompute-num-layers microbatch-group-size-per-virtual-pipeline-stage num-layers
        hidden-size ffn-hidden-size num-attention-heads num-query-groups kv-channels seq-length max-position-embeddings
        vocab-size make-vocab-size-divisible-by mtp-num-layers num-experts moe-router-topk moe-ffn-hidden-size
        moe-shared-expert-intermediate-size moe-router-num-groups moe-router-group-topk q-lora-rank kv-lora-rank qk-head-dim
        qk-pos-emb-head-dim v-head-dim train-iters""",
    WORD: """cp-comm-type pipeline-model-parallel-layout recompute-granularity recompute-method fp8-format fp8-recipe
        data-parallel-sharding-strategy ckpt-format optimizer sgd-momentum moe-token-dispatcher-type tokenizer-type lr min-lr
        position-embedding-type normalization attention-backend moe-layer-freq moe-router-score-function
        moe-expert-capacity-factor""",
    WORDS: "recompute-modules",
}
MINDSPEED = {
    FLAG: "moe-fb-overlap use-mcore-models use-flash-attn use-ascend-mc2 recompute-norm recompute-activation-function",
    NUMBER: "optimization-level",
    WORD: "context-parallel-algo num-layer-list pipeline-num-transformer-layers transformer-impl",
}
# what core 0.12.1, which MindSpeed-LLM stands on, does not have
NOT_IN_012 = {"num-distributed-optimizer-instances", "overlap-moe-expert-parallel-comm", "moe-enable-deepep", "use-megatron-fsdp", "data-parallel-sharding-strategy", "cp-comm-type", "fp8-param-gather"}


def read_arguments(words, rows):
    """As argparse does without abbreviations; no word twice."""
    kinds = {name: kind for table in rows for kind, names in table.items() for name in names.split()}
    found, at = {}, 0
    while at < len(words):
        need(words[at].startswith("--"), f"unrecognized arguments: {words[at]}")
        name = words[at][2:]
        kind = kinds.get(name)
        need(kind, f"unrecognized arguments: {words[at]}")
        values = []
        at += 1
        while at < len(words) and not words[at].startswith("--"):
            values.append(words[at])
            at += 1
        need(len(values) == (0 if kind == FLAG else 1) or (kind == WORDS and values), f"--{name} {values}")
        if kind == NUMBER:
            need(re.fullmatch("[0-9]+", values[0]), f"--{name} {values}")
        said = found.get(name)
        found[name] = True if kind == FLAG else int(values[0]) if kind == NUMBER else \
            values if kind == WORDS else values[0]
        need(said in (None, found[name]), f"--{name} is said twice: {said}, {found[name]}")
    return found


def expand_layout(text):
    """Groups first, then single letters; commas vanish."""
    text = re.sub(r"\(([^()]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), text.replace(",", ""))
    text = re.sub(r"(.)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    need(re.fullmatch("[EtmL|]*", text), f"Invalid layer character: {text}")
    return text.split("|")


def layers_of_layout(a, pp):
    stages = expand_layout(a["pipeline-model-parallel-layout"])
    flat = "".join(stages)
    need(len(stages) % pp == 0, f"{len(stages)} stages of a layout, pp {pp}")
    need(flat[0] == "E" and flat[-1] == "L" and flat.count("E") == 1 and flat.count("L") == 1, f"layout: {stages}")
    need(flat.count("t") == a["num-layers"], f"{flat.count('t')} layers in the layout of {a['num-layers']}")
    need(flat.count("m") == a.get("mtp-num-layers", 0), "mtp layers")
    with_mtp = [i for i, s in enumerate(stages) if "m" in s]
    need(len(with_mtp) <= 1, "mtp layers in several stages")
    if with_mtp:
        need(with_mtp[0] >= len(stages) - pp, "mtp layers in an earlier chunk")
        need("t" not in flat[flat.index("m"):], "mtp layers before decoder layers")
    return [s.count("t") for s in stages]


def layers_of_parts(a, pp):
    """Layers by chunk and stage, and the chunks of a stage."""
    ways = [w for w in ("num-virtual-stages-per-pipeline-rank", "num-layers-per-virtual-pipeline-stage",
                        "pipeline-model-parallel-layout") if w in a]
    ends = [a.get(f"decoder-{end}-pipeline-num-layers") for end in ("first", "last")]
    need(len(ways) <= 1, f"more than one of {ways}")
    layers = a["num-layers"]
    if "pipeline-model-parallel-layout" in a:
        need(not any(ends), "layout beside first or last")
        parts = layers_of_layout(a, pp)
        return parts, len(parts) // pp
    need(not any(ends) or "num-layers-per-virtual-pipeline-stage" not in a, "layers of a chunk beside first or last")
    v = a.get("num-virtual-stages-per-pipeline-rank", 1)
    if "num-layers-per-virtual-pipeline-stage" in a:
        each = a["num-layers-per-virtual-pipeline-stage"]
        need(layers % pp == 0 and layers // pp % each == 0, f"{layers} layers, pp {pp}, chunks of {each}")
        v = layers // pp // each
    if not any(e is not None for e in ends):
        need(layers % pp == 0 and layers // pp % v == 0, f"{layers} layers, pp {pp}, v {v}")
        return [layers // pp // v] * (pp * v), v
    first, last = ends
    middle = layers - (first or 0) - (last or 0)
    stages = pp - (first is not None) - (last is not None)
    for n in (first, last):
        need(n is None or (n > 0 and n % v == 0), f"first or last: {n}, v {v}")
    need((middle == 0) == (stages == 0) and middle >= 0, f"{middle} layers in {stages} middle stages")
    need(not stages or (middle % stages == 0 and middle // stages % v == 0), f"middle: {middle} in {stages}, v {v}")
    per = [middle // stages if stages else 0] * pp
    per[0], per[-1] = first if first is not None else per[0], last if last is not None else per[-1]
    return [per[k % pp] // v for k in range(pp * v)], v


def megatron_recompute(a, v, tp):
    how, method, modules = (a.get(f"recompute-{w}") for w in ("granularity", "method", "modules"))
    n = a.get("recompute-num-layers")
    need(how in (None, "full", "selective"), how)
    if how == "full":
        need(method in ("uniform", "block") and n and n > 0, f"full recomputation: {method}, {n}")
        need(modules is None, "modules of whole layers")
    if how == "selective":
        need(method is None and n is None, "selective with a method or a number")
        legal = {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"}
        need(set(modules or ["core_attn"]) <= legal and len(set(modules or [])) == len(modules or []), f"{modules}")
        need("mla_up_proj" not in (modules or []) or a.get("multi-latent-attention"), "mla_up_proj without latent attention")
        need("moe_act" not in (modules or []) or a.get("moe-grouped-gemm"), "moe_act without grouped gemm")
        need(not {"moe", "moe_act", "shared_experts"} & set(modules or []) or a.get("num-experts"), f"{modules}")
        if a.get("fp8-recipe") == "delayed":
            need(not {"moe_act", "layernorm"} & set(modules or []), "delayed scales")
    if how is None:
        need(method is None and n is None and modules is None, "parts of recomputation without a granularity")
    if a.get("distribute-saved-activations"):
        need(tp > 1 and how == "full" and method and not a.get("sequence-parallel"), "distributed saved activations")


def megatron_optimizer(a, env, wide, ranks):
    dealt = a.get("use-distributed-optimizer", False)
    if a.get("overlap-param-gather"):
        need(dealt and a.get("overlap-grad-reduce"), "overlap of the gathering of parameters")
    instances = a.get("num-distributed-optimizer-instances", 1)
    need(instances == 1 or (dealt and ranks % instances == 0), f"{instances} instances of {ranks} ranks")
    need(not a.get("fp8-param-gather") or dealt, "fp8 parameters without a sharded optimizer")
    need(a.get("optimizer", "adam") in ("adam", "sgd"), a.get("optimizer"))
    need("CUDA_DEVICE_MAX_CONNECTIONS" in env, "CUDA_DEVICE_MAX_CONNECTIONS is not exported")
    if a.get("use-megatron-fsdp"):
        need(a.get("ckpt-format") == "fsdp_dtensor", "FSDP needs its checkpoints")
        need(env["CUDA_DEVICE_MAX_CONNECTIONS"] != "1", "FSDP with one connection")
        need(a.get("data-parallel-sharding-strategy") in ("no_shard", "optim", "optim_grads", "optim_grads_params"), a)
    else:
        beside = a.get("overlap-moe-expert-parallel-comm") or a.get("moe-fb-overlap")
        need("data-parallel-sharding-strategy" not in a and a.get("ckpt-format") != "fsdp_dtensor", "no FSDP")
        need(not wide or beside or env["CUDA_DEVICE_MAX_CONNECTIONS"] == "1", "tp or cp with several connections")


def megatron_experts(a, pp, v, etp):
    dispatcher = a.get("moe-token-dispatcher-type", "allgather")
    need(not a.get("num-experts") or a.get("disable-bias-linear") or etp == 1, "experts with a bias, cut by tp")
    need(dispatcher in ("allgather", "alltoall", "flex"), dispatcher)
    need(not a.get("moe-enable-deepep") or dispatcher == "flex", "deepep without flex")
    need(not a.get("moe-enable-deepep") or not a.get("moe-pad-expert-input-to-capacity"), "deepep with padding")
    if a.get("overlap-moe-expert-parallel-comm") or a.get("moe-fb-overlap"):
        need(a.get("expert-model-parallel-size", 1) > 1 and dispatcher in ("alltoall", "flex"), "overlap: ep, dispatcher")
        need(pp == 1 or v > 1, "overlap in a pipeline that is not interleaved")
    if a.get("overlap-moe-expert-parallel-comm"):
        need(a.get("recompute-granularity") != "full" and "moe" not in a.get("recompute-modules", []), "overlap: recompute")
        need(a.get("bf16") or a.get("fp16"), "overlap in 32 bits")
    if a.get("moe-fb-overlap"):
        need(etp == 1 and dispatcher == "alltoall", "overlap: etp, dispatcher")


def megatron_sizes(a, world, tp, pp, cp):
    heads, sequence = a["num-attention-heads"], a["seq-length"]
    groups = a.get("num-query-groups", heads) if a.get("group-query-attention") else heads
    ep, etp = a.get("expert-model-parallel-size", 1), a.get("expert-tensor-parallel-size", tp)
    need(world % (tp * pp * cp) == 0, f"world {world}: tp {tp} pp {pp} cp {cp}")
    need(heads % tp == 0 and (groups % tp == 0 or tp % groups == 0), f"{heads} heads, {groups} groups, tp {tp}")
    need(not a.get("sequence-parallel") or tp > 1, "sequence parallelism is switched off")
    need(ep == 1 or (a.get("num-experts") and a["num-experts"] % ep == 0), f"ep {ep}")
    need(world % (etp * ep * pp) == 0, f"world {world}: etp {etp} ep {ep} pp {pp}")
    need(not (a.get("num-experts") and tp > 1) or a.get("sequence-parallel"), "the first step: experts, tp, no sp")
    need(not a.get("tp-comm-overlap") or a.get("sequence-parallel"), "overlap without sequence parallelism")
    return sequence, heads, ep, etp


def megatron(words, env, mindspeed=False):
    """The facts of a command for pretrain_gpt.py, or Refused."""
    own, rest = torchrun_words(words, "pretrain_gpt.py")
    a = read_arguments(rest, [MEGATRON, MINDSPEED] if mindspeed else [MEGATRON])
    world = int(own["nnodes"]) * int(own["nproc-per-node"])
    tp, pp, cp = (a.get(f"{w}-parallel-size", 1) for w in ("tensor-model", "pipeline-model", "context"))
    sequence, heads, ep, etp = megatron_sizes(a, world, tp, pp, cp)
    dp = world // (tp * pp * cp)
    mbs, batch = a["micro-batch-size"], a.get("global-batch-size", a["micro-batch-size"] * dp)
    need(batch % (mbs * dp) == 0, f"batch {batch}: mbs {mbs} dp {dp}")
    m = batch // (mbs * dp)
    if mindspeed:
        need(not NOT_IN_012 & set(a), f"not in core 0.12.1: {NOT_IN_012 & set(a)}")
        parts, v = mindspeed_layers(a, pp)
        algo = mindspeed_context(a, cp, tp, sequence, heads)
        need(env.get("HCCL_CONNECT_TIMEOUT", "").isdigit(), "HCCL_CONNECT_TIMEOUT")
    else:
        parts, v = layers_of_parts(a, pp)
        need(cp == 1 or sequence % (2 * cp) == 0, f"sequence {sequence}, cp {cp}")
        algo = a.get("cp-comm-type", "p2p")
        need(algo in ("p2p", "all_gather", "a2a", "a2a+p2p"), algo)
    if v > 1:
        group = a.get("microbatch-group-size-per-virtual-pipeline-stage", pp)
        need(pp > 1, "interleaving without a pipeline")
        need(pp <= group <= m and (m % group == 0 or m % group >= pp), f"m {m} in groups of {group}, pp {pp}")
    megatron_experts(a, pp, v, etp)
    megatron_recompute(a, v, tp)
    megatron_optimizer(a, env, tp > 1 or cp > 1, dp * cp)
    level = 0
    if a.get("use-distributed-optimizer") or a.get("use-megatron-fsdp"):
        level = {"optim_grads": 2, "optim_grads_params": 3}.get(a.get("data-parallel-sharding-strategy"), 1)
    return types.SimpleNamespace(
        world=world, dp=dp, tp=tp, pp=pp, cp=cp, ep=ep, etp=etp, v=v, sp=bool(a.get("sequence-parallel")), mbs=mbs, m=m,
        batch=batch, parts=parts, level=level, algo=algo, fp8=a.get("fp8-format"), arguments=a)


def megatron_again(facts):
    """Words of what each part recomputes: {"full": [of each part]} and the set of words of all layers."""
    a = facts.arguments
    how, n = a.get("recompute-granularity"), a.get("recompute-num-layers", 0)
    words = {{"core_attn": "selective"}.get(m, m) for m in a.get("recompute-modules", ["core_attn"])} \
        if how == "selective" else set()
    words |= {"layernorm"} if a.get("recompute-norm") else set()
    words |= {"activation"} if a.get("recompute-activation-function") else set()
    full = [0] * len(facts.parts)
    if how == "full":
        full = [min(n, p) for p in facts.parts] if a["recompute-method"] == "block" else list(facts.parts)
    return full, words


# ---- MindSpeed ----

def mindspeed_layers(a, pp):
    lists, one = a.get("pipeline-num-transformer-layers"), a.get("num-layer-list")
    need(not (lists and one), "two lists of layers")
    need(not ((lists or one) and "pipeline-model-parallel-layout" in a), "a list beside the layout")
    if one:
        need(pp > 1 and not {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank"} & set(a), "list")
        parts = [int(n) for n in one.split(",")]
        need(len(parts) == pp and sum(parts) == a["num-layers"] and min(parts) > 0, f"{parts}")
        return parts, 1
    parts, v = layers_of_parts(a, pp)
    if lists:
        rows = json.loads(lists)
        need(len(rows) == pp and all(len(r) == v for r in rows) and sum(map(sum, rows)) == a["num-layers"], lists)
        need(min(map(min, rows)) > 0, lists)
        parts = [rows[k % pp][k // pp] for k in range(pp * v)]
    return parts, v


def mindspeed_context(a, cp, tp, sequence, heads):
    algo = a.get("context-parallel-algo", "megatron_cp_algo")
    need(algo in ("megatron_cp_algo", "ulysses_cp_algo", "kvallgather_cp_algo"), algo)
    if cp > 1 and algo == "megatron_cp_algo":
        need(sequence % (2 * cp) == 0, f"sequence {sequence}, cp {cp}")
    if cp > 1 and algo == "ulysses_cp_algo":
        need(heads % (cp * tp) == 0 and sequence % cp == 0, f"heads {heads}, cp {cp}")
    return {"megatron_cp_algo": "p2p", "ulysses_cp_algo": "a2a", "kvallgather_cp_algo": "all_gather"}[algo]


# ---- MindFormers ----

TEMPLATE = {
    "parallel_config": """data_parallel model_parallel context_parallel expert_parallel pipeline_stage micro_batch_num
        seq_split_num use_seq_parallel optimizer_shard gradient_aggregation_group vocab_emb_dp context_parallel_algo
        ulysses_degree_in_cp mem_coeff""",
    "recompute_config": """recompute select_recompute select_comm_recompute select_recompute_exclude
        select_comm_recompute_exclude parallel_optimizer_comm_recompute mp_comm_recompute recompute_slice_activation""",
    "runner_config": "batch_size gradient_accumulation_steps epochs sink_mode sink_size",
}


def mindformers_offset(offset, layers, pp, v):
    """Layers of each part, by chunk and stage, as MindFormers deals them; a row is only for one chunk."""
    even = layers // (pp * v)
    if not isinstance(offset, list):
        need(offset == 0, f"offset {offset}: a number but 0 is not what it seems")
        need(layers % (pp * v) == 0, f"offset 0: {layers} layers in {pp * v} parts")
        return [even] * (pp * v)
    rows = offset if isinstance(offset[0], list) else [offset]
    need(len(rows) == v and all(len(r) == pp and all(type(n) is int for n in r) for r in rows), f"offset {offset}")
    need(sum(map(sum, rows)) == layers % (pp * v), f"offset {offset} of {layers} layers")
    parts = [even + n for r in rows for n in r]
    need(min(parts) >= 0 and all(n > 0 for n in parts[1:-1]), f"offset {offset}: {parts}")
    return parts


def mindformers_counts(value, parts, pp, v, name):
    """A bool, or a list of full form: numbers of layers of each part."""
    if isinstance(value, bool):
        return list(parts) if value else [0] * len(parts)
    rows = value if v > 1 else [value]
    need(isinstance(value, list) and len(rows) == v and all(isinstance(r, list) and len(r) == pp for r in rows),
         f"{name}: {value}")
    flat = [n for r in rows for n in r]
    need(all(type(n) is int and 0 <= n <= p for n, p in zip(flat, parts)), f"{name}: {value} of {parts}")
    return flat


def mindformers_level(config):
    """Of parallel_optimizer_config, which MindSpore takes as it is."""
    need(set(config) <= {"gradient_accumulation_shard", "parallel_optimizer_threshold", "optimizer_weight_shard_size",
                         "optimizer_level"}, f"parallel_optimizer_config: {config}")
    size, level = config.get("optimizer_weight_shard_size", -1), config.get("optimizer_level")
    need(size == -1 or size > 0, f"optimizer_weight_shard_size {size}")
    need(level in (None, "level1", "level2", "level3"), f"optimizer_level {level}")
    need(not config["gradient_accumulation_shard"] or level in (None, "level2"), f"level2 and {level}")
    return int(level[-1]) if level else 2 if config["gradient_accumulation_shard"] else 1


def mindformers(text, devices, layers, columns, experts):
    """The facts of a YAML laid over a configuration of a network."""
    doc = yaml.safe_load(text)
    for section, keys in TEMPLATE.items():
        need(set(doc[section]) <= set(keys.split()), f"KeyError in {section}: {set(doc[section]) - set(keys.split())}")
    c, p, run = doc["parallel_config"], doc["parallel"], doc["runner_config"]
    dp, tp, cp, ep, pp = (c[f"{w}"] for w in ("data_parallel", "model_parallel", "context_parallel", "expert_parallel",
                                              "pipeline_stage"))
    model = doc["model"]["model_config"]
    pipeline = p.get("pipeline_config", {})
    need(dp * tp * cp * pp == devices, f"devices: {c}")
    need(not c["use_seq_parallel"] or tp > 1, "sequence parallelism without tp")
    need(ep == 1 or (experts and doc.get("moe_config", {}).get("expert_num") == experts), "ep without experts")
    need(cp == 1 or model.get("use_flash_attention"), "cp without flash attention")
    need((cp > 1) == ("context_parallel_algo" in c), "context_parallel_algo")
    need(c.get("context_parallel_algo") in (None, "colossalai_cp", "ulysses_cp"), "context_parallel_algo")
    v = model.get("pp_interleave_num", 1) if pipeline.get("pipeline_interleave") else 1
    need(model.get("pp_interleave_num", 1) == v, "pp_interleave_num counts only with pipeline_interleave")
    need(pp > 1 or not pipeline, "pipeline_config without a pipeline")
    need(pipeline.get("pipeline_scheduler", "1f1b") in ("1f1b", "gpipe", "zero_bubble_v"), pipeline)
    need(pp == 1 or c["micro_batch_num"] >= pp, f"micro_batch_num: {c}")
    m = c["micro_batch_num"] if pp > 1 else run.get("gradient_accumulation_steps", 1)
    copies = doc.get("micro_batch_interleave_num", 1)
    need(copies == 1 or doc.get("use_legacy") is True, "copies on the route without legacy")
    if not p["full_batch"]:
        rows = p["dataset_strategy"]
        need(rows[0][0] == dp and all(r == [dp] + [1] * (len(r) - 1) for r in rows), f"dataset_strategy {rows}")
        need(len(rows) == columns, f"{len(rows)} rows for {columns} columns")
    parts = mindformers_offset(model["offset"], layers, pp, v)
    config = doc["recompute_config"]
    again = {"full": mindformers_counts(config["recompute"], parts, pp, v, "recompute"),
             "communication": mindformers_counts(config["select_comm_recompute"], parts, pp, v, "select_comm_recompute")}
    chosen = config["select_recompute"]
    for pattern in chosen if isinstance(chosen, (list, dict)) else []:
        re.compile(pattern)
        if isinstance(chosen, dict):
            mindformers_counts(chosen[pattern], parts, pp, v, pattern)
    mbs = run["batch_size"] * copies
    return types.SimpleNamespace(
        world=devices, dp=dp, tp=tp, cp=cp, ep=ep, pp=pp, v=v, sp=c["use_seq_parallel"], mbs=mbs, m=m, batch=mbs * m * dp,
        parts=parts, again=again, chosen=chosen, scheduler=pipeline.get("pipeline_scheduler"), doc=doc,
        level=mindformers_level(p["parallel_optimizer_config"]) if p["enable_parallel_optimizer"] else 0)


# ---- torchtitan ----

TITAN = {
    FLAG: "training.disable_cuda_graphs compile.enable compile.enable_async_tensor_parallel",
    NUMBER: """parallelism.tensor_parallel_degree parallelism.context_parallel_degree parallelism.pipeline_parallel_degree
        parallelism.data_parallel_replicate_degree parallelism.data_parallel_shard_degree
        parallelism.expert_parallel_degree parallelism.num_pp_microbatches parallelism.pipeline_parallel_layers_per_stage
        parallelism.pipeline_parallel_first_stage_less_layers parallelism.pipeline_parallel_last_stage_less_layers
        training.num_tokens_per_microbatch_per_dp_rank training.num_tokens_per_train_step""",
    WORD: "parallelism.pipeline_parallel_schedule parallelism.fsdp_reshard_after_forward",
}
SINGLE, LOOPED = {"1F1B", "GPipe"}, {"Interleaved1F1B", "ZBVZeroBubble"}


def planned(path):
    """What apply() makes of a configuration."""
    fakes = {}
    for name, members in (("torchtitan.distributed.activation_checkpoint", ("FullAC", "SelectiveAC")),
                          ("torchtitan.components.quantization", (
                              "Float8LinearConverter", "MXFP8LinearConverter", "Float8GroupedExpertsConverter",
                              "MXFP8GroupedExpertsConverter"))):
        fakes[name] = types.ModuleType(name)
        for member in members:
            made = type(member, (), {})
            made.Config = staticmethod(lambda member=member, **kw: (member, kw))
            setattr(fakes[name], member, made)
    for name in ("torchtitan", "torchtitan.distributed", "torchtitan.components"):
        fakes[name] = types.ModuleType(name)
    sys.modules.update(fakes)
    spec = importlib.util.spec_from_file_location("torchtitan_plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parallelism = types.SimpleNamespace(module_fqns_per_model_part=None, enable_sequence_parallel=True)
    config = module.apply(types.SimpleNamespace(parallelism=parallelism, activation_checkpoint="unset"))
    return config, module.converters() if hasattr(module, "converters") else None


def titan_stages(layers, each, first, last):
    """Layers of each stage: the ends count as layers, what is left over goes to the first ones."""
    stages = -(-(layers + first + last) // each)
    base, more = divmod(layers + first + last, stages)
    counts = [base + (i < more) for i in range(stages)]
    need(first <= counts[0] and last <= counts[-1], "weights of the ends")
    counts[0] -= first
    counts[-1] -= last
    return counts


def titan_modules(modules, layers):
    flat = [m for part in modules for m in part]
    need(flat == ["tok_embeddings"] + [f"layers.{i}" for i in range(layers)] + ["norm", "lm_head"], f"{modules}")
    need("tok_embeddings" in modules[0] and "lm_head" in modules[-1] and all(modules), f"{modules}")
    return [sum(m.startswith("layers.") for m in part) for part in modules]


def torchtitan(words, env, python, layers, tokens, experts):
    own, rest = torchrun_words(words, "-m")
    need(rest[:5] == ["torchtitan.train", "--module", "llama3", "--config", "planned"], f"{rest[:5]}")
    a = {k.split(".", 1)[1]: v for k, v in read_arguments(rest[5:], [TITAN]).items()}
    config, converters = planned(python)
    world = int(own["nnodes"]) * int(own["nproc-per-node"])
    tp, cp, pp = (a[f"{w}_parallel_degree"] for w in ("tensor", "context", "pipeline"))
    replicate, shard = a["data_parallel_replicate_degree"], a["data_parallel_shard_degree"]
    dp, ep = replicate * shard, a.get("expert_parallel_degree", 1)
    need(replicate * shard * cp * tp * pp == world, f"degrees of {world}: {a}")
    need(shard * cp * tp % ep == 0 and (ep == 1 or experts), f"ep {ep}")
    need("enable_async_tensor_parallel" not in a or a.get("enable"), "asynchronous tp without the compiler")
    need(a.get("fsdp_reshard_after_forward", "default") in ("default", "always", "never"), f"{a}")
    need(env.get("PYTORCH_ALLOC_CONF") == "expandable_segments:True", "PYTORCH_ALLOC_CONF")
    need(os.path.dirname(os.path.abspath(python)) in env.get("PYTHONPATH", "").split(":"), "PYTHONPATH")
    m, parts, v = a.get("num_pp_microbatches", 1), [layers], 1
    micro, step = a["num_tokens_per_microbatch_per_dp_rank"], a["num_tokens_per_train_step"]
    need(step % (micro * m * dp) == 0, f"{step} tokens: {micro} x {m} x {dp}")
    need(micro % tokens == 0, f"{micro} tokens of samples of {tokens}")
    if pp > 1:
        schedule = a["pipeline_parallel_schedule"]
        need(a.get("disable_cuda_graphs"), "CUDA graphs refuse a pipeline")
        if config.parallelism.module_fqns_per_model_part is not None:
            need("pipeline_parallel_layers_per_stage" not in a, "layers beside modules")
            parts = titan_modules(config.parallelism.module_fqns_per_model_part, layers)
        else:
            parts = titan_stages(layers, a["pipeline_parallel_layers_per_stage"],
                                 a["pipeline_parallel_first_stage_less_layers"],
                                 a["pipeline_parallel_last_stage_less_layers"])
        need(len(parts) % pp == 0, f"{parts}: pp {pp}")
        v = len(parts) // pp
        need(schedule in SINGLE and v == 1 or schedule in LOOPED and v >= 2, f"{schedule}: {parts}")
        need(schedule == "GPipe" or m >= pp, f"{m} micro-batches, pp {pp}")
        need(schedule != "Interleaved1F1B" or m % max(1, m // pp) == 0, f"{m} micro-batches in rounds")
        if schedule == "ZBVZeroBubble":  # forth and back through the ranks
            need(v == 2, f"{parts} in a V")
            parts = parts[:pp] + parts[pp:][::-1]
    else:
        need(not {k for k in a if k.startswith("pipeline_parallel_") and k != "pipeline_parallel_degree"}, f"{a}")
        m = step // (micro * dp)
    checkpoint = config.activation_checkpoint
    need(checkpoint != "unset", "activation_checkpoint is not set")
    return types.SimpleNamespace(
        world=world, dp=dp, tp=tp, cp=cp, ep=ep, pp=pp, v=v, sp=tp > 1 and config.parallelism.enable_sequence_parallel,
        mbs=micro // tokens, m=m, batch=step // tokens, parts=parts, shard=shard, checkpoint=checkpoint and checkpoint[0],
        reshard=a.get("fsdp_reshard_after_forward"), converters=converters, arguments=a)


def is_python(path):
    with open(path, encoding="utf-8") as f:
        ast.parse(f.read())


# ---- DeepSpeed ----

def no_duplicates(pairs):
    need(len({k for k, _ in pairs}) == len(pairs), f"a key twice: {pairs}")
    return dict(pairs)


ZERO3 = {"stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance",
         "stage3_param_persistence_threshold", "mics_shard_size"}


def deepspeed(text, devices, pp=1, inner=1):
    """The facts of a configuration: the product of the batch, the world, what a stage of ZeRO takes.

    pp: stages that the network's code makes, with products cut inner times in it.
    """
    doc = json.loads(text, object_pairs_hook=no_duplicates)
    need(set(doc) <= {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "fp16",
                      "zero_optimization", "tensor_parallel", "data_parallel_size", "sequence_parallel_size"}, f"{set(doc)}")
    tp, zero = doc.get("tensor_parallel", {}).get("autotp_size", 1), doc["zero_optimization"]
    cp = doc.get("sequence_parallel_size", 1)
    need(cp == 1 or (tp == 1 and pp == 1), f"Ulysses of {cp} beside tensor parallelism or stages")
    need(tp == 1 or pp == 1, "autotp beside stages")
    tp *= inner
    need(devices % (tp * cp * pp) == 0, f"{devices} devices, {tp} x {cp} x {pp}")
    dp, mbs, m = devices // (tp * cp * pp), doc["train_micro_batch_size_per_gpu"], doc["gradient_accumulation_steps"]
    need(doc.get("data_parallel_size", dp) == dp and ("data_parallel_size" in doc) == (cp > 1), f"mesh: {doc}")
    need(doc["train_batch_size"] == mbs * m * dp, f"batch {doc['train_batch_size']}: {mbs} x {m} x {dp}")
    stage = zero["stage"]
    need(set(zero) <= {"stage", "overlap_comm"} | (ZERO3 if stage == 3 else set()), f"{zero}")
    need(stage in (0, 1, 2, 3) and (pp == 1 or stage < 2), f"ZeRO {stage}, {pp} stages")
    shard = zero.get("mics_shard_size", -1)
    need(shard == -1 or (shard > 0 and dp % shard == 0), f"mics_shard_size {shard} of {dp}")
    if stage == 3:
        need(0 < zero["stage3_prefetch_bucket_size"] <= zero["stage3_max_live_parameters"], f"{zero}")
    need(not (doc["bf16"]["enabled"] and doc["fp16"]["enabled"]), "bf16 and fp16")
    return types.SimpleNamespace(world=devices, dp=dp, tp=tp, cp=cp, pp=pp, ep=1, v=1, sp=0, mbs=mbs, m=m,
                                 batch=doc["train_batch_size"], level=stage, shard=shard, doc=doc)


def deepspeed_calls(python, layers):
    """What the functions of deepspeed_plan.py call: stages with their topology, recomputation, sequences, contexts."""
    called = {}

    def maker(name):
        def make(*args, **words):
            need(not args, f"{name}{args}")
            called[name] = words
            return name
        return make

    fakes = {name: types.ModuleType(name) for name in (
        "deepspeed", "deepspeed.pipe", "deepspeed.runtime", "deepspeed.runtime.pipe", "deepspeed.runtime.pipe.topology",
        "deepspeed.runtime.sequence_parallel", "deepspeed.runtime.sequence_parallel.ulysses_sp")}
    fakes["deepspeed.pipe"].PipelineModule = maker("PipelineModule")
    fakes["deepspeed.runtime.pipe.topology"].PipeModelDataParallelTopology = maker("topology")
    fakes["deepspeed.runtime.sequence_parallel.ulysses_sp"].UlyssesSPAttentionHF = types.SimpleNamespace(
        register_with_transformers=maker("sequences"))
    fakes["deepspeed"].zero = types.SimpleNamespace(Init=maker("Init"), MiCS_Init=maker("MiCS_Init"))
    sys.modules.update(fakes)
    spec = importlib.util.spec_from_file_location("deepspeed_plan", python)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "pipeline"):
        need(module.pipeline([None] * layers, "Layer") == "PipelineModule", "pipeline()")
        need(called["PipelineModule"]["partition_method"] == "type:Layer", f"{called}")
    else:
        model = types.SimpleNamespace(gradient_checkpointing_enable=lambda: called.update(again=True),
                                      gradient_checkpointing_disable=lambda: called.update(again=False))
        need(module.prepare(model) is model, "prepare()")
    if hasattr(module, "sequences"):
        module.sequences("model", core_attn_implementation="sdpa")
    if hasattr(module, "init"):
        module.init()
    return called


def deepspeed_plan(folder, script, devices, layers):
    """The facts of a folder: its script starts one that is given the configuration, and calls the Python beside it."""
    words, env = run_script(folder, script, {"SCRIPT": "train.py"})
    own, rest = torchrun_words(words, "train.py")
    need(int(own["nnodes"]) * int(own["nproc-per-node"]) == devices, f"{own}")
    need(rest[:2] == ["--deepspeed", "--deepspeed_config"] and len(rest) == 3, f"{rest}")
    need(os.path.realpath(folder) in map(os.path.realpath, env.get("PYTHONPATH", "").split(":")), "PYTHONPATH")
    called = deepspeed_calls(os.path.join(folder, "deepspeed_plan.py"), layers)
    shape = called.get("topology", {"num_pp": 1, "num_mp": 1})
    with open(rest[2], encoding="utf-8") as f:
        facts = deepspeed(f.read(), devices, shape["num_pp"], shape["num_mp"])
    need(shape.get("num_dp", facts.dp) == facts.dp, f"{shape}: {facts.dp}")
    need(("PipelineModule" in called) == (facts.pp > 1), f"{called}")
    need(layers % facts.pp == 0, f"{layers} layers in {facts.pp} stages")
    facts.parts = [layers // facts.pp] * facts.pp
    facts.checkpoint = called.get("again", called.get("PipelineModule", {}).get("activation_checkpoint_interval") == 1)
    need(called.get("sequences", {}).get("sequence_parallel_size", 1) == facts.cp, f"{called}")
    need({"Init", "MiCS_Init"} & set(called) == (set() if facts.level < 3 else {"MiCS_Init" if facts.shard > 0 else "Init"}),
         f"{called}: ZeRO {facts.level}, {facts.shard}")
    for name in ("Init", "MiCS_Init"):
        need(called.get(name, {}).get("config_dict_or_path", rest[2]) == rest[2], f"{called}")
    return facts
