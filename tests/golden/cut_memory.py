# SPDX-License-Identifier: Apache-2.0
"""Usage: cut_memory.py PROGRAM SOURCE_ROOT MAKE_MODEL

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

PROGRAM, ROOT, MAKE_MODEL = sys.argv[1:4]
MODEL = ["llama", "--layers", "8", "--batch", "64", "--hidden", "256", "--heads", "8", "--sequence", "128",
         "--vocabulary", "512", "--kv-heads", "4", "--inner", "512"]
RUN = ["--device-num", "16", "--chip", "a100-80", "--pipeline-stages", "4", "--micro-batches", "8", "-q"]


class CutMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.graph = os.path.join(cls.dir.name, "net.json")
        with open(cls.graph, "wb") as f:
            subprocess.run([MAKE_MODEL, *MODEL], stdout=f, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def run_program(self, *args):
        return subprocess.run([PROGRAM, *args], capture_output=True, text=True)

    def search(self, memory, *more):
        """The plan, and its file; None if it is proven that nothing fits."""
        path = os.path.join(self.dir.name, "plan.json")
        done = self.run_program("search", self.graph, *RUN, "--memory", memory, "--plan-out", path, *more)
        if done.returncode == 5:
            return None, path
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as f:
            return json.load(f), path

    def even(self):
        path = os.path.join(self.dir.name, "stages.json")
        with open(path, "w") as f:
            json.dump({f"model.layers.{i}": i // 2 for i in range(8)}, f)
        return "--stage-config", path

    def test_binding(self):
        plan, path = self.search("946MB")
        self.assertEqual(plan["pipeline"]["cut"], "memory")
        for stage in plan["stages"]:
            self.assertLessEqual(stage["memory_bytes"], 946 << 20)
        operators = [stage["operators"] for stage in plan["stages"]]
        self.assertEqual(operators, sorted(operators))
        self.assertLess(operators[0], operators[3])
        done = self.run_program("check", path, "--against", self.graph)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("still right", done.stdout)
        even, _ = self.search("946MB", *self.even())
        self.assertEqual(even["pipeline"]["cut"], "stage_config")
        self.assertLess(plan["prediction"]["step_time_s"], 0.95 * even["prediction"]["step_time_s"])

    def test_fits_nothing_else(self):
        self.assertIsNone(self.search("935MB", *self.even())[0])
        plan, _ = self.search("935MB", "--work-limit", "30000000")
        for stage in plan["stages"]:
            self.assertLessEqual(stage["memory_bytes"], 935 << 20)

    def test_not_binding(self):
        plan, _ = self.search("8GB")
        self.assertEqual(plan["pipeline"]["cut"], "cost")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
