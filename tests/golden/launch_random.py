# SPDX-License-Identifier: Apache-2.0
"""Usage: launch_random.py PROGRAM SOURCE_ROOT

Random plans, bundled, and their files judged by launch_rules: none may be refused, and degrees, layers of each
part, batch and recomputation are the plan's. What an executor cannot be told is refused by the bundle, and only
that. A file read back by --config is the same plan. AP_CASES plans, of seed AP_SEED, which is printed; what has
no plan is drawn anew.
"""
import collections
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import launch_rules as rules
from launch_rules import Refused, need

PROGRAM = os.path.abspath(sys.argv[1])
CASES = int(os.environ.get("AP_CASES", "28"))
SEED = int(os.environ.get("AP_SEED") or random.SystemRandom().randrange(1 << 31))
CHIPS = {"mindspore": "ascend910b3", "mindformers": "ascend910b3", "mindspeed": "ascend910b3", "megatron": "h100",
         "torchtitan": "h100", "deepspeed": "h100", "generic": "h100"}
TOKENS, HEADS, GROUPS, EXPERTS = 256, 8, 4, 4
MODEL = (f"--hidden-size 128 --ffn-hidden-size 256 --num-attention-heads {HEADS} --group-query-attention "
         f"--num-query-groups {GROUPS} --seq-length {TOKENS} --max-position-embeddings {TOKENS} --swiglu --bf16 "
         "--normalization RMSNorm --disable-bias-linear --vocab-size 1023 --untie-embeddings-and-output-weights "
         "--position-embedding-type rope")
CONFIG = {"hidden_size": 128, "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "intermediate_size": 256,
          "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "torch_dtype": "bfloat16", "vocab_size": 1024}


def run(*args):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Net:
    """A small network: a graph's file, or a configuration, of which the bundle knows the arguments."""

    def __init__(self, folder, layers, experts, known, fused, small):
        self.layers, self.experts, self.known, self.small = layers, EXPERTS if experts else 0, known, small
        self.path = os.path.join(folder, f"net{layers}{int(experts)}{int(known)}{int(fused)}{int(small)}.json")
        if os.path.exists(self.path):
            return
        if known:
            kind = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": EXPERTS,
                    "num_experts_per_tok": 2} if experts else {"model_type": "llama",
                                                               "architectures": ["LlamaForCausalLM"]}
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump({**CONFIG, **kind, "num_hidden_layers": layers}, f)
            return
        words = ["model", "mixtral" if experts else "llama", "--layers", str(layers), "--hidden", "128", "--heads", str(HEADS),
                 "--kv-heads", str(GROUPS), "--inner", "256", "--vocabulary", "1024", "--sequence", str(TOKENS),
                 "--attention", "small-operators" if small else "flash", "--batch", "32", "--dtype", "bfloat16", "-q", "-o", self.path]
        words += ["--experts", str(EXPERTS), "--active", "2"] if experts else []
        words += ["--kernels", "fused"] if fused else []
        done = run(*words)
        assert done.returncode == 0, done.stderr

    def arguments(self):
        more = f" --num-experts {self.experts} --moe-router-topk 2 --moe-ffn-hidden-size 256" if self.experts else ""
        return {"MODEL_ARGS": f"--num-layers {self.layers} {MODEL}{more}"}


def random_parts(r, layers, parts):
    """A number of layers for each part; ends may have none."""
    if r.random() < 0.3 and layers % parts == 0:
        return [layers // parts] * parts
    if r.random() < 0.3 and parts > 2:
        ends = [r.randint(1, max(1, layers // parts)), r.randint(1, max(1, layers // parts))]
        if (layers - sum(ends)) % (parts - 2) == 0 and layers > sum(ends):
            return [ends[0]] + [(layers - sum(ends)) // (parts - 2)] * (parts - 2) + [ends[1]]
    cuts = sorted(r.sample(range(1, layers), parts - 1)) if layers > parts else list(range(1, parts))
    counts = [b - a for a, b in zip([0] + cuts, cuts + [layers])]
    if r.random() < 0.15 and parts > 2 and counts[0] == 1:
        counts[0], counts[1] = 0, counts[1] + 1
    if r.random() < 0.15 and parts > 2 and counts[-1] == 1:
        counts[-1], counts[-2] = 0, counts[-2] + 1
    return counts


RECOMPUTE = ["none", "none", "none", "full", "full", "full:1", "full:2", "selective", "mlp+layernorm", "layernorm",
             "layernorm+mla_up_proj", "communication", "activation", "uniform:2", "products/2", "products", "selective,full:1"]


class Case:
    def __init__(self, r, folder):
        self.executor = r.choice(["megatron", "megatron", "mindspeed", "mindformers", "torchtitan", "deepspeed", "generic",
                                  "mindspore"])
        self.chip = CHIPS[self.executor]
        known = r.random() < 0.4
        experts = r.random() < 0.35
        small = not known and not experts and r.random() < 0.3
        self.net = Net(folder, r.choice([4, 5, 8, 9, 12]), experts, known, experts and self.chip == "h100", small)
        self.pp = r.choice([1, 2, 2, 3, 4])
        self.v = r.choice([1, 1, 2, 3]) if self.pp > 1 and self.pp * 3 <= self.net.layers else 1
        self.tp, self.cp, self.dp = r.choice([1, 2, 4]), 1 if small else r.choice([1, 1, 1, 2]), r.choice([1, 2, 4])
        self.sp = int(self.tp > 1 and r.random() < 0.7)
        self.ep = r.choice([e for e in (1, 2, 4) if (self.dp * self.cp) % e == 0]) if experts else 1
        self.etp = 1 if self.ep > 1 and self.tp > 1 and self.executor != "mindformers" and r.random() < 0.3 else 0
        self.mbs, self.m = r.choice([1, 1, 2]), r.randint(1, 9)
        if self.v > 1 and r.random() < 0.8:
            self.m = self.pp * r.randint(1, 3)
        self.parts = random_parts(r, self.net.layers, self.pp * self.v)
        self.again = r.choice(RECOMPUTE)
        if experts:
            self.again = self.again.replace("mlp", "moe").replace("activation", "moe_act")
        if self.pp > 1 and r.random() < (0.5 if self.executor == "mindformers" else 0.15):
            self.again = "full:" + "/".join([",".join(str(r.randint(0, 2)) for _ in range(self.pp)) for _ in range(self.v)])
            if not experts and r.random() < 0.6:
                self.again += f",{r.choice(['selective', 'layernorm', 'communication', 'activation'])}:" + self.again[5:]
        self.level = r.choice([0, 1, 1, 2, 3])
        self.scheduler = r.choice([None] * 8 + ["gpipe"]) if self.pp > 1 and self.v == 1 else None
        if self.pp > 1 and self.v == 2 and r.random() < 0.3:
            self.scheduler = "zero_bubble_v"
        self.recipe = r.choice(["tensorwise", "delayed", "mxfp8", "blockwise"]) \
            if self.chip == "h100" and r.random() < 0.15 else None
        self.algo = r.choice([None, None, "ring", "all-to-all"]) if self.cp > 1 else None
        self.relayed = experts and self.chip == "h100" and r.random() < 0.3
        self.beside = experts and self.chip == "h100" and r.random() < 0.3
        self.shards = r.choice([2, 4]) if self.level and self.dp * self.cp > 2 and r.random() < 0.2 else 0
        self.full_batch = self.chip != "h100" and self.executor != "mindspeed" and r.random() < 0.2

        if self.executor == "deepspeed" and r.random() < 0.7:
            self.be_plain(r)

    def be_plain(self, r):
        """Degrees as they mostly are where the network's code makes stages and parts of sequences."""
        self.v, self.sp, self.ep, self.etp, self.scheduler, self.recipe = 1, 0, 1, 0, None, None
        self.pp = r.choice([d for d in (1, 2, 3, 4) if self.net.layers % d == 0])
        self.parts = [self.net.layers // self.pp] * self.pp
        self.cp, self.algo = 1 if self.pp * self.tp > 1 or self.net.small else self.cp, None
        self.level = min(self.level, 1) if self.pp > 1 else self.level
        self.again = r.choice(["none", "full"])

    def options(self):
        """Of evaluate, but for the plan's own words, which a file may say as well."""
        per = math.gcd(self.devices(), 8)
        return ["--chip", self.chip, "--memory", "60GB", "--devices-per-server", str(per), "-q"] + (["--sequence", str(TOKENS)] if self.net.known else [])

    def hybrid(self):
        text = f"dp={self.dp},tp={self.tp},cp={self.cp},pp={self.pp},mbs={self.mbs}"
        text += f",sp={self.sp}" + (f",ep={self.ep}" if self.ep > 1 else "") + (f",etp={self.etp}" if self.etp else "")
        text += f",vpp={self.v},layers={','.join(map(str, self.parts))}" if self.pp > 1 else ""
        return text + (f",cp_algo={self.algo}" if self.algo else "")

    def words(self):
        words = ["evaluate", self.net.path, *self.options(), "--executor", self.executor,
                 "--device-num", str(self.devices()), "--hybrid", self.hybrid(), "--recompute", self.again,
                 "--batch", str(self.dp * self.mbs * self.m)]
        if self.level:
            words += ["--enable-parallel-optimizer", "--optimizer-level", f"level{self.level}"]
        words += ["--pipeline-scheduler", self.scheduler] if self.scheduler else []
        words += ["--fp8-format", "hybrid", "--fp8-recipe", self.recipe] if self.recipe else []
        words += ["--optimizer-weight-shard-size", str(self.shards)] if self.shards else []
        words += ["--moe-token-dispatcher-type", "deepep"] if self.relayed else []
        words += ["--overlap-moe-expert-parallel-comm"] if self.beside else []
        return words + (["--full-batch"] if self.full_batch else [])

    def devices(self):
        return self.dp * self.tp * self.cp * self.pp

    # What the executor has no words for; told apart from the program's own judgement.
    def unsaid(self):
        return getattr(self, "unsaid_" + self.executor, lambda plan: [])

    def unsaid_megatron(self, plan):
        kinds, counts, parts = recomputed(plan)
        why = ["schedule"] if self.scheduler else []
        why += ["micro-batches"] if self.v > 1 and self.m % self.pp else []
        words = set(w for k in kinds for w in k.split("+"))
        full = dict(zip(kinds, counts)).get("full", [0] * len(parts))
        legal = {"full", "selective", "mlp", "layernorm", "moe", "shared_experts", "moe_act", "mla_up_proj"}
        if self.executor == "mindspeed":
            legal |= {"activation"}
        why += ["words"] if words - legal else []
        if "full" in words:
            most = max(full)
            why += ["uneven"] if full != parts and any(n != min(most, p) for n, p in zip(full, parts)) else []
            why += ["beside full"] if len(words) > 1 else []
        elif words and (len(kinds) > 1 or counts[0] != parts):
            why += ["several"]
        if self.ep > 1 and self.cp > 1 and self.ep % self.cp and self.etp != 1:
            why += ["experts beside cp"]
        if self.shards not in (0, self.dp * self.cp) and (
                self.executor == "mindspeed" or self.level > 1 or self.ep > 1 or self.dp * self.cp % self.shards):
            why += ["groups of ranks"]
        if self.beside and (self.ep == 1 or (self.pp > 1 and self.v == 1) or words & {"full", "moe"}):
            why += ["two passes as one"]
        return why

    def unsaid_mindspeed(self, plan):
        return self.unsaid_megatron(plan) + (["level"] if self.level > 1 else []) + (["fp8"] if self.recipe else [])

    def unsaid_mindformers(self, plan):
        why = ["micro-batches"] if self.pp > 1 and self.m < self.pp else []
        why += ["empty part"] if 0 in self.parts[1:-1] else []
        why += ["units"] if self.again == "uniform:2" else []
        # operators of a layer may share a name, of which some are recomputed
        shared = re.search("products|moe", self.again) or (self.net.small and "selective" in self.again)
        return why + (["?"] if shared else [])

    def unsaid_torchtitan(self, plan):
        kinds, counts, parts = recomputed(plan)
        looped = self.v > 1
        why = ["micro-batches"] if self.pp > 1 and (self.m % self.pp if looped else
                                                    self.m < self.pp and self.scheduler != "gpipe") else []
        why += ["micro-batches"] if self.pp > 1 and looped and self.m < self.pp else []
        why += ["groups of ranks"] if self.shards and (self.cp > 1 or self.dp % self.shards) else []
        why += ["two passes as one"] if self.beside and self.pp > 1 else []
        why += ["ring"] if self.algo == "ring" else []
        why += ["experts"] if self.ep > 1 and self.tp > 1 and self.etp != 1 else []
        why += ["whole beside cp"] if self.cp > 1 and not self.level else []
        why += ["experts of replicas"] if not self.level and self.cp * self.tp % self.ep else []
        why += ["recompute"] if kinds not in ([], ["full"], ["products/2"]) else []
        why += ["uneven"] if kinds and counts != [parts] else []
        why += ["units"] if kinds and self.again == "uniform:2" else []
        why += ["scales"] if self.recipe in ("delayed", "blockwise") else []
        return why


    def unsaid_deepspeed(self, plan):
        kinds, counts, parts = recomputed(plan)
        why = ["segments"] if self.v > 1 else ["schedule"] if self.scheduler else []
        why += ["level"] if self.pp > 1 and self.level > 1 else []
        why += ["uneven stages"] if len(set(self.parts)) > 1 else []
        why += ["sequences"] if self.cp > 1 and (self.tp > 1 or self.pp > 1 or self.algo not in (None, "all-to-all")) else []
        why += ["experts"] if self.ep > 1 else []
        why += ["sp"] if self.sp else []
        why += ["recompute"] if kinds not in ([], ["full"]) else []
        why += ["uneven"] if kinds == ["full"] and (counts != [parts] or self.again == "uniform:2") else []
        why += ["fp8"] if self.recipe else []
        every = self.dp * self.cp
        why += ["groups of ranks"] if self.shards and self.shards < every and (
            self.level != 3 or self.cp > 1 or every % self.shards) else []
        return why + (["two passes as one"] if self.beside and self.pp > 1 and self.v == 1 else [])


def recomputed(plan, language=None):
    """Kinds, their layers in each part, and all layers in each part."""
    stages, segments = len(plan["stages"]), 1 + max(op["segment"] for op in plan["operators"])
    home = {}
    for op in plan["operators"]:
        found = re.match(r"(?:model|network)?\.?(?:\w+\.)*?layers\.(\d+)(?:\.|$)", op["cell"])
        if found and op["type"] not in ("Send", "Receive"):
            home[int(found[1])] = op["segment"] * stages + op["stage"]
    parts = [0] * (stages * segments)
    for part in home.values():
        parts[part] += 1
    again = plan.get("recompute") or {"kinds": [], "counts": []}
    # fused attention computes its core again by itself; what goes by Megatron's mathematics holds nothing gathered
    idle = {"none"} | ({"selective"} if any(op["type"] == "FlashAttentionScore" for op in plan["operators"]) else set())
    idle |= set() if plan["settings"]["executor"] in ("mindspore", "mindformers") else {"communication"}
    idle |= {"mla_up_proj"}  # of latent attention alone, which none of these networks has
    if not any(op["recompute"] for op in plan["operators"]):  # words that mark nothing, with a note
        idle |= {w for kind in again["kinds"] for w in kind.split("+")} - {"communication"}
    kinds, counts = [], []
    for kind, count in zip(again["kinds"], again["counts"]):
        words = [re.sub("uniform:.*", "full", w) for w in kind.split("+") if w not in idle]
        if language == "mindformers":  # by the pattern of a cell one is as good as the other
            words = ["activation" if w == "moe_act" else w for w in words]
        if words:
            kinds.append("+".join(words))
            counts.append(count)
    return kinds, counts, parts


def same(name, got, want):
    need(got == want, f"{name}: the file says {got}, the plan {want}")


def check_facts(case, facts, plan, language):
    for name in ("dp", "tp", "cp", "pp", "v", "mbs", "m"):
        if (name, language) != ("mbs", "mindformers"):
            same(name, getattr(facts, name), getattr(case, name))
    same("devices", facts.world, plan["machine"]["devices"])
    same("ep", facts.ep, case.ep)
    same("batch", facts.batch, plan["graph"]["batch"])
    same("layers", facts.parts, recomputed(plan)[2])
    beside = language in ("megatron", "mindspeed") and case.net.experts > 0
    same("sequence parallelism", bool(facts.sp), bool(case.sp or (beside and case.tp > 1)))
    if language == "torchtitan" and case.executor == language:
        same("ranks of a shard", facts.shard, (case.shards or case.dp) if case.level else 1)
        same("gathering", facts.reshard, {0: None, 3: "always"}.get(case.level, "never"))
    if language == "deepspeed":
        same("ranks of a shard", facts.shard, case.shards if case.shards and case.shards < case.dp and case.level == 3 else -1)
    if language == "mindformers" and case.executor == language and case.shards:
        same("ranks of a shard", facts.doc["parallel"]["parallel_optimizer_config"]["optimizer_weight_shard_size"], case.shards)
    if language == "megatron" and case.executor == language and case.level == 1 and case.shards:
        same("instances", facts.arguments.get("num-distributed-optimizer-instances", 1), case.dp * case.cp // case.shards)
    if language != "torchtitan" and case.executor == language:
        same("level", facts.level, case.level)


def check_again(facts, plan, language):
    kinds, counts, parts = recomputed(plan)
    table = dict(zip(kinds, counts))
    none = [0] * len(parts)
    if language == "mindformers":
        full = table.get("full", none)
        same("full recomputation", facts.again["full"], full)

        def from_first(word):
            """Layers of each part from its first on, full ones among them."""
            more = [sum(c[i] for k, c in table.items() if word in k.split("+")) for i in range(len(parts))]
            return [n + f if n else 0 for n, f in zip(more, full)]

        if facts.sp:  # else nothing is gathered
            same("gathered again", facts.again["communication"], from_first("communication"))
        words = {w for k in kinds for w in k.split("+")} - {"full", "communication"}
        for pattern, counts in (facts.chosen.items() if isinstance(facts.chosen, dict) else ()):
            flat = rules.mindformers_counts(counts, parts, facts.pp, facts.v, pattern)
            need(any(flat == from_first(w) for w in words), f"{pattern}: {flat}, {table}")
    elif language == "deepspeed":
        same("recomputation", facts.checkpoint, kinds == ["full"])
    elif language == "torchtitan":
        same("recomputation", facts.checkpoint, {"full": "FullAC", "products/2": "SelectiveAC"}.get((kinds + [None])[0]))
    else:
        full, words = rules.megatron_again(facts)
        same("full recomputation", full, table.get("full", none))
        asked = {w for k in kinds for w in k.split("+")} - {"full"}
        same("words of recomputation", words, asked)


def judge(case, folder, plan, language):
    """The facts of the file for a framework; None: there is none."""
    names = {"megatron": "megatron.sh", "mindspeed": "mindspeed.sh", "mindformers": "mindformers.yaml",
             "torchtitan": "torchtitan.sh", "deepspeed": "deepspeed.sh"}
    path = os.path.join(folder, names[language])
    if not os.path.exists(path):
        return None
    if language == "deepspeed":
        need(rules.demands(folder, names[language], "SCRIPT"), "SCRIPT is not demanded")
        return rules.deepspeed_plan(folder, names[language], case.devices(), case.net.layers)
    if language == "mindformers":
        with open(path, encoding="utf-8") as f:
            return rules.mindformers(f.read(), case.devices(), case.net.layers, 4, case.net.experts)
    if language == "torchtitan":
        need(rules.demands(folder, names[language], "MODULE"), "MODULE is not demanded")
        words, env = rules.run_script(folder, names[language], {"MODULE": "llama3", "CONFIG": "planned"})
        python = os.path.join(folder, "torchtitan_plan.py")
        return rules.torchtitan(words, env, python, case.net.layers, TOKENS, case.net.experts)
    # a graph tells all of a dense network, and of experts all but the router
    told = case.net.known or not case.net.experts
    need(told != rules.demands(folder, names[language], "MODEL_ARGS"), f"MODEL_ARGS: {told}")
    words, env = rules.run_script(folder, names[language], {} if told else case.net.arguments())
    facts = rules.megatron(words, env, language == "mindspeed")
    same("layers of the network", facts.arguments["num-layers"], case.net.layers)
    same("hidden units", facts.arguments["hidden-size"], 128)
    if told:
        said = re.search("a network of ([0-9]+) parameter", run("check", path).stdout)
        same("parameters", int(said[1]), plan["graph"]["parameters"])
    return facts


def judge_deepspeed(case, folder, plan, readme):
    """ds_config.json, of plans for any executor without stages, experts and parts of sequences."""
    path = os.path.join(folder, "ds_config.json")
    if case.executor == "deepspeed":
        return
    need(os.path.exists(path) == (case.executor == "generic" and max(case.pp, case.cp, case.ep) == 1), "ds_config.json")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        facts = rules.deepspeed(f.read(), case.devices())
    for name in ("dp", "tp", "mbs", "m", "level"):
        same(name, getattr(facts, name), getattr(case, name))
    same("batch", facts.batch, plan["graph"]["batch"])
    same("bf16", facts.doc["bf16"]["enabled"], True)
    for said, lacks in ((case.sp, "sequence parallelism"), (recomputed(plan)[0], "what is recomputed"),
                        (case.recipe, "8 bits"), (case.shards and case.shards < case.dp and (case.level != 3 or case.dp % case.shards),
                                                  "dealt among")):
        need(bool(said) == (re.search(f"DeepSpeed cannot be told: .*{lacks}", readme) is not None), f"{lacks}: {readme}")


def read_back(case, folder, plan, language):
    """The plan that --config makes of the file."""
    name = {"mindformers": "mindformers.yaml", "deepspeed": "ds_config.json"}.get(language, f"{language}.sh")
    again = os.path.join(folder, "again.json")
    options = [o for o in case.options() if o != "-q"]
    if language == "deepspeed":  # the network's code says it
        options += ["--recompute", case.again]
    done = run("evaluate", case.net.path, *options, "--config", os.path.join(folder, name), "--plan-out", again)
    need(done.returncode == 0, f"read back: {done.stderr}")
    if language == "mindformers" and "changes the price and is not read" in done.stderr:
        return  # cells that no word of --recompute names
    with open(again, encoding="utf-8") as f:
        there = json.load(f)
    for key in ("executor", "device_num"):
        same(f"setting {key}", there["settings"][key], plan["settings"][key])
    same("step time", there["prediction"]["step_time_s"], plan["prediction"]["step_time_s"])
    same("layers read back", recomputed(there, language), recomputed(plan, language))
    for one, other in zip(there["operators"], plan["operators"]):
        same(one["name"], (one["in_strategy"], one["stage"], one["segment"]),
             (other["in_strategy"], other["stage"], other["segment"]))


def check(r, folder):
    """What became of a random plan: a word to count."""
    case = Case(r, folder)
    bundle = os.path.join(folder, "bundle")
    plan_file = os.path.join(folder, "plan.json")
    shutil.rmtree(bundle, ignore_errors=True)
    done = run(*case.words(), "--plan-out", plan_file)
    if done.returncode == 2 and "bundle-words" not in done.stderr:
        return "no plan"
    try:
        need(done.returncode == 0, done.stderr)
        with open(plan_file, encoding="utf-8") as f:
            plan = json.load(f)
        done = run(*case.words(), "--bundle", bundle)
        unsaid = case.unsaid()(plan)
        if done.returncode == 2:
            need("[bundle-words]" in done.stderr and unsaid, f"refused: {done.stderr}")
            need(not os.path.exists(os.path.join(bundle, "plan.json")), "a refused bundle has files")
            return f"unsaid to {case.executor}"
        need(done.returncode == 0, done.stderr)
        need(unsaid in ([], ["?"]), f"{case.executor} cannot be told: {unsaid}")
        judged = 0
        with open(os.path.join(bundle, "README.txt"), encoding="utf-8") as f:
            readme = f.read()
        for language in ("megatron", "mindspeed", "mindformers", "torchtitan", "deepspeed"):
            facts = judge(case, bundle, plan, language)
            judged += facts is not None
            need(facts is not None or language != case.executor, f"no file for {language}")
            if facts is None:
                continue
            check_facts(case, facts, plan, language)
            if language == case.executor:
                check_again(facts, plan, language)
                if (language != "torchtitan" and (language != "deepspeed" or case.pp == 1)) and "is told otherwise" not in readme:
                    read_back(case, bundle, plan, language)
        judge_deepspeed(case, bundle, plan, readme)
        need(judged or "would not start with it" in readme, "no file, and README.txt does not say why")
        return f"{case.executor}: {judged} file{'s' * (judged != 1)}"
    except Refused as e:
        raise Refused(f"{' '.join(case.words())}\n  {e}") from e


class Decided(Case):
    """Settings that `plan` decides for a random network: all of it has to be sayable to the executor."""

    def __init__(self, r, folder):
        super().__init__(r, folder)
        self.executor = r.choice(["megatron", "mindspeed", "mindformers", "torchtitan", "deepspeed"])
        self.chip = CHIPS[self.executor]
        self.recipe = self.algo = self.scheduler = None
        self.relayed = self.beside = self.full_batch = False
        self.shards, self.again, self.number = 0, "", r.choice([4, 8, 16])
        self.asked = ["--batch", str(r.choice([32, 48, 96, 192]))]
        self.asked += r.choice([[], [], ["--pipeline-stages", "2..4"], ["--pipeline-stages", "4", "--pipeline-segments", "2,3"],
                                ["--micro-batches", "6|12"], ["--optimizer-level", "level1" if self.executor == "mindspeed" else "level1,level3"]])
        self.asked += r.choice([[], ["--optimizer-weight-shard-size", "2"]])
        self.asked += ["--memory", r.choice(["2GB", "2200MB", "2500MB", "4GB"])]
        self.server = str(r.choice([2, 4, self.number]))

    def devices(self):
        return self.number

    def options(self):
        words = super().options()
        words[words.index("--memory") + 1] = self.asked[-1]
        words[words.index("--devices-per-server") + 1] = self.server
        return words

    def words(self):
        return ["plan", self.net.path, *self.options(), "--executor", self.executor, "--device-num", str(self.number),
                *self.asked[:-2]]

    def take(self, plan):
        """The values that were decided."""
        said = dict(w.split("=") for w in plan["joint"]["decided"].split() if "=" in w)
        self.dp, self.tp, self.cp, self.ep, self.pp, self.v, self.mbs, self.m = (
            int(said.get(k, 1)) for k in ("dp", "tp", "cp", "ep", "pp", "v", "mbs", "micro-batches"))
        self.sp, self.again = int(said.get("sp", 0)), said["recompute"]
        self.etp, self.shards = int(said.get("etp", 0)), int(said.get("shard", 0))
        self.level = int((re.search(r"level(\d)", plan["joint"]["decided"]) or "00")[1])


def check_decided(r, folder):
    """A decided plan's bundle: it is there, and says what was decided."""
    case, bundle = Decided(r, folder), os.path.join(folder, "decided")
    shutil.rmtree(bundle, ignore_errors=True)
    done = run(*case.words(), "--bundle", bundle)
    if done.returncode in (2, 5) and "bundle-words" not in done.stderr:
        return "nothing decided"
    try:
        need(done.returncode == 0, done.stderr)
        with open(os.path.join(bundle, "plan.json"), encoding="utf-8") as f:
            plan = json.load(f)
        case.take(plan)
        facts = judge(case, bundle, plan, case.executor)
        need(facts is not None, "no file")
        check_facts(case, facts, plan, case.executor)
        check_again(facts, plan, case.executor)
        return f"decided for {case.executor}"
    except Refused as e:
        raise Refused(f"{' '.join(case.words())}\n  {e}") from e


# Networks, and words that their arguments have; None: Megatron has no arguments for them.
NETWORKS = [
    ({"model_type": "qwen3", "head_dim": 32, "tie_word_embeddings": True, "hidden_act": "silu"},
     "--qk-layernorm --kv-channels 32", "--untie"),
    ({"model_type": "qwen2", "hidden_act": "silu"}, "--add-qkv-bias --disable-bias-linear", "--qk-layernorm"),
    ({"model_type": "gpt2", "n_embd": 128, "n_head": 8, "n_layer": 4, "n_positions": 1024, **dict.fromkeys((
        "hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size", "max_position_embeddings",
        "rms_norm_eps", "num_hidden_layers"))},
     "--position-embedding-type learned_absolute", "--disable-bias-linear --swiglu"),
    ({"model_type": "deepseek_v3", "kv_lora_rank": 32, "q_lora_rank": 48, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
      "v_head_dim": 16, "num_key_value_heads": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
      "moe_intermediate_size": 64, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1, "scoring_func": "sigmoid",
      "topk_method": "noaux_tc", "norm_topk_prob": True, "hidden_act": "silu"},
     "--multi-latent-attention --moe-layer-freq ([0]*1+[1]*3) --moe-router-num-groups 2", "--num-query-groups"),
    ({"model_type": "llama", "hidden_act": "silu"}, "--swiglu --disable-bias-linear --position-embedding-type rope",
     "--qk-layernorm"),
    ({"model_type": "gpt_neox", "hidden_act": "gelu", "rotary_pct": 1.0, "use_parallel_residual": True,
      "layer_norm_eps": 1e-5, "num_key_value_heads": None, "rms_norm_eps": None}, None, None),
    ({"model_type": "gemma2", "head_dim": 16, "sliding_window": 128, "query_pre_attn_scalar": 16}, None, None),
]


def network_words(script):
    """Does it demand MODEL_ARGS, and the lines of the network's arguments."""
    with open(script, encoding="utf-8") as f:
        text = f.read()
    lines = text[text.index("ARGS=(\n") + 7:text.index('\t"${TRAIN[@]}"')]
    return "MODEL_ARGS:?" in text, [line for line in lines.split("\n") if "MODEL[@]" not in line]


def check_graph(folder, config, script):
    """The graph of a configuration alone: the same arguments, or the script asks for more."""
    graph, bundle = os.path.join(folder, "read.json"), os.path.join(folder, "read")
    shutil.rmtree(bundle, ignore_errors=True)
    done = run("import", config, "--sequence", "256", "--batch", "16", "-q", "-o", graph)
    need(done.returncode == 0, done.stderr)
    done = run("evaluate", graph, "--chip", "h100", "--executor", "megatron", "-q", "--device-num", "8", "--hybrid",
               "tp=2,pp=2,sp=1,mbs=1", "--recompute", "layernorm+mla_up_proj", "--bundle", bundle)
    need(done.returncode == 0, done.stderr)
    with open(os.path.join(bundle, "megatron.sh"), encoding="utf-8") as f:
        text = f.read()
    with open(config, encoding="utf-8") as f:
        need(("mla_up_proj" in text) == ("kv_lora_rank" in json.load(f)), text)
    demanded, lines = network_words(os.path.join(bundle, "megatron.sh"))
    need(demanded or lines == network_words(script)[1], f"read of the graph: {lines}")
    need(set(lines) >= {"\t--num-layers 4", "\t--hidden-size 128", "\t--seq-length 256"}, f"{lines}")


def check_network(folder, config, words, lacks):
    """Arguments of a configuration: read back, they are as many parameters."""
    path, bundle = os.path.join(folder, "config.json"), os.path.join(folder, "network")
    shutil.rmtree(bundle, ignore_errors=True)
    with open(path, "w", encoding="utf-8") as f:
        all_keys = {**CONFIG, "num_hidden_layers": 4, **config}
        json.dump({k: v for k, v in all_keys.items() if v is not None}, f)
    done = run("evaluate", path, "--sequence", "256", "--batch", "16", "--chip", "h100", "--executor", "megatron", "-q",
               "--device-num", "8", "--hybrid", "tp=2,pp=2,sp=1,mbs=1", "--bundle", bundle)
    need(done.returncode == 0, done.stderr)
    script = os.path.join(bundle, "megatron.sh")
    with open(script, encoding="utf-8") as f:
        text = f.read()
    need(("MODEL_ARGS" in text) == (words is None), text)
    if words is None:
        check_graph(folder, path, script)
        need(network_words(os.path.join(folder, "read", "megatron.sh"))[0], "a graph tells what no argument says")
        return
    given, _ = rules.run_script(bundle, "megatron.sh", {})
    given = " ".join(given)
    for word in words.split(" --"):
        need("--" + word.removeprefix("--") in given, f"no {word} in {given}")
    for word in lacks.split():
        need(word not in given, f"{word} in {given}")
    with open(os.path.join(bundle, "plan.json"), encoding="utf-8") as f:
        plan = json.load(f)
    said = re.search("a network of ([0-9]+) parameter", run("check", script).stdout)
    # biases that choose experts are no parameters of a launch
    more = 3 * config["n_routed_experts"] if "topk_method" in config else 0
    same("parameters", int(said[1]) + more, plan["graph"]["parameters"])
    check_graph(folder, path, script)
    if shutil.which("shellcheck"):
        found = subprocess.run(["shellcheck", script], capture_output=True, text=True)
        need(found.returncode == 0, found.stdout)


def main():
    print(f"AP_SEED={SEED} AP_CASES={CASES}")
    r, found, failed = random.Random(SEED), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            try:
                check_network(folder, *network)
            except Refused as e:
                failed += 1
                print(f"{network[0]}\n  {e}")
        for i in range(CASES):
            try:
                what = "no plan"
                for _ in range(20):
                    what = check_decided(r, folder) if i % 5 == 4 else check(r, folder)
                    found[what] += 1
                    if what != "no plan":
                        break
                need(what != "no plan", "20 draws, and none has a plan")
            except Refused as e:
                failed += 1
                print(e)
    print(", ".join(f"{n} {what}" for what, n in sorted(found.items())), f"{failed} failed")
    sys.exit(failed > 0)


main()
