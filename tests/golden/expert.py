# SPDX-License-Identifier: Apache-2.0
"""Usage: expert.py PROGRAM SOURCE_ROOT

What bundles say to MindFormers and Megatron: the YAML is read back, every key held against the
rules of MindFormers, the stages of layers against the plan, and the step time in its comment
against that of the hybrid it names; the arguments that Megatron is started with must say the same.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import yaml

import launch_rules

PROGRAM, ROOT = sys.argv[1:3]

# Every key and the types that it may have; a set: values that are allowed.
KEYS = {
    "use_parallel": {True}, "use_legacy": {True}, "moe_config": {"expert_num": {8}},
    "parallel_config": {
        "data_parallel": int, "model_parallel": int, "context_parallel": int,
        "context_parallel_algo": {"colossalai_cp"}, "expert_parallel": int, "pipeline_stage": int,
        "micro_batch_num": int, "use_seq_parallel": bool, "vocab_emb_dp": bool,
        "gradient_aggregation_group": int,
    },
    "micro_batch_interleave_num": int,
    "runner_config": {"batch_size": int, "gradient_accumulation_steps": int},
    "parallel": {
        "parallel_mode": {1}, "gradients_mean": bool, "enable_alltoall": bool, "full_batch": bool,
        "dataset_strategy": list, "enable_parallel_optimizer": bool,
        "parallel_optimizer_config": {
            "gradient_accumulation_shard": bool, "parallel_optimizer_threshold": int,
            "optimizer_weight_shard_size": {2},  # never -1, which is what it is without
        },
        "pipeline_config": {
            "pipeline_interleave": bool, "pipeline_scheduler": {"1f1b", "gpipe", "zero_bubble_v"},
        },
        "strategy_ckpt_config": {"save_file": str, "only_trainable_params": bool},
    },
    "model": {"model_config": {"offset": (int, list), "pp_interleave_num": int, "use_flash_attention": {True}}},
    "recompute_config": {
        "recompute": (bool, list), "select_recompute": (bool, list, dict),
        "select_comm_recompute": (bool, list), "parallel_optimizer_comm_recompute": bool,
        "mp_comm_recompute": bool, "recompute_slice_activation": bool,
    },
    "context": {"max_device_memory": str},
}

NUMBER = "[1-9][0-9]*"
ARGUMENTS = {
    "--tensor-model-parallel-size": NUMBER, "--pipeline-model-parallel-size": NUMBER,
    "--context-parallel-size": NUMBER, "--cp-comm-type": "all_gather|p2p|a2a",
    "--expert-model-parallel-size": NUMBER, "--expert-tensor-parallel-size": NUMBER,
    "--sequence-parallel": "", "--micro-batch-size": NUMBER, "--global-batch-size": NUMBER,
    "--num-virtual-stages-per-pipeline-rank": NUMBER,
    "--pipeline-model-parallel-layout": r"E[t|*\d]*L", "--num-layers": NUMBER,
    "--use-megatron-fsdp": "", "--data-parallel-sharding-strategy": "optim_grads|optim_grads_params",
    "--ckpt-format": "fsdp_dtensor", "--optimizer": "sgd", "--sgd-momentum": "0", "--moe-token-dispatcher-type": "alltoall|flex", "--moe-grouped-gemm": "",
    "--decoder-first-pipeline-num-layers": NUMBER, "--decoder-last-pipeline-num-layers": NUMBER,
    "--use-distributed-optimizer": "", "--overlap-grad-reduce": "", "--overlap-param-gather": "",
    "--recompute-granularity": "full|selective", "--recompute-method": "uniform|block",
    "--overlap-moe-expert-parallel-comm": "", "--moe-enable-deepep": "",
    "--recompute-modules": "(core_attn|layernorm|mlp|moe|shared_experts|moe_act|mla_up_proj)( (core_attn|layernorm|mlp|moe|moe_act|mla_up_proj))*",
    "--fp8-format": "e4m3|hybrid", "--fp8-recipe": "tensorwise|delayed|mxfp8|blockwise", "--fp8-param-gather": "",
    "--recompute-num-layers": NUMBER, "--distribute-saved-activations": "",
}

# Keys that depend on the plan.
OPTIONAL = {"context_parallel_algo", "dataset_strategy", "optimizer_weight_shard_size", "pipeline_config",
            "offset", "use_legacy", "moe_config", "use_flash_attention"}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def has_type(value, allowed):
    """A bool is an int in Python, but not in a configuration."""
    types = allowed if isinstance(allowed, tuple) else (allowed,)
    return type(value) in types


def check_keys(value, rows, path):
    for key in value:
        expect(key in rows, f"{path}{key}: no such key")
    for key, allowed in rows.items():
        if key not in value:
            expect(key in OPTIONAL, f"{path}{key}: missing")
        elif isinstance(allowed, dict):
            check_keys(value[key], allowed, f"{path}{key}.")
        elif isinstance(allowed, set):
            expect(value[key] in allowed and type(value[key]) in map(type, allowed),
                   f"{path}{key}: {value[key]!r}")
        else:
            expect(has_type(value[key], allowed), f"{path}{key}: {value[key]!r}")


def per_part(value, stages, segments, path):
    """A list for each stage, or for each stage of each segment, as one list, segments first."""
    rows = [value] if segments == 1 else value
    expect(len(rows) == segments, f"{path}: {value}")
    for row in rows:
        expect(len(row) == stages and all(type(n) is int for n in row), f"{path}: {value}")
    return [n for row in rows for n in row]


def layers_of_parts(doc, layers):
    config, stages = doc["model"]["model_config"], doc["parallel_config"]["pipeline_stage"]
    segments = config["pp_interleave_num"]
    offset = config["offset"]
    parts = stages * segments
    more = [0] * parts if offset == 0 else per_part(offset, stages, segments, "offset")
    counts = [layers // parts + n for n in more]
    expect(min(counts) >= 0 and sum(counts) == layers, f"offset {offset}: {counts}")
    return counts


def check_parallel(doc, devices, batch):
    c, runner = doc["parallel_config"], doc["runner_config"]
    dp, stages = c["data_parallel"], c["pipeline_stage"]
    expect(dp * c["model_parallel"] * c["context_parallel"] * stages == devices, f"devices: {c}")
    expect(dp % c["expert_parallel"] == 0, f"expert_parallel: {c}")
    expect(stages == 1 or c["micro_batch_num"] >= stages, f"micro_batch_num: {c}")
    expect(("context_parallel_algo" in c) == (c["context_parallel"] > 1), f"context_parallel: {c}")
    samples = dp * runner["batch_size"] * c["micro_batch_num"] * doc["micro_batch_interleave_num"]
    expect(samples * runner["gradient_accumulation_steps"] == batch, f"batch: {c} {runner}")


def check_dataset(doc, graph):
    p, dp = doc["parallel"], doc["parallel_config"]["data_parallel"]
    expect(p["full_batch"] == ("dataset_strategy" not in p), f"dataset: {p}")
    if not p["full_batch"]:
        tokens = all(len(shape) == 2 for shape in graph["input_shapes"]) and "int" in "".join(graph["input_dtypes"])
        columns = max(4, len(graph["inputs"])) if tokens else len(graph["inputs"])  # Megatron's datasets have four
        expect(len(p["dataset_strategy"]) == columns, f"dataset_strategy: {p}")
        for row in p["dataset_strategy"]:
            expect(row[0] == dp and all(n == 1 for n in row[1:]), f"dataset_strategy: {row}")


def check_pipeline(doc):
    stages = doc["parallel_config"]["pipeline_stage"]
    segments = doc["model"]["model_config"]["pp_interleave_num"]
    config = doc["parallel"].get("pipeline_config")
    expect((config is not None) == (stages > 1), "pipeline_config")
    if config:
        plain = segments == 1 and config["pipeline_scheduler"] == "1f1b"
        expect(config["pipeline_interleave"] == (not plain), f"pipeline_interleave: {config}")


def check_plan_recompute(doc, args, plan, layers):
    """MindFormers' lists count from a part's first layer on: full ones by themselves, of gathers and of each pattern
    full ones among them. Megatron's block is of the first layers of each part, or all of it."""
    again = plan["recompute"]
    kinds = {kind: count for kind, count in zip(again["kinds"], again["counts"])}
    full = kinds.get("full", [0] * len(layers))
    stages, segments = doc["parallel_config"]["pipeline_stage"], doc["model"]["model_config"]["pp_interleave_num"]

    def counts(value, name):
        return per_part(value, stages, segments, name) if isinstance(value, list) else \
            list(layers) if value else [0] * len(layers)

    def with_full(word):
        some = [sum(c[k] for kind, c in kinds.items() if word in kind.split("+")) for k in range(len(layers))]
        return [n + f if n else 0 for n, f in zip(some, full)]

    config = doc["recompute_config"]
    expect(counts(config["recompute"], "recompute") == full, config)
    expect(counts(config["select_comm_recompute"], "comm") == with_full("communication"), config)
    if any(with_full("activation")):
        expect(all(counts(value, "select") == with_full("activation")
                   for value in config["select_recompute"].values()), config)
    if args.get("--recompute-method") == "block":
        most = int(args["--recompute-num-layers"])
        expect([min(most, n) for n in layers] == full, args)


def check_recompute(doc, counts):
    value = doc["recompute_config"]["recompute"]
    stages = doc["parallel_config"]["pipeline_stage"]
    segments = doc["model"]["model_config"]["pp_interleave_num"]
    if isinstance(value, list):
        some = per_part(value, stages, segments, "recompute")
        expect(all(a <= b for a, b in zip(some, counts)), f"recompute: {value}")
    selected = doc["recompute_config"]["select_recompute"]
    for pattern in selected or []:
        re.compile(pattern)


def check_stages(doc, plan, prefix, counts):
    """MindFormers' rule: layers go to the parts in order, the part's stage is its remainder."""
    stages = doc["parallel_config"]["pipeline_stage"]
    part_of = [part for part, n in enumerate(counts) for _ in range(n)]
    for op in plan["operators"]:
        found = re.match(re.escape(prefix) + r"\.(\d+)(\.|$)", op["cell"])
        if found and op["type"] not in ("Send", "Receive"):
            part = part_of[int(found[1])]
            expect((op["stage"], op["segment"]) == (part % stages, part // stages),
                   f"{op['name']}: stage {op['stage']}, not {part % stages}")


def read_arguments(folder):
    """The plan's arguments, as bash gives them to torchrun; those of the tests mark where they begin."""
    words, _ = launch_rules.run_script(folder, "megatron.sh", {"MODEL_ARGS": "--bf16", "TRAIN_ARGS": "--mock-data"})
    text = " ".join(words).partition(" --mock-data ")[2]
    found = {}
    for line in text[2:].split(" --"):
        name, _, value = ("--" + line).partition(" ")
        expect(name in ARGUMENTS and name not in found, f"megatron: {line}")
        found[name] = value
        expect(re.fullmatch(ARGUMENTS[name], value), f"megatron: {line}")
    return found


def layers_of_arguments(args, layers, parts):
    """Megatron's rule: what the first and the last stage do not have is dealt evenly."""
    layout = args.get("--pipeline-model-parallel-layout")
    if layout:
        return [part.count("t") for part in launch_rules.expand_layout(layout)]
    ends = [args.get(f"--decoder-{end}-pipeline-num-layers") for end in ("first", "last")]
    rest = layers - sum(int(n) for n in ends if n)
    free = parts - sum(n is not None for n in ends)
    expect(rest % free == 0, f"megatron: {layers} layers of {parts} parts: {ends}")
    counts = [rest // free] * parts
    for place, n in zip((0, -1), ends):
        counts[place] = int(n) if n else counts[place]
    return counts


def check_arguments(args, doc, batch):
    c, runner = doc["parallel_config"], doc["runner_config"]
    for key, name in (("model", "tensor-model"), ("context", "context")):
        expect(int(args[f"--{name}-parallel-size"]) == c[f"{key}_parallel"], f"megatron: {name}")
    expect(int(args["--pipeline-model-parallel-size"]) == c["pipeline_stage"], "megatron: stages")
    ep = int(args.get("--expert-model-parallel-size", 1))
    expect(ep == c["expert_parallel"], "megatron: experts")
    beside = c["model_parallel"] > 1 and "--moe-grouped-gemm" in args  # Megatron's first step would stop without
    expect(("--sequence-parallel" in args) == (c["use_seq_parallel"] or beside), "megatron: sequence")
    samples = runner["batch_size"] * doc["micro_batch_interleave_num"]
    expect(int(args["--micro-batch-size"]) == samples, "megatron: micro-batch")
    expect(int(args["--global-batch-size"]) == batch, "megatron: global batch")
    expect(("--use-distributed-optimizer" in args) == doc["parallel"]["enable_parallel_optimizer"],
           "megatron: optimizer")
    full = doc["recompute_config"]["recompute"]
    if isinstance(full, bool) or args.get("--recompute-granularity") == "full":
        expect((args.get("--recompute-granularity") == "full") == bool(full), "megatron: recompute")


def run(command, args, folder, bundle):
    plan = os.path.join(folder, "plan.json")
    out = ["--bundle", bundle] if bundle else []
    done = subprocess.run([PROGRAM, command, *args, "--plan-out", plan, "-q", *out],
                          capture_output=True, text=True)
    expect(done.returncode == 0, f"{command} {args}: {done.stderr}")
    with open(plan, encoding="utf-8") as f:
        return json.load(f)


def comment(text, name):
    return re.search(rf"^# {name}: (.*)$", text, re.M)[1]


def check_time(text, plan, args, folder):
    """The hybrid that is named takes as long as is said, and the plan too."""
    rest = [a for i, a in enumerate(args) if a != "--hybrid" and args[i - 1] != "--hybrid"]
    said = re.match(r"(\S+) s, the plan's (\S+) s: a (loss|gain) of (\S+) %",
                    comment(text, "step time"))
    there = run("evaluate", [*rest, "--hybrid", comment(text, "hybrid")], folder, None)
    own, hybrid = plan["prediction"]["step_time_s"], there["prediction"]["step_time_s"]
    expect((float(said[1]), float(said[2])) == (hybrid, own), f"step time: {said[0]}, not {hybrid}")
    loss = float(said[4]) * (1 if said[3] == "loss" else -1)
    expect(abs((hybrid / own - 1) * 100 - loss) < 0.006, f"loss: {said[0]}")


def stage_config(prefix, counts, stages):
    layers = [part % stages for part, n in enumerate(counts) for _ in range(n)]
    return json.dumps({f"{prefix}.{i}": stage for i, stage in enumerate(layers)})


GPT, LLAMA = ("gpt3_1.3b", "network.backbone.blocks", 24), ("llama2_7b", "model.layers", 32)
MIXTRAL, MIX = ("mixtral_8x7b", "model.layers", 32), ("multiple_mix", "", 0)

# Command, model, devices, layers of each part, is the plan a hybrid, options.
CASES = [
    ("evaluate", GPT, 16, None, True, ["--hybrid", "tp=4,sp=1", "--micro-batches", "4"]),
    ("evaluate", GPT, 16, [13, 11], True,
     ["--hybrid", "tp=2,pp=2", "--micro-batches", "8", "--recompute", "full", "--full-batch"]),
    ("evaluate", GPT, 16, [5, 6, 7, 6], True,
     ["--hybrid", "tp=2,pp=4", "--micro-batches", "8", "--recompute", "selective"]),
    ("evaluate", GPT, 16, [5, 6, 7, 6], True,
     ["--hybrid", "tp=2,pp=4", "--micro-batches", "8", "--recompute", "full:6"]),
    ("evaluate", GPT, 16, [13, 11], True,
     ["--hybrid", "tp=4,pp=2,sp=1", "--micro-batches", "8", "--recompute", "full:4,0,activation:6,2,communication:5,3"]),
    ("evaluate", GPT, 16, [6, 6, 5, 7], True,
     ["--hybrid", "tp=4,pp=2,vpp=2,sp=1", "--micro-batches", "8", "--recompute", "communication,full:1,0/0,2"]),
    ("evaluate", LLAMA, 32, [16, 16], True,
     ["--hybrid", "tp=4,pp=2", "--micro-batches", "8", "--recompute", "mlp+layernorm", "--executor", "megatron",
      "--chip", "h100", "--fp8-format", "hybrid", "--fp8-recipe", "blockwise", "--enable-parallel-optimizer",
      "--fp8-param-gather"]),
    ("evaluate", GPT, 16, [5, 7, 7, 5], True,
     ["--hybrid", "tp=2,pp=4,sp=1", "--micro-batches", "8", "--interleave-num", "2"]),
    ("evaluate", GPT, 16, [6, 6, 5, 7], True,
     ["--hybrid", "tp=2,pp=2,vpp=2", "--micro-batches", "8", "--enable-parallel-optimizer",
      "--optimizer-level", "level2", "--optimizer-weight-shard-size", "2"]),
    ("evaluate", GPT, 16, [7, 6, 4, 7], True,
     ["--hybrid", "tp=2,pp=4,layers=7,6,4,7", "--micro-batches", "8"]),
    ("evaluate", GPT, 16, [5, 5, 7, 7], True,
     ["--hybrid", "offset=-1,-1,1,1,tp=2,pp=2,vpp=2", "--micro-batches", "8"]),
    ("evaluate", LLAMA, 32, [8, 8, 8, 8], True,
     ["--hybrid", "tp=2,cp=2,pp=4,vocab_emb_dp=1", "--micro-batches", "256"]),
    ("evaluate", MIXTRAL, 32, [16, 16], True,
     ["--hybrid", "tp=2,ep=4,pp=2", "--micro-batches", "8"]),
    ("evaluate", MIXTRAL, 32, [16, 16], True,
     ["--hybrid", "tp=2,cp=2,pp=2,mbs=1", "--executor", "megatron"]),
    ("search", MIX, 8, None, False, []),
    ("search", MIX, 8, None, None, ["--pipeline-stages", "2", "--micro-batches", "4"]),
    ("search", GPT, 16, None, False, ["--micro-batches", "4"]),
    ("search", GPT, 16, None, False, ["--pipeline-stages", "2", "--micro-batches", "8"]),
]


def check_files(folder, plan, case):
    _, (_, prefix, layers), devices, counts, same, _ = case
    with open(os.path.join(folder, "README.txt"), encoding="utf-8") as f:
        readme = f.read()
    if "There is no mindformers.yaml, since" in readme and "stages whose layers are not known: no cells" in readme:
        return None
    with open(os.path.join(folder, "mindformers.yaml"), encoding="utf-8") as f:
        text = f.read()
    args = read_arguments(folder)
    doc = yaml.safe_load(text)
    check_keys(doc, KEYS, "")
    check_parallel(doc, devices, plan["graph"]["batch"])
    check_dataset(doc, plan["graph"])
    check_pipeline(doc)
    check_arguments(args, doc, plan["graph"]["batch"])
    if layers:
        found = layers_of_parts(doc, layers)
        expect(counts is None or found == counts, f"layers of the parts: {found}")
        check_recompute(doc, found)
        if plan.get("recompute"):
            check_plan_recompute(doc, args, plan, found)
        check_stages(doc, plan, prefix, found)
        found_there = layers_of_arguments(args, layers, len(found))
        expect(found_there == found, f"megatron: layers of the parts: {found_there}")
    expect(doc["micro_batch_interleave_num"] == (2 if "--interleave-num" in case[5] else 1), "copies")
    went = "cp=2" in str(case[5]) and "megatron" in case[5]
    expect(args.get("--cp-comm-type") == ("p2p" if went else "all_gather" if "cp=2" in str(case[5]) else None), args)
    expect((",cp_algo=ring," in text.replace("\n", ",")) == went, text)
    if "--fp8-format" in case[5]:
        expect(args["--fp8-format"] == "hybrid" and args["--fp8-recipe"] == "blockwise", args)
        expect("--fp8-param-gather" in args and "MindFormers cannot be told: products in 8 bits" in readme, readme)
    told = text.startswith("# All operators of the plan are cut as in this hybrid")
    expect(same is None or told == same, text)
    return text


def check(case):
    command, (model, prefix, _), devices, counts, _, options = case
    chip = [] if "--chip" in options else ["--chip", "a100-80"]
    args = [f"{ROOT}/models/{model}.json", *chip, "--device-num", str(devices), *options]
    if counts and not re.search("layers=|offset=", options[1]):
        stages = int(re.search(r"pp=(\d+)", options[1])[1])
        args += ["--stage-config", stage_config(prefix, counts, stages)]
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "bundle")
        plan = run(command, args, folder, bundle)
        text = check_files(bundle, plan, case)
        expect(text or case[1] == MIX and "--pipeline-stages" in options, "no files")
        if text:
            check_time(text, plan, args, folder)


def main():
    failed = 0
    for case in CASES:
        try:
            check(case)
        except (AssertionError, OSError) as e:
            failed += 1
            print(f"{case[0]} {case[1][0]} {case[5]}: {e}")
    print(f"{len(CASES)} cases, {failed} failed")
    sys.exit(failed > 0)


main()
