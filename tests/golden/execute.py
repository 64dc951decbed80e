# SPDX-License-Identifier: Apache-2.0
"""Usage: execute.py PROGRAM SOURCE_ROOT

Plans of small models, carried out by docs/execute/execute_plan.py, compute what one rank computes; plans
with faults do not.
"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
PROGRAM, ROOT = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "docs", "execute"))
import numpy as np  # noqa: E402

import eighths  # noqa: E402
import execute_plan  # noqa: E402
from execute_graphs import SLOW_CHIP, cnn, depthwise, look, mlp, views  # noqa: E402

GPT = ["gpt3", "--batch", "12", "--layers", "2", "--hidden", "12", "--heads", "6", "--sequence", "4",
       "--vocabulary", "24"]
MODELS = {
    "mix": ["multiple_mix", "--batch", "12"],
    "gpt": [*GPT, "--attention", "small", "--dtype", "float32"],
    "flash": [*GPT, "--attention", "flash", "--dtype", "float16"],
    "odd": [*GPT[:9], "--sequence", "4", "--vocabulary", "23", "--attention", "flash", "--dtype", "float16"],
    "deep": [*GPT[:3], "--layers", "5", *GPT[5:], "--attention", "flash", "--dtype", "float16"],
    "llama": ["llama", "--batch", "8", "--layers", "2", "--hidden", "16", "--heads", "8", "--kv-heads", "4",
              "--inner", "16", "--sequence", "4", "--vocabulary", "24", "--dtype", "float32"],
    "expert": ["mixtral", "--batch", "12", "--layers", "1", "--hidden", "24", "--heads", "6",
               "--kv-heads", "3", "--inner", "12", "--sequence", "4", "--vocabulary", "24",
               "--experts", "4", "--active", "2", "--capacity", "2", "--attention", "flash",
               "--dtype", "float32"],
    "places": ["mixtral", "--batch", "8", "--layers", "1", "--hidden", "16", "--heads", "4",
               "--kv-heads", "4", "--inner", "32", "--sequence", "16", "--vocabulary", "32",
               "--experts", "4", "--active", "2", "--capacity", "1.5", "--kernels", "fused",
               "--dtype", "float32"],
}
DECODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 24,
           "intermediate_size": 24, "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 8}
ENCODER = {"model_type": "bert", "architectures": ["BertForPreTraining"], "hidden_size": 16, "num_hidden_layers": 1,
           "num_attention_heads": 4, "intermediate_size": 24, "vocab_size": 24, "max_position_embeddings": 8,
           "hidden_act": "gelu"}
LATENT = {**DECODER, "model_type": "deepseek_v3", "q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2,
          "v_head_dim": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 8,
          "first_k_dense_replace": 1, "num_hidden_layers": 2, "n_group": 2, "topk_group": 1, "num_nextn_predict_layers": 2}
CONFIGS = {  # configurations of Hugging Face, and options of import
    "pair": ({**DECODER, "model_type": "phi3"}, []),
    "sums": ({**DECODER, "model_type": "llama"}, ["--loss", "vocabulary-parallel"]),
    "class": ({**DECODER, "model_type": "llama"}, ["--loss", "fused"]),
    "shares": (ENCODER, ["--loss", "fused"]),
    "masked": (ENCODER, ["--masked-positions", "2", "--loss", "vocabulary-parallel"]),
    "further": (LATENT, ["--mtp", "2", "--loss", "vocabulary-parallel"]),
    # TopKRouter, and look-ups there and back, as MindSpore has them.
    "rows": ({**DECODER, "model_type": "mixtral", "num_hidden_layers": 1, "num_local_experts": 4,
              "num_experts_per_tok": 2, "hidden_act": "silu"}, ["--executor", "mindspore"]),
    "units": ({**DECODER, "model_type": "gpt_oss", "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 8,
               "head_dim": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 2}, []),
}
# Extents that are multiples of 16, so that products run in 8 bits.
SIXTEENS = {**DECODER, "num_key_value_heads": 4, "intermediate_size": 32}
CONFIGS |= {
    "eighths": ({**SIXTEENS, "model_type": "llama"}, ["--dtype", "bfloat16"]),
    "experts8": ({**SIXTEENS, "model_type": "qwen2_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                  "shared_expert_intermediate_size": 32, "decoder_sparse_step": 1, "norm_topk_prob": True},
                 ["--dtype", "bfloat16"]),
}
GRAPHS = {
    "mlp": mlp(),
    "mlp_tied": mlp(tied=True),
    # Partial sums of fc1 are dealt along its rows, those of fc2 are not.
    "mlp_dealt": mlp({"fc1": ([[2, 2], [1, 2]], [[4, 1]]), "fc2": ([[1, 4], [4, 1]], None)}),
    "look": look(),
    "views": views(),
    "cnn": cnn(),
    "cnn_halo": cnn({"conv1": (2, 2), "conv2": (2, 1), "conv3": (3, 1)}),
    "cnn_rows": cnn({"conv1": (4, 1), "conv2": (1, 2)}),
    "depthwise": depthwise(),
    "depthwise_rows": depthwise((3, 2)),
}
GENERIC = ["--executor", "generic"]
DEAL = ["--enable-parallel-optimizer", "--parallel-optimizer-threshold", "0"]
PIPE = ["--pipeline-stages", "2", "--micro-batches", "3"]
E4M3, HYBRID = ["--fp8-format", "e4m3", *GENERIC], ["--fp8-format", "hybrid", *GENERIC]
CASES_8 = [  # with products in 8 bits
    ("eighths", 4, ["--hybrid", "dp=2,tp=2,sp=1,mbs=2", *HYBRID, "--fp8-recipe", "tensorwise"]),
    ("eighths", 4, ["--hybrid", "dp=2,tp=2,mbs=2", *E4M3, "--fp8-recipe", "delayed"]),
    ("eighths", 4, ["--hybrid", "tp=2,cp=2,sp=1,mbs=4", *HYBRID, "--fp8-recipe", "mxfp8"]),
    ("eighths", 4, ["--hybrid", "dp=4,mbs=1", *DEAL, "--optimizer-level", "level3", "--fp8-param-gather", *HYBRID,
                    "--fp8-recipe", "blockwise"]),
    ("eighths", 4, ["--hybrid", "dp=2,pp=2,mbn=2", *DEAL, "--fp8-param-gather", *E4M3, "--fp8-recipe", "tensorwise"]),
    ("eighths", 4, ["--hybrid", "tp=2,pp=2,sp=1,mbn=2", "--recompute", "full", *HYBRID, "--fp8-recipe", "blockwise"]),
    ("experts8", 4, ["--hybrid", "dp=4,ep=4,mbs=1", *HYBRID, "--fp8-recipe", "tensorwise"]),
    ("experts8", 4, ["--hybrid", "dp=2,tp=2,ep=2,sp=1,mbs=2", *HYBRID, "--fp8-recipe", "mxfp8"]),
]
CASES = [  # graph, devices, options
    ("mix", 8, []), ("mix", 3, [*GENERIC, *DEAL]),
    ("mlp", 2, []), ("mlp", 3, GENERIC), ("mlp", 12, []), ("mlp", 12, GENERIC),
    ("mlp", 6, ["--micro-batches", "2", "--no-enable-alltoall"]),
    ("mlp_tied", 4, GENERIC), ("mlp_tied", 12, []), ("mlp_tied", 8, [*PIPE]),
    ("mlp", 12, [*DEAL]), ("mlp", 12, [*DEAL, "--optimizer-weight-shard-size", "2"]),
    ("mlp", 8, [*DEAL, *GENERIC, "--optimizer-weight-shard-size", "2"]),
    ("mlp", 6, [*DEAL, "--optimizer-level", "level2", "--micro-batches", "4"]),
    ("mlp", 6, [*DEAL, "--optimizer-level", "level3", "--micro-batches", "2"]),
    ("mlp", 8, [*DEAL, *GENERIC, "--optimizer-level", "level3", *PIPE]),
    ("mlp", 4, ["--hybrid", "dp=4,mbn=2", *DEAL, "--executor", "torchtitan", "--optimizer-level", "level2"]),
    ("mlp", 4, ["--hybrid", "dp=2,pp=2,mbn=3", *DEAL, "--executor", "torchtitan", "--optimizer-level", "level2"]),
    ("mlp", 4, ["--hybrid", "dp=2,pp=2,mbn=3", *DEAL, "--executor", "torchtitan", "--optimizer-level", "level3"]),
    ("mlp_dealt", 8, []), ("mlp_dealt", 8, GENERIC), ("mlp_dealt", 4, DEAL),
    ("gpt", 2, ["--full-batch"]), ("gpt", 12, GENERIC), ("gpt", 6, ["--hybrid", "dp=2,tp=3"]),
    ("gpt", 12, [*PIPE]), ("gpt", 4, [*PIPE, *GENERIC, *DEAL, "--optimizer-level", "level2"]),
    ("gpt", 4, ["--executor", "mindspore-semi-auto"]),
    ("gpt", 8, [*GENERIC, "--hybrid", "dp=2,tp=2,pp=2", "--micro-batches", "3",
                "--recompute", "full"]),
    ("gpt", 3, ["--executor", "mindspore-sharding-propagation"]),
    ("flash", 12, []), ("flash", 3, GENERIC), ("flash", 4, ["--dataset-strategy", "[[2,1],[2,1],[2,1]]"]),
    ("flash", 12, ["--hybrid", "dp=2,tp=3,sp=1,pp=2,mbn=3", "--recompute", "full", *GENERIC]),
    ("flash", 4, [*PIPE, "--pipeline-segments", "2", "--pipeline-interleave"]),
    ("flash", 2, [*PIPE, "--pipeline-scheduler", "zero_bubble_v", *DEAL]),
    ("expert", 12, []), ("expert", 8, GENERIC), ("expert", 6, [*PIPE, *DEAL]),
    ("expert", 4, ["--hybrid", "dp=4,ep=4"]),
    # The sequence is cut, but not MindSpore's OneHot of chosen experts.
    ("expert", 4, ["--hybrid", "dp=2,cp=2,mbs=1"]), ("expert", 4, ["--hybrid", "tp=2,cp=2,sp=1,mbs=1"]),
    ("expert", 4, ["--hybrid", "dp=2,cp=2,ep=4,mbs=3", *GENERIC]), ("expert", 4, ["--hybrid", "tp=2,cp=2,sp=1,mbs=2", *GENERIC]),
    # stages between layers, five of them: even but for one, segments of given lengths, none at an end
    ("deep", 8, ["--hybrid", "dp=2,tp=2,sp=1,pp=2,mbn=3", *GENERIC]),
    ("deep", 4, ["--hybrid", "dp=2,pp=2,vpp=2,mbn=3,layers=1,2,1,1"]),
    ("deep", 3, ["--hybrid", "layers=0,3,2,pp=3,mbn=3", *GENERIC, *DEAL]),
    # stages of unequal numbers of devices: by degrees, cut freely, with segments, in a V, with weights sent and dealt
    ("deep", 8, ["--hybrid", "tp=2,mbn=3", "--stage-devices", "2,2,4", *GENERIC]),
    ("deep", 7, ["--hybrid", "mbn=3", "--stage-devices", "2,1,4", *GENERIC, *DEAL]),
    ("flash", 6, ["--hybrid", "tp=2,sp=1,mbn=3", "--stage-devices", "4,2", *GENERIC, "--recompute", "full"]),
    ("deep", 12, ["--stage-devices", "2,4,6", "--micro-batches", "3", *GENERIC]),
    ("gpt", 9, ["--stage-devices", "1,6,2", "--micro-batches", "3", *GENERIC, *DEAL, "--optimizer-level", "level2"]),
    ("deep", 6, ["--stage-devices", "2,4", "--micro-batches", "3", "--pipeline-scheduler", "zero_bubble_v", *GENERIC]),
    ("deep", 6, ["--hybrid", "vpp=2,mbn=3,layers=2,1,1,1", "--stage-devices", "2,4", "--pipeline-interleave", *GENERIC]),
    ("mlp_tied", 6, ["--stage-devices", "4,2", "--micro-batches", "3", *GENERIC]),
    ("expert", 8, ["--stage-devices", "6,2", "--micro-batches", "2", *GENERIC]),
    ("deep", 4, ["--hybrid", "dp=2,pp=2,vpp=2,mbn=3,layers=0,3,2,0", *GENERIC]),
    ("deep", 4, ["--hybrid", "tp=2,pp=2,offset=1,0,mbn=4", "--recompute", "full"]),
    # a V of 0, 3, 1 and 1 layers, of which some recompute
    ("deep", 4, ["--hybrid", "dp=2,pp=2,vpp=2,mbn=3,layers=0,3,1,1", "--pipeline-scheduler", "zero_bubble_v",
                 "--recompute", "full:0,2/1,0", *GENERIC, *DEAL, "--optimizer-level", "level2"]),
    # of DeepSpeed: heads are exchanged, parameters are dealt in groups
    ("deep", 4, ["--hybrid", "dp=2,cp=2,mbs=3", "--executor", "deepspeed", *DEAL, "--optimizer-level", "level2"]),
    ("deep", 8, ["--hybrid", "dp=4,tp=2,mbn=1", "--executor", "deepspeed", *DEAL, "--optimizer-level", "level3",
                 "--optimizer-weight-shard-size", "2"]),
    # Of 23 words, 12 columns and the like, dealt to 8, 4 and 2 ranks: padded rows, flat arrays, rows or nothing.
    *(("odd", 4, ["--hybrid", "dp=4,mbn=3", *DEAL, "--executor", "torchtitan", "--optimizer-level", level])
      for level in ("level2", "level3")),
    ("odd", 8, ["--hybrid", "dp=4,tp=2,mbn=3", *DEAL, "--executor", "torchtitan", "--optimizer-level", "level3"]),
    ("odd", 4, ["--hybrid", "dp=2,pp=2,mbn=3", *DEAL, "--executor", "torchtitan", "--optimizer-level", "level3"]),
    *(("odd", 8, ["--hybrid", "dp=4,tp=2,sp=1,mbn=3", *DEAL, "--executor", "megatron", "--optimizer-level", level])
      for level in ("level1", "level2", "level3")),
    ("odd", 8, ["--hybrid", "dp=4,pp=2,mbn=3", *DEAL, "--executor", "megatron", "--optimizer-weight-shard-size", "2"]),
    ("odd", 4, ["--hybrid", "dp=4,mbn=3", *DEAL, "--executor", "deepspeed", "--optimizer-level", "level3"]),
    ("odd", 8, [*DEAL, *GENERIC, "--optimizer-level", "level2", "--micro-batches", "3"]),
    ("odd", 8, ["--hybrid", "dp=4,tp=2,mbn=3", *DEAL, "--executor", "mindformers", "--optimizer-level", "level3"]),
    # Keys and values go round.
    ("flash", 4, ["--hybrid", "dp=2,cp=2,mbs=1,cp_algo=ring", *GENERIC]),
    ("flash", 8, ["--hybrid", "dp=2,tp=2,cp=2,sp=1,mbs=3,cp_algo=ring", *GENERIC, "--recompute", "full"]),
    ("expert", 4, ["--hybrid", "dp=1,cp=4,mbs=2,cp_algo=ring", *GENERIC, "--recompute", "selective"]),
    ("deep", 8, ["--hybrid", "dp=2,cp=2,pp=2,mbn=3,cp_algo=ring", *GENERIC]),
    # Heads are exchanged for the sequence.
    ("flash", 4, ["--hybrid", "dp=2,cp=2,mbs=1,cp_algo=all-to-all", *GENERIC]),
    ("flash", 12, ["--hybrid", "dp=2,tp=3,cp=2,mbs=3,cp_algo=a2a", *GENERIC, "--recompute", "full"]),
    ("expert", 3, ["--hybrid", "cp=1,tp=3,cp_algo=ulysses", *GENERIC]),
    ("deep", 8, ["--hybrid", "dp=2,cp=2,pp=2,mbn=3,cp_algo=all-to-all", *GENERIC, "--recompute", "selective"]),
    # What is sent is dealt to the tp ranks, and gathered behind.
    ("gpt", 4, ["--hybrid", "tp=2,pp=2,mbn=3,pp_scatter=1", *GENERIC]),
    ("deep", 8, ["--hybrid", "dp=2,tp=2,pp=2,vpp=2,mbn=3,pp_scatter=1,layers=1,2,1,1", *GENERIC, "--recompute", "full"]),
    # One gather of samples and sequence, keys gathered before queries share them, and both.
    ("llama", 4, ["--hybrid", "tp=4,sp=1,mbs=2", *GENERIC]), ("llama", 4, ["--hybrid", "tp=4,sp=1,mbs=4", *GENERIC]),
    ("llama", 4, ["--hybrid", "dp=1,tp=2,cp=2,mbs=1", *GENERIC]),
    # Several samples a device whose tokens are dealt along the sequence: rows stand token by token.
    ("flash", 4, ["--hybrid", "dp=2,tp=2,sp=1,mbs=3", *GENERIC]), ("gpt", 2, ["--hybrid", "tp=2,sp=1,mbs=3", *GENERIC]),
    ("llama", 4, ["--hybrid", "dp=1,tp=2,cp=2,sp=1,mbs=4", *GENERIC]),
    ("flash", 8, ["--hybrid", "dp=2,tp=2,cp=2,sp=1,mbs=3", *GENERIC]), ("llama", 4, ["--hybrid", "dp=2,cp=2,mbs=2", *GENERIC]),
    ("llama", 8, ["--hybrid", "dp=2,tp=2,cp=2,sp=1,mbs=1", *GENERIC]),
    ("llama", 4, ["--hybrid", "dp=1,tp=1,cp=4,mbs=1", *DEAL, *GENERIC]),
    ("llama", 4, ["--hybrid", "dp=1,tp=2,cp=2,sp=1,mbs=1"]), ("gpt", 4, ["--hybrid", "dp=1,tp=2,cp=2,sp=1,mbs=1"]),
    ("flash", 4, ["--hybrid", "dp=1,tp=2,cp=2,sp=1,mbs=1", *GENERIC]),
    # Tokens go to their experts on the ranks of dp, of dp beside tp, of tp, cp and dp, of dp and cp.
    ("places", 8, ["--hybrid", "dp=8,ep=4,mbs=1", *GENERIC]),
    ("places", 8, ["--hybrid", "dp=4,tp=2,ep=4,sp=1,mbs=1", *GENERIC]),
    ("places", 8, ["--hybrid", "dp=2,tp=2,cp=2,ep=4,etp=1,sp=1,mbs=2", *GENERIC]),
    ("places", 8, ["--hybrid", "dp=4,cp=2,ep=4,mbs=2", *DEAL, *GENERIC]), ("places", 4, []),
    ("rows", 4, []), ("rows", 4, ["--hybrid", "dp=4,ep=4"]), ("rows", 8, ["--hybrid", "dp=4,tp=2,ep=2,mbs=1"]),
    ("rows", 4, ["--hybrid", "dp=2,tp=2,ep=2", *GENERIC]),
    # A gate and what it weights are columns of one product.
    ("pair", 4, ["--hybrid", "dp=2,tp=2,sp=1,mbs=2", *GENERIC]), ("pair", 4, ["--hybrid", "dp=1,tp=2,cp=2,mbs=1"]),
    # So they are of experts, on 2, 4 and 8 ranks, and beside experts of other ranks.
    *(("units", n, ["--hybrid", f"tp={n}", *GENERIC]) for n in (2, 4, 8)), ("units", 8, ["--hybrid", "dp=4,tp=2,ep=2,mbs=1", *GENERIC]),
    # Losses of a cut vocabulary, of a whole one, of shares of classes.
    ("sums", 4, ["--hybrid", "dp=2,tp=2,sp=1,mbs=2", *GENERIC]), ("sums", 8, ["--hybrid", "tp=2,dp=4"]),
    ("class", 4, ["--hybrid", "dp=2,tp=2,mbs=2", *GENERIC]), ("class", 4, []),
    ("shares", 4, ["--hybrid", "dp=2,tp=2", *GENERIC]), ("shares", 4, []),
    # Words at positions of each sample are predicted.
    ("masked", 4, ["--hybrid", "dp=2,tp=2", *GENERIC]), ("masked", 4, []),
    # Two layers behind the others, whose words and head are those of the first and last stage.
    ("further", 2, ["--hybrid", "tp=2,mbs=4", *GENERIC]), ("further", 4, ["--hybrid", "dp=2,pp=2,mbn=2", *GENERIC]),
    ("further", 4, ["--hybrid", "dp=4,ep=2"]),
    ("views", 4, GENERIC), ("views", 4, []),
    ("cnn", 12, []), ("cnn", 6, GENERIC), ("cnn", 3, ["--micro-batches", "2", *DEAL]),
    ("cnn_halo", 12, []), ("cnn_halo", 12, GENERIC), ("cnn_rows", 4, ["--micro-batches", "2"]),
    ("cnn_rows", 8, GENERIC),
    # Windows of each channel, and of groups.
    ("depthwise", 8, []), ("depthwise", 4, GENERIC), ("depthwise_rows", 12, []), ("depthwise_rows", 6, GENERIC),
]


class Execute(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.dir, cls.truths = cls.temporary.name, {}
        with open(cls.path("chip"), "w", encoding="utf-8") as file:
            json.dump(SLOW_CHIP, file)
        for name, args in MODELS.items():
            text = subprocess.run([PROGRAM, "model", *args, "--model-name", name], check=True, capture_output=True)
            GRAPHS[name] = json.loads(text.stdout)
        for name, (config, args) in CONFIGS.items():
            with open(cls.path("config"), "w", encoding="utf-8") as file:
                json.dump(config, file)
            text = subprocess.run([PROGRAM, "import", cls.path("config"), "-q", "--batch", "8", "--sequence", "4",
                                   *(() if "--dtype" in args else ("--dtype", "float32")), *args], check=True,
                                  capture_output=True)
            GRAPHS[name] = json.loads(text.stdout)
        for name, graph in GRAPHS.items():
            with open(cls.path(name), "w", encoding="utf-8") as file:
                json.dump(graph, file)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name + ".json")

    def plan(self, name, devices, options):
        subprocess.run([PROGRAM, "search", self.path(name), "--device-num", str(devices), "--chip",
                        self.path("chip"), "-q", "--no-hccl-rules", "--plan-out", self.path("plan"),
                        *([] if "--stage-devices" in options else ["-o", os.devnull]), *options], check=True)
        with open(self.path("plan"), encoding="utf-8") as file:
            return json.load(file)

    def execute(self, name, plan):
        """One rank computes the same for all plans with as many micro-batches and operators."""
        key = (name, plan["stages"][0]["micro_batches"], plan["settings"].get("fp8_recipe"),
               *((o["name"], o.get("sequence_first"), str(o.get("in_8_bits"))) for o in plan["operators"]))
        said, self.truths[key] = execute_plan.execute(GRAPHS[name], plan, truth=self.truths.get(key))
        return said

    def test_equals_one_rank(self):
        kinds = set()
        for name, devices, options in CASES:
            with self.subTest(name, devices=devices, options=options):
                plan = self.plan(name, devices, options)
                self.execute(name, plan)
                kinds |= {(c["phase"], c["kind"]) for o in plan["operators"]
                          for c in o["communications"]}
                kinds |= {s["kind"] for r in plan["redistributions"] for s in r["steps"]}
        self.assertEqual({str(k) for k in kinds}, {str(k) for k in {
            "AllGather", "AlltoAll", "Slice", ("forward", "AllReduce"), ("forward", "AllGather"),
            ("forward", "ReduceScatter"), ("forward", "NeighborExchange"), ("forward", "Send"),
            ("forward", "AlltoAll"), ("backward", "AlltoAll"), ("recompute", "AlltoAll"),
            ("forward", "Ring"), ("backward", "Ring"), ("recompute", "Ring"),
            ("backward", "AllReduce"), ("backward", "AllGather"), ("backward", "NeighborExchange"),
            ("backward", "Send"), ("gradient", "AllReduce"), ("gradient", "ReduceScatter"),
            ("optimizer", "AllGather"), ("recompute", "AllReduce"), ("recompute", "AllGather"),
            ("recompute", "ReduceScatter")}})

    def test_all_groups_of_a_gradient(self):
        """With generic the owner of the table has nothing to exchange, the other user has."""
        for options, user in ([], "look/Gather"), (GENERIC, "head/MatMul"):
            plan = self.plan("look", 8, options)
            self.execute("look", plan)
            table = plan["parameters"][0]
            self.assertEqual(table["gradient_group"], {"axes": [[4, 2]], "ranks": [0, 4]})
            self.assertEqual(table["gradient_groups"], [{
                "operator": f"Default/{user}-op0", "operand": options == GENERIC,
                "kind": "AllReduce", "axes": [[4, 2]], "ranks": [0, 4]}])

    def test_parts_of_rows_that_do_not_divide(self):
        """23 words of 12 numbers on 4 ranks: 6 rows, 69 numbers, or all of them. Parts that are no whole are noticed."""
        for executor, level, part in (("torchtitan", "level3", 72), ("megatron", "level1", 69), ("mindformers", "level3", None)):
            with self.subTest(executor):
                plan = self.plan("odd", 4, ["--hybrid", "dp=4,mbn=3", *DEAL, "--executor", executor, "--optimizer-level", level])
                words = next(p for p in plan["parameters"] if p["tensor_shape"] == [23, 12])
                self.assertEqual((words["optimizer_shards"], words.get("optimizer_part")), (4 if part else 1, part))
                sent = {(c["phase"], c["kind"], c["bytes"]) for o in plan["operators"] for c in o["communications"]
                        if words["name"] in (o["inputs"][c["operand"]] if "operand" in c else "",)}
                # gradients as float32, the weight in its 16 bits: once, or for each use
                whole = 4 * part if part else 23 * 12
                self.assertIn(("gradient", "ReduceScatter" if part else "AllReduce", 4 * whole), sent)
                self.assertEqual(("optimizer", "AllGather", 2 * whole) in sent, executor == "megatron")
                self.assertEqual(("forward", "AllGather", 2 * whole) in sent, executor == "torchtitan")
                n = self.every("odd", plan, parameters, other_length)
                self.assertEqual(n > 0, part is not None)

    def test_tied_head_goes_once(self):
        """The last stage adds the gradient of the words up, exchanges it over dp and sends it back."""
        for recompute in "none", "full":
            plan = self.plan("gpt", 8, [*GENERIC, "--hybrid", "dp=2,tp=2,pp=2", "--micro-batches",
                                        "3", "--recompute", recompute])
            head = next(o for o in plan["operators"] if "GPTHead/MatMul" in o["name"])
            table = head["inputs"][1]
            self.assertTrue(table.startswith("Receive/"))
            said = [(c["phase"], c["kind"], c["axes"], c["bytes"]) for c in head["communications"]
                    if c.get("operand") == 1]
            elements = head["in_slice"][1][0] * head["in_slice"][1][1]
            self.assertEqual(said, [("gradient", "AllReduce", [[2, 2]], 4 * elements)])
            self.assertEqual([b["parameters"] for b in plan["fusion"] if table in b["parameters"]],
                             [[table]])

    def test_pair_of_gate_is_cut(self):
        """Each of two ranks has the columns of half of the units, and nothing is gathered before they part."""
        plan = self.plan("pair", 2, [*GENERIC, "--hybrid", "tp=2"])
        pair = [o for o in plan["operators"] if "gate_up_proj-Linear/MatMul" in o["name"]]
        self.assertEqual([o["in_slice"][1] for o in pair], [[24, 16]] * 2)
        self.assertFalse([r for r in plan["redistributions"] if "pair" in r["tensor"] or "gate" in r["tensor"]])

    def test_units_of_experts_are_cut(self):
        """The weight is one tensor [experts, in, 2 * units]; a rank has both columns of its share of the units."""
        weight = next(p for p in GRAPHS["units"]["parameters"] if p["name"].endswith("experts.gate_up_proj"))
        self.assertEqual(weight["shape"], [4, 16, 48])
        for tp in 2, 4, 8:
            plan = self.plan("units", tp, [*GENERIC, "--hybrid", f"tp={tp}"])
            pair = [o for o in plan["operators"] if "gate_up_proj-Linear/BatchMatMul" in o["name"]]
            self.assertEqual([o["in_slice"][1] for o in pair], [[4, 16, 48 // tp]])
            self.assertFalse([r for r in plan["redistributions"] if "pair" in r["tensor"] or "gate" in r["tensor"]])

    def test_8_bits_equal_one_rank(self):
        """Weights of layers are multiplied in 8 bits, all else is not; one rank that rounds so computes the same."""
        sent, beside = set(), 0
        for name, devices, options in CASES_8:
            with self.subTest(name, devices=devices, options=options):
                plan = self.plan(name, devices, options)
                self.execute(name, plan)
                weights = {p["name"] for p in GRAPHS[name]["parameters"] if re.search("(proj|w[123]).weight$", p["name"])}
                gradient = "float8_e5m2" if "hybrid" in options else "float8_e4m3fn"
                for o in plan["operators"]:
                    said = o.get("in_8_bits")
                    self.assertEqual(said is not None, len(o["inputs"]) == 2 and "MatMul" in o["type"] and (
                        o["inputs"][1] in weights), o["name"])
                    if said:
                        beside += "keeps_copy" in said
                        self.assertEqual((said["operands"], said["gradient"]), ("float8_e4m3fn", gradient))
                    sent |= {(c["phase"], c["kind"], c["sent_as"]) for c in o["communications"] if "sent_as" in c}
                sent |= {(s["kind"], r["sent_as"]) for r in plan["redistributions"] if "sent_as" in r for s in r["steps"]}
        e4m3, e5m2 = "float8_e4m3fn", "float8_e5m2"
        self.assertEqual(sent, {("backward", "AllGather", e5m2), ("forward", "AllGather", e4m3), ("AllGather", e4m3),
                                ("recompute", "AllGather", e4m3), ("optimizer", "AllGather", e4m3)})
        self.assertGreater(beside, 0)  # of what a router and a shared expert read

    def test_faults_in_8_bits_are_noticed(self):
        """What comes in 8 bits and is read otherwise; a sum of products that are not all rounded."""
        plan = self.plan("eighths", 4, CASES_8[0][2])
        self.execute("eighths", plan)
        noticed = 0
        for k, o in enumerate(plan["operators"]):
            comes = [r for r in plan["redistributions"] if "sent_as" in r and r["to"] == o["name"]]
            if "in_8_bits" not in o or not (comes or any("sent_as" in c for c in o["communications"])):
                continue
            other = copy.deepcopy(plan)
            del other["operators"][k]["in_8_bits"]
            self.refused("eighths", other, o["name"])
            noticed += 1
        self.assertGreater(noticed, 4)
        truth = execute_plan.execute(GRAPHS["eighths"], plan)[1]
        for change in {"gradient": "float8_e4m3fn"}, None:  # one rank rounds as the plan says
            other = copy.deepcopy(plan)
            product = next(o for o in other["operators"] if "in_8_bits" in o and "q_proj" in o["inputs"][1])
            product.update(in_8_bits={**product["in_8_bits"], **change}) if change else product.pop("in_8_bits")
            self.assertRaises(execute_plan.Fault, execute_plan.execute, GRAPHS["eighths"], other, truth=truth)

    def test_types_of_8_bits(self):
        """Halves go to even, the smallest number, the largest, and what is too large."""
        e4m3 = [(1.0625, 1), (1.1875, 1.25), (-1.07, -1.125), (17, 16), (19, 20), (447, 448), (1e9, 448), (-500, -448),
                (2 ** -9, 2 ** -9), (2 ** -10, 0), (3 * 2 ** -10, 2 ** -8), (0, 0), (0.3, 0.3125)]
        e5m2 = [(1.125, 1), (1.375, 1.5), (9, 8), (57344, 57344), (1e6, 57344), (2 ** -16, 2 ** -16), (2 ** -17, 0), (0.3, 0.3125)]
        for kind, pairs in ("float8_e4m3fn", e4m3), ("float8_e5m2", e5m2):
            x, y = np.array(pairs, float).T
            np.testing.assert_array_equal(eighths.rounded(x, kind), y)

    def test_scales(self):
        """The largest value of what a scale is of is kept, and all others to half of the last bit, or of the least."""
        draw = np.random.RandomState(3)
        x = draw.standard_normal((3, 40, 72)) * 10 ** draw.uniform(-3, 3, (3, 40, 1))
        for kind, unit, least in ("float8_e4m3fn", 2 ** -4, 2 ** -10 / 448), ("float8_e5m2", 2 ** -3, 2 ** -17 / 57344):
            for block, axis, tiles in (None, -1, False), (32, -1, False), (32, -2, False), (128, -1, True):
                y = eighths.copied(x, kind, block, axis, own=1, tiles=tiles)
                self.assertTrue((eighths.copied(y, kind, block, axis, own=1, tiles=tiles) == y).all())
                top = np.abs(x).max(axis=(1, 2), keepdims=True)
                if block == 32:
                    parts = [np.abs(p).max(axis=axis, keepdims=True) for p in np.split(x, range(32, x.shape[axis], 32), axis)]
                    top = np.concatenate([np.repeat(p, min(32, x.shape[axis] - 32 * i), axis) for i, p in enumerate(parts)], axis)
                spare = 1 if block is None else 2  # of a scale that is a power of two
                self.assertTrue((np.abs(y - x) <= np.maximum(unit * np.abs(x), spare * least * top)).all())
                if block is None:
                    np.testing.assert_allclose(np.abs(y).max(axis=(1, 2)), top.ravel(), rtol=1e-15)

    def test_scales_of_own_slices_differ_by_rounding(self):
        """Where each rank scales its slices by their own largest values, the sum of its products is another one, by no
        more than each operand is rounded by: u |x| or half of the least number, in the scale of the slice."""
        draw, u = np.random.RandomState(5), 2 ** -4
        for ranks in 2, 4, 8:
            a, b = draw.standard_normal((16, 64)), draw.standard_normal((64, 32))
            a[:, :8] *= 50  # so that scales differ
            exact, got, bound = a @ b, 0, 0
            for x, y in zip(np.split(a, ranks, 1), np.split(b, ranks, 0)):
                off = [np.maximum(u * np.abs(t), 2 ** -10 * np.abs(t).max() / 448) for t in (x, y)]
                got = got + np.matmul(*(eighths.copied(t, "float8_e4m3fn", None, -1) for t in (x, y)))
                bound = bound + off[0] @ np.abs(y) + np.abs(x) @ off[1] + off[0] @ off[1]
            together = eighths.copied(a, "float8_e4m3fn", None, -1) @ eighths.copied(b, "float8_e4m3fn", None, -1)
            self.assertTrue((np.abs(got - exact) <= bound).all())
            self.assertFalse((got == together).all())
            self.assertLess(np.abs(got - exact).max(), 0.2 * np.abs(exact).max())

    def test_three_sums_of_a_cut_vocabulary(self):
        """Of each row that a rank has: the maximum, the sum of exponentials, the logit of the class."""
        plan = self.plan("sums", 4, [*GENERIC, "--hybrid", "dp=2,tp=2"])
        said = [(c["phase"], c["kind"], c["reduce"], c["axes"], c["bytes"]) for o in plan["operators"]
                for c in o["communications"] if "CrossEntropyLoss" in o["name"] and "ReduceMean" not in o["name"]]
        rows = 8 // 2 * 4
        self.assertEqual(said, [("forward", "AllReduce", way, [[1, 2]], 4 * rows) for way in ("max", "sum", "sum")])
        self.assertFalse([r for r in plan["redistributions"] if "logits" in r["tensor"]])

    def test_losses_are_one(self):
        """However it is computed, the loss is the same, and so are the gradients, which one rank's are."""
        with open(self.path("config"), "w", encoding="utf-8") as file:
            json.dump(CONFIGS["sums"][0], file)
        said, constants = [], {"on_value.float32": 1, "off_value.float32": 0, "minus_one": -1}
        for way in "expanded", "fused", "kernel", "vocabulary-parallel":
            subprocess.run([PROGRAM, "import", self.path("config"), "-q", "--batch", "8", "--sequence", "4", "--dtype",
                            "float32", "--loss", way, "-o", self.path("way")], check=True)
            with open(self.path("way"), encoding="utf-8") as file:
                text = execute_plan.execute(json.load(file), self.plan("way", 2, GENERIC), values=constants)[0]
            said.append(text.split("loss ")[1].split(",")[0])
        self.assertEqual(len(set(said)), 1, said)

    def test_order_of_rows_changes_nothing(self):
        """Where rows stand token by token, the loss is what it is where they stand sample by sample."""
        for name, devices, cp in ("gpt", 2, 1), ("flash", 4, 2), ("llama", 4, 2):
            said = []
            for hybrid in f"tp=2,cp={cp},sp=1,mbs=", f"tp=2,cp={cp},sp=1,mbs=1", f"tp={devices // 2},dp=2":
                if hybrid[-1] == "=":
                    hybrid += "4" if name == "llama" else "3"
                plan = self.plan(name, devices, [*GENERIC, "--hybrid", hybrid])
                ordered = [o["sequence_first"] for o in plan["operators"] if "sequence_first" in o]
                self.assertEqual(bool(ordered), "mbs=3" in hybrid or "mbs=4" in hybrid, hybrid)
                said.append(self.execute(name, plan).split("loss ")[1].split(",")[0][:10])
            self.assertEqual(len(set(said)), 1, (name, said))

    def test_one_rank_differentiates(self):
        """Along a random direction the loss changes as its gradient says."""
        for name in ("mlp", "gpt", "flash", "expert", "cnn", "depthwise"):
            files = execute_plan.Files(GRAPHS[name], self.plan(name, 1, []))
            alone, slope, draw = files.run_alone(), 0.0, np.random.RandomState(7)
            turn = {}
            for (k, i), grads in alone.use_grads.items():
                tensor = files.alone[k].inputs[i]
                way = turn.setdefault(tensor, draw.standard_normal(grads[0].shape))
                slope += float((way * grads[0]).sum())
            losses = []
            for h in (1e-6, -1e-6):
                moved = copy.copy(files)
                moved.cache = {t: files.source(t) + h * way for t, way in turn.items()}
                losses.append(float(moved.run_alone().values["loss", 0][0]))
            self.assertAlmostEqual((losses[0] - losses[1]) / 2e-6 / slope, 1, delta=1e-5, msg=name)

    def refused(self, name, plan, fault):
        with self.subTest(name, fault=fault):
            self.assertRaises(execute_plan.Fault, self.execute, name, plan)

    def every(self, name, plan, where, change):
        """Makes each change alone that change() finds at the places of where()."""
        n = 0
        for place in where(plan):
            other = copy.deepcopy(plan)
            at = other
            for key in place:
                at = at[key]
            if change(at):
                self.refused(name, other, (place, change.__name__))
                n += 1
        return n

    def test_faults_are_noticed(self):
        plans = [("mlp", self.plan("mlp", 4, options)) for options in (
            ["--hybrid", "dp=2,tp=2"], [*GENERIC], [*DEAL, "--optimizer-weight-shard-size", "2"],
            [*GENERIC, *PIPE], [*PIPE], [*DEAL, *GENERIC, "--optimizer-level", "level3"])]
        plans += [("mlp_tied", self.plan("mlp_tied", 4, options)) for options in ([], GENERIC)]
        plans += [("mlp_dealt", self.plan("mlp_dealt", 4, options)) for options in ([], GENERIC)]
        plans += [("cnn_rows", self.plan("cnn_rows", 4, []))]
        made = dict.fromkeys(CHANGES, 0)
        for name, plan in plans:
            self.execute(name, plan)
            for where, change in CHANGES:
                made[where, change] += self.every(name, plan, where, change)
        for (where, change), n in made.items():
            self.assertGreater(n, 0, (where.__name__, change.__name__))


# ---- places, and what is changed there; a change that makes none gives False --------------------------

def communications(plan):
    for k, o in enumerate(plan["operators"]):
        for c in range(len(o["communications"])):
            yield "operators", k, "communications", c


def operators(plan):
    for k in range(len(plan["operators"])):
        yield "operators", k


def moves(plan):
    for k in range(len(plan["redistributions"])):
        yield "redistributions", k


def parameters(plan):
    for k, p in enumerate(plan["parameters"]):
        if p["trainable"]:
            yield "parameters", k


def slots(plan):
    for k, s in enumerate(plan["stages"]):
        if s.get("slots"):
            yield "stages", k, "slots"


def drop(c):
    """Instead of a communication, one that no phase runs. Recomputing changes no values."""
    used = c["phase"] != "recompute"
    c["phase"] = "recompute"
    return used


def other_group(c):
    if c["phase"] == "recompute" or c["kind"] == "Send":
        return False
    stride, size = c["axes"][-1]
    c["axes"][-1] = [2 if stride == 1 else 1, size]
    return True


def other_ranks(c):
    if c["phase"] == "recompute":
        return False
    c["ranks"][-1] += 1
    return True


def reduce_otherwise(c):
    if c["phase"] != "forward" or c["kind"] != "AllReduce":
        return False
    c["reduce"] = {"sum": "mean", "mean": "sum", "max": "min", "min": "max"}[c["reduce"]]
    return True


def other_stage(c):
    return c["kind"] == "Send" and bool(c.update(kind="AllReduce", axes=[[1, 2]]) is None)


def narrower_halo(c):
    if c["kind"] != "NeighborExchange" or c["phase"] != "forward":
        return False
    c["before"], c["after"] = c["after"], c["before"]
    return c["before"] != c["after"]


def whole_dimension(maps, dev_matrix):
    """The first dimension that is cut no longer is."""
    for m in maps:
        for d, a in enumerate(m):
            if isinstance(a, list) or (a != -1 and dev_matrix[len(dev_matrix) - 1 - a] > 1):
                m[d] = -1
                return True
    return False


def whole_operand(o):
    return whole_dimension(o["in_tensor_map"], o["dev_matrix"])


def whole_result(o):
    return whole_dimension(o["out_tensor_map"], o["dev_matrix"])


def whole_parameter(p):
    return whole_dimension([p["tensor_map"]], p["dev_matrix"])


def swapped_axes(o):
    """Axes of a result that cut two dimensions in as many parts are exchanged."""
    size = lambda a: o["dev_matrix"][len(o["dev_matrix"]) - 1 - a]
    for m in o["out_tensor_map"]:
        cut = [d for d, a in enumerate(m) if isinstance(a, int) and a != -1 and size(a) > 1]
        if len(cut) == 2 and size(m[cut[0]]) == size(m[cut[1]]):
            m[cut[0]], m[cut[1]] = m[cut[1]], m[cut[0]]
            return True
    return False


def fewer_steps(r):
    r["steps"].pop()
    return True


def fewer_back_steps(r):
    return bool(r.get("back_steps")) and r["back_steps"].pop() is not None


def steps_in_other_order(r):
    before = list(r["steps"])
    r["steps"].reverse()
    return len(before) > 1 and before[0]["kind"] != before[-1]["kind"]


def step_over_others(r):
    step = r["steps"][0]
    step["axis"] = [2 if step["axis"][0] == 1 else 1, step["axis"][1]]
    return True


def no_move(r):
    """To an operand that is none: the tensor comes as it is."""
    r["operand"] = 99
    return True


def no_groups(p):
    return bool(p["gradient_groups"]) and p["gradient_groups"].clear() is None


def no_sums(p):
    """Gradients that another use's exchange has go nowhere."""
    return p.pop("gradient_sums", None) is not None


def other_part(p):
    if not p["optimizer_group"]:
        return False
    stride, size = p["optimizer_group"]["axes"][-1]
    p["optimizer_group"]["axes"][-1] = [2 if stride == 1 else 1, size]
    return True


def other_length(p):
    if "optimizer_part" not in p:
        return False
    p["optimizer_part"] //= 2
    return True


def backward_first(s):
    s.sort(key=lambda slot: slot["pass"])
    return True


CHANGES = [
    (communications, drop), (communications, other_group), (communications, other_ranks),
    (communications, reduce_otherwise), (communications, other_stage), (communications, narrower_halo),
    (operators, whole_operand), (operators, whole_result), (operators, swapped_axes),
    (moves, fewer_steps), (moves, fewer_back_steps), (moves, steps_in_other_order),
    (moves, step_over_others), (moves, no_move), (parameters, whole_parameter),
    (parameters, no_groups), (parameters, no_sums), (parameters, other_part), (slots, backward_first)]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
