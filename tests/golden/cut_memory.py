# SPDX-License-Identifier: Apache-2.0
"""Usage: cut_memory.py PROGRAM SOURCE_ROOT

Where memory binds, a search cuts the graph so that early stages, which hold more micro-batches, have less to
do: no stage exceeds the memory, the step is shorter than that of stages of equal layers, and some memories
suffice that do not for these. Where memory does not bind, or stages are given, nothing of that happens.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = sys.argv[1:3]
MODEL = ["llama", "--batch", "64", "--hidden", "256", "--heads", "8", "--sequence", "128",
         "--vocabulary", "512", "--kv-heads", "4", "--inner", "512"]
RUN = ["--chip", "a100-80", "--micro-batches", "8", "-q"]


class CutMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        for layers in 4, 8:
            with open(cls.graph(layers), "wb") as f:
                subprocess.run([PROGRAM, "model", *MODEL, "--layers", str(layers)], stdout=f, check=True)

    @classmethod
    def graph(cls, layers):
        return os.path.join(cls.dir.name, f"net{layers}.json")

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def run_program(self, *args):
        return subprocess.run([PROGRAM, *args], capture_output=True, text=True)

    def search(self, layers, memory, *more):
        """The plan, of two layers a stage if they are even; None if it is proven that nothing fits."""
        path = os.path.join(self.dir.name, "plan.json")
        done = self.run_program("search", self.graph(layers), *RUN, "--pipeline-stages", str(layers // 2),
                                "--device-num", str(2 * layers), "--memory", memory, "--plan-out", path, *more)
        if done.returncode == 5:
            return None
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as f:
            return json.load(f)

    def even(self, layers):
        path = os.path.join(self.dir.name, "stages.json")
        with open(path, "w") as f:
            json.dump({f"model.layers.{i}": i // 2 for i in range(layers)}, f)
        return "--stage-config", path

    def test_binding(self):
        plan = self.search(8, "946MB")
        self.assertEqual(plan["pipeline"]["cut"], "memory")
        for stage in plan["stages"]:
            self.assertLessEqual(stage["memory_bytes"], 946 << 20)
        operators = [stage["operators"] for stage in plan["stages"]]
        self.assertEqual(operators, sorted(operators))
        self.assertLess(operators[0], operators[3])
        done = self.run_program("check", os.path.join(self.dir.name, "plan.json"), "--against", self.graph(8))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("still right", done.stdout)
        even = self.search(8, "946MB", *self.even(8))
        self.assertEqual(even["pipeline"]["cut"], "stage_config")
        self.assertLess(plan["prediction"]["step_time_s"], even["prediction"]["step_time_s"])

    def evaluate(self, strategy):
        path = os.path.join(self.dir.name, "again.json")
        done = self.run_program("evaluate", self.graph(8), *RUN, "--pipeline-stages", "4", "--device-num", "16",
                                "--strategy", strategy, "--plan-out", path)
        if done.returncode:
            return None, done
        with open(path) as f:
            return json.load(f), done

    def test_strategy_file(self):
        """The stages of the file's operators are enough to find the cut again, down to the operators between them."""
        strategy = os.path.join(self.dir.name, "net.json")
        plan = self.search(8, "946MB", "--no-out-strategy", "-o", strategy, "--work-limit", "30000000")
        self.assertEqual(plan["pipeline"]["cut"], "memory")
        again, done = self.evaluate(strategy)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(again["pipeline"]["cut"], "strategy")
        stages = [{o["name"]: o["stage"] for o in p["operators"]} for p in (plan, again)]
        self.assertEqual(*stages)
        self.assertEqual(again["prediction"]["step_time_s"], plan["prediction"]["step_time_s"])
        with open(strategy) as f:
            turned = json.load(f)
        for item in turned["parallel_strategy_item"].values():  # the first stage's operators last
            item["stage"] = 3 - item["stage"]
        turned["parallel_layout_item"] = {f"{3 - int(name[0])}{name[1:]}": layout for name, layout in
                                          turned["parallel_layout_item"].items()}
        with open(strategy, "w") as f:
            json.dump(turned, f)
        again, done = self.evaluate(strategy)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count("error"), 1, done.stderr)
        self.assertIn("expected --stage-config FILE as well, the file that --stage-config-out FILE wrote", done.stderr)

    def test_equal_layers(self):
        """The cut by cost gives the first stage too much; that between layers, which is slower by its baselines,
        is as good as any."""
        plan, even = self.search(4, "946MB"), self.search(4, "946MB", *self.even(4))
        self.assertLessEqual(plan["prediction"]["step_time_s"], even["prediction"]["step_time_s"])

    def test_fits_nothing_else(self):
        self.assertIsNone(self.search(8, "935MB", *self.even(8)))
        plan = self.search(8, "935MB", "--work-limit", "30000000")
        for stage in plan["stages"]:
            self.assertLessEqual(stage["memory_bytes"], 935 << 20)

    def test_not_binding(self):
        self.assertEqual(self.search(8, "8GB")["pipeline"]["cut"], "cost")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
