# SPDX-License-Identifier: Apache-2.0
"""Usage: recompute_layers.py PROGRAM SOURCE_ROOT

What --recompute says of layers: the plan counts the kinds of each part, and operators run again in just those
layers; the summary says it; a JSON object says the same as words do; check finds counts that were changed, and
diff that they differ. What cannot be is refused, and names the stage and its layers.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = sys.argv[1:3]
FAMILY = "model.layers"
LLAMA = ["llama", "--batch", "48", "--hidden", "24", "--heads", "6", "--sequence", "8", "--vocabulary", "48",
         "--kv-heads", "3", "--inner", "12"]
CASES = [  # layers, hybrid, words, as an object, kinds and how many layers of them each part has, summary
    (4, "dp=4", "selective", {"selective": True}, {"selective": [4]}, "selective 4"),
    (4, "dp=4", "full:1", {"full": 1}, {"full": [1], "none": [3]}, "full 1; none 3"),
    (6, "pp=2", "full:3,1", {"full": [3, 1]}, {"full": [3, 1], "none": [0, 2]}, "full 3,1; none 0,2"),
    (6, "pp=2", "full:1,0,core_attn:2,2,layernorm", {"full": [1, 0], "selective": [2, 2], "layernorm": True,
                                                     "moe": False},
     {"full": [1, 0], "selective+layernorm": [1, 2], "layernorm": [1, 1]},
     "full 1,0; selective+layernorm 1,2; layernorm 1,1"),
    (8, "pp=2,vpp=2", "mlp:3,1", {"mlp": [3, 1]}, {"mlp": [2, 1, 1, 0], "none": [0, 1, 1, 2]},
     "mlp 2,1 | 1,0; none 0,1 | 1,2"),
    (8, "pp=2,vpp=2", "full:1,0/0,2", {"full": [[1, 0], [0, 2]]}, {"full": [1, 0, 0, 2], "none": [1, 2, 2, 0]},
     "full 1,0 | 0,2; none 1,2 | 2,0"),
    (7, "pp=4", "full:2", {"full": 2}, {"full": [2, 2, 2, 1]}, "full 2,2,2,1"),
    (4, "pp=2", "uniform:2", {"uniform": 2}, {"uniform:2": [2, 2]}, "uniform:2 2,2"),
]
REFUSED = [  # layers, hybrid, words, what is said
    (6, "pp=2", "full:4,1", "--recompute full:4,1: 4 layers are to be recomputed, but stage 0 has 3"),
    (7, "pp=4", "full:2,2,2,2", "2 layers are to be recomputed, but stage 3 has 1"),
    (8, "pp=2,vpp=2", "full:1,0/3,0", "3 layers are to be recomputed, but segment 1 of stage 0 has 2"),
    (4, "pp=2", "uniform:2", "--recompute uniform:2 and executor mindspore (default) contradict each other: "
     "MindSpore recomputes layers one by one"),
    (6, "pp=2", "full:1,2,3", "a list of 1 by 3 numbers, but there are 2 stages of 1 segments"),
]


class Recompute(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def file(self, name):
        return os.path.join(self.temporary.name, name)

    def graph(self, layers):
        path = self.file(f"{layers}.json")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                subprocess.run([PROGRAM, "model", *LLAMA, "--layers", str(layers)], stdout=file, check=True)
        return path

    def run_it(self, layers, hybrid, name, *options):
        done = subprocess.run([PROGRAM, "evaluate", self.graph(layers), "--device-num", "4", "--chip", "ascend910b",
                               "--hybrid", hybrid + ",mbn=4", "--plan-out", self.file(name), *options],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            return done, None
        with open(self.file(name), encoding="utf-8") as file:
            return done, json.load(file)

    def test_layers(self):
        for layers, hybrid, words, value, kinds, summary in CASES:
            with self.subTest(words, hybrid=hybrid):
                who = ["--executor", "generic" if "uniform" in words else "mindspore"]
                done, plan = self.run_it(layers, hybrid, "plan.json", "--recompute", words, *who)
                self.assertEqual(done.returncode, 0, done.stderr)
                again = plan["recompute"]
                self.assertEqual(dict(zip(again["kinds"], again["counts"])), kinds)
                self.assertEqual(again["layers"], FAMILY + ".N")
                self.assertIn(f"recomputed        {summary} of {FAMILY}.N\n", done.stdout)
                self.check_operators(plan, kinds)
                self.check_file(plan)
                with open(self.file("config.json"), "w", encoding="utf-8") as file:
                    json.dump({"recompute": value}, file)
                _, same = self.run_it(layers, hybrid, "same.json", "--config", self.file("config.json"), *who)
                self.assertEqual(same["recompute"], again)
                self.assertEqual(same["prediction"], plan["prediction"])

    def check_operators(self, plan, kinds):
        """In each part as many layers as are counted have something that runs again."""
        stages = plan["pipeline"]["stages"] if plan["pipeline"] else 1
        none = kinds.get("none", [0] * len(next(iter(kinds.values()))))
        found = [set() for _ in none]
        for op in plan["operators"]:
            layer = re.match(re.escape(FAMILY) + r"\.(\d+)", op["cell"])
            if op["recompute"]:
                self.assertTrue(layer, op["name"])
                found[op["segment"] * stages + op["stage"]].add(int(layer[1]))
        self.assertEqual([len(layers) for layers in found],
                         [sum(c[k] for c in kinds.values()) - none[k] for k in range(len(none))])

    def check_file(self, plan):
        done = subprocess.run([PROGRAM, "check", self.file("plan.json")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        other = json.loads(json.dumps(plan))
        if not plan["pipeline"]:
            return
        other["recompute"]["counts"][0][0] += 1
        with open(self.file("other.json"), "w", encoding="utf-8") as file:
            json.dump(other, file)
        done = subprocess.run([PROGRAM, "check", self.file("other.json")], capture_output=True, text=True,
                              check=False)
        self.assertIn("[plan-recompute]", done.stdout + done.stderr)
        done = subprocess.run([PROGRAM, "diff", self.file("plan.json"), self.file("other.json")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("counts", done.stdout)

    def test_refused(self):
        for layers, hybrid, words, said in REFUSED:
            with self.subTest(words, hybrid=hybrid):
                done, _ = self.run_it(layers, hybrid, "refused.json", "--recompute", words)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(said, done.stderr)

    def test_several_options(self):
        """Options add up, as their words joined by commas do."""
        _, one = self.run_it(4, "pp=2", "one.json", "--recompute", "full:1,0,mlp:2,2")
        _, two = self.run_it(4, "pp=2", "two.json", "--recompute", "full:1,0", "--recompute", "mlp:2,2")
        self.assertEqual(one["recompute"], two["recompute"])


sys.argv[1:] = []
unittest.main()
