# SPDX-License-Identifier: Apache-2.0
"""Usage: cut_layers.py PROGRAM SOURCE_ROOT

Where --hybrid puts the layers of networks: every operator of a layer is in the part that its number says, the
table of words in the first part, head and loss in the last; what is sent between stages is one tensor of
tokens a micro-batch. What cannot be is refused with what would do.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = sys.argv[1:3]
BATCH, TOKENS, HIDDEN = 48, 8, 24
SMALL = ["--batch", str(BATCH), "--hidden", str(HIDDEN), "--heads", "6", "--sequence", str(TOKENS),
         "--vocabulary", "48"]
MODELS = {  # family of its layers, arguments
    "gpt": ("network.backbone.blocks", ["gpt3", *SMALL, "--dropout", "0"]),
    "llama": ("model.layers", ["llama", *SMALL, "--kv-heads", "3", "--inner", "12"]),
    "mixtral": ("model.layers", ["mixtral", *SMALL, "--kv-heads", "3", "--inner", "12", "--experts", "4",
                                 "--active", "2", "--capacity", "2"]),
}
CASES = [  # model, layers, devices, hybrid, layers of each part: segments one after the other, in each the stages
    ("gpt", 8, 4, "pp=4", [2, 2, 2, 2]),
    ("llama", 8, 4, "pp=4", [2, 2, 2, 2]),
    ("mixtral", 4, 8, "pp=4,ep=2", [1, 1, 1, 1]),
    ("gpt", 12, 12, "tp=3,pp=4", [3, 3, 3, 3]),
    # what is left goes to the stages before the last
    ("gpt", 7, 4, "pp=4", [2, 2, 2, 1]),
    ("llama", 6, 4, "pp=4", [1, 2, 2, 1]),
    ("llama", 9, 4, "pp=4", [2, 2, 3, 2]),
    ("gpt", 5, 3, "pp=3", [2, 2, 1]),
    # segments
    ("gpt", 8, 4, "pp=2,dp=2,vpp=2", [2, 2, 2, 2]),
    ("llama", 12, 4, "pp=2,vpp=3,mbn=6", [2] * 6),
    ("llama", 9, 2, "pp=2,vpp=2,layers=3,2,2,2", [3, 2, 2, 2]),
    ("gpt", 7, 2, "layers=2,1,3,1,pp=2,vpp=2", [2, 1, 3, 1]),
    # as they are given, with no layer at an end, too
    ("gpt", 8, 4, "pp=4,layers=1,3,3,1", [1, 3, 3, 1]),
    ("llama", 8, 4, "pp=4,layers=0,4,4,0", [0, 4, 4, 0]),
    ("llama", 8, 4, "layers=0,4*2,0,pp=4", [0, 4, 4, 0]),
    ("gpt", 4, 2, "pp=2,vpp=3,layers=0,1*4,0", [0, 1, 1, 1, 1, 0]),
    ("gpt", 3, 4, "pp=4,num_layer_list=1,1,1,0", [1, 1, 1, 0]),
    # offsets, as MindFormers has them
    ("llama", 10, 4, "pp=4,offset=0,1,1,0", [2, 3, 3, 2]),
    ("llama", 8, 4, "offset=0,pp=4", [2, 2, 2, 2]),
    ("gpt", 9, 2, "pp=2,vpp=2,offset=1,0,-1,1", [3, 2, 1, 3]),
]
REFUSED = [  # model, layers, devices, hybrid, what is said
    ("gpt", 9, 4, "pp=2,vpp=2", "pp=2,vpp=2: the 9 layers network.backbone.blocks.N cannot be dealt evenly to 4 "
     "parts, of 2 stages x 2 segments; expected layers= with a number for each part, such as layers=2,2,3,2"),
    ("llama", 12, 4, "pp=4,vpp=2", "expected vpp=1, vpp=3, or layers= with a number for each part, such as "
     "layers=1,1,1,2,2,2,2,1"),
    ("gpt", 8, 4, "pp=4,layers=2,2,2", "layers=2,2,2: a list of 3; expected a number for each of 4 stages"),
    ("gpt", 8, 4, "pp=2,vpp=2,layers=4,4", "expected a number for each of 4 parts, of 2 stages x 2 segments: all "
     "stages of the first segment, then all of the next"),
    ("gpt", 8, 4, "pp=4,layers=2,2,2,3", "9 layers in all; the graph has 8, network.backbone.blocks.N"),
    ("gpt", 8, 4, "pp=4,layers=4,0,2,2", "0 layers in stage 1; expected one at least in all parts but"),
    ("gpt", 9, 4, "pp=4,offset=0", "2 in each part and these are 8 layers in all; the graph has 9"),
    ("gpt", 8, 4, "pp=4,offset=-3,1,1,1", "-1 layers in stage 0"),
    ("gpt", 8, 4, "pp=4,offset=0,0,0,0,layers=2,2,2,2", "layers and offset contradict each other"),
    ("gpt", 8, 4, "tp=3,layers=4,4,dp=1", "does not divide the 4 devices"),
    ("gpt", 8, 4, "dp=4,layers=8", "layers without a pipeline; pp above 1 is expected"),
    ("gpt", 8, 4, "pp=4,layers=2,x,2,2", "layers=x; cost, or a number for each stage"),
    ("gpt", 8, 4, "pp=4,layers=2,-2,2,2", "layers=-2; cost, or a number for each stage"),
    ("gpt", 8, 4, "pp=4,offset=,tp=1", "offset=; a number for each stage"),
    ("gpt", 8, 4, "pp=4,layers=2,2,2,2,", "layers=; cost, or a number for each stage"),
]


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def graph(self, model, layers):
        path = os.path.join(self.temporary.name, f"{model}{layers}.json")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                subprocess.run([PROGRAM, "model", *MODELS[model][1], "--layers", str(layers)], stdout=file,
                               check=True)
        return path

    def run_it(self, graph, devices, hybrid, *options):
        plan = os.path.join(self.temporary.name, "plan.json")
        if "mbn=" not in hybrid and "mbs=" not in hybrid:
            hybrid += ",mbn=4"
        done = subprocess.run([PROGRAM, "evaluate", graph, "--device-num", str(devices), "--chip", "a100-80",
                               "--executor", "generic", "--hybrid", hybrid, "--plan-out", plan, *options],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            return done, None
        with open(plan, encoding="utf-8") as file:
            return done, json.load(file)

    def check_parts(self, plan, family, counts):
        stages, parts = plan["pipeline"]["stages"], []
        part_of = [part for part, n in enumerate(counts) for _ in range(n)]
        for op in plan["operators"]:
            if op["type"] in ("Send", "Receive"):
                continue
            part = op["segment"] * stages + op["stage"]
            found = re.match(re.escape(family) + r"\.(\d+)(\.|$)", op["cell"])
            if found:
                self.assertEqual(part, part_of[int(found[1])], op["name"])
            parts.append((part, op["type"], op["name"], bool(found)))
        ends = [p for p in parts if not p[3]]
        self.assertEqual({p for p, kind, *_ in ends if kind == "Gather"} - {0}, set())
        self.assertIn("Gather", {kind for p, kind, *_ in ends if p == 0})
        self.assertIn("MatMul", {kind for p, kind, *_ in ends if p == len(counts) - 1})
        self.assertEqual({p for p, *_ in parts}, set(range(len(counts))))

    def check_sends(self, plan, counts):
        """From each part to the next one the tokens of a micro-batch, in 2 bytes each; tied tables apart."""
        pipe, ways = plan["pipeline"], []
        for op in plan["operators"]:
            if op["type"] != "Send" or "embedding_table" in op["name"]:
                continue
            ways.append(re.search(r"/(\d+)\.(\d+)->(\d+)\.(\d+)$", op["name"]).groups())
            if pipe["devices_per_stage"] == 1:
                for sent in op["communications"]:
                    self.assertEqual(sent["bytes"], BATCH // pipe["micro_batches"] * TOKENS * HIDDEN * 2)
        spots = [(str(k % pipe["stages"]), str(k // pipe["stages"])) for k in range(len(counts))]
        self.assertEqual(sorted(ways), sorted((*a, *b) for a, b in zip(spots, spots[1:])))

    def test_counts(self):
        for model, layers, devices, hybrid, counts in CASES:
            with self.subTest(model, layers=layers, hybrid=hybrid):
                done, plan = self.run_it(self.graph(model, layers), devices, hybrid)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_parts(plan, MODELS[model][0], counts)
                self.check_sends(plan, counts)
                self.assertEqual(plan["pipeline"]["cut"], "layers")
                self.assertEqual(plan["pipeline"]["layers"], counts)
                stages = plan["pipeline"]["stages"]
                rows = [counts[i:i + stages] for i in range(0, len(counts), stages)]
                text = " | ".join(",".join(map(str, row)) for row in rows)
                self.assertIn(f"stages cut        between layers: {text} of {MODELS[model][0]}.N\n",
                              done.stdout)

    def test_refused(self):
        for model, layers, devices, hybrid, said in REFUSED:
            with self.subTest(model, layers=layers, hybrid=hybrid):
                done, _ = self.run_it(self.graph(model, layers), devices, hybrid)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(said, done.stderr)

    def test_other_cuts(self):
        """By cost where nothing else can be, or is asked for; what the user says goes before all."""
        gpt = self.graph("gpt", 8)
        for graph, devices, hybrid, cut, said in (
                (gpt, 4, "pp=4,layers=cost", "cost", "stages cut        by cost\n"),
                (self.graph("gpt", 3), 4, "pp=4", "cost", "by cost: the graph has 3 layers\n"),
                (f"{ROOT}/models/multiple_mix.json", 4, "pp=2", "cost", "by cost: the graph has no layers\n")):
            done, plan = self.run_it(graph, devices, hybrid)
            self.assertIn(said, done.stdout)
            self.assertEqual(plan["pipeline"]["cut"], cut)
            self.assertNotIn("layers", plan["pipeline"])
        said = {f"network.backbone.blocks.{k}": int(k > 2) for k in range(8)}
        done, plan = self.run_it(gpt, 2, "pp=2", "--stage-config", json.dumps(said))
        self.assertIn("stages cut        as --stage-config says\n", done.stdout)
        self.check_parts(plan, "network.backbone.blocks", [3, 5])
        done, _ = self.run_it(gpt, 2, "pp=2,layers=3,5", "--stage-config", json.dumps(said))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--hybrid layers= and --stage-config contradict each other", done.stderr)

    def test_vee(self):
        """The second segments run back through the stages."""
        done, plan = self.run_it(self.graph("gpt", 8), 2, "pp=2,vpp=2,layers=3,2,1,2,mbn=8",
                                 "--pipeline-scheduler", "zero_bubble_v")
        self.assertEqual(done.returncode, 0, done.stderr)
        spots = {}
        for op in plan["operators"]:
            found = re.match(r"network\.backbone\.blocks\.(\d+)", op["cell"])
            if found and op["type"] not in ("Send", "Receive"):
                spots.setdefault(int(found[1]), set()).add((op["stage"], op["segment"]))
        self.assertEqual([spots[k] for k in range(8)], [{(0, 0)}] * 3 + [{(1, 0)}] * 2 + [{(1, 1)}] * 2 +
                         [{(0, 1)}])


sys.argv[1:] = []
unittest.main()
