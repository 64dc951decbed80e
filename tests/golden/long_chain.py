# SPDX-License-Identifier: Apache-2.0
"""Usage: long_chain.py PROGRAM

Of 1,000 products in a row on 1,024 devices, whose sum of costs is least at dp=16 tp=64, the plan that is written is
at least as fast as each grid of dp x tp, of which dp=8 tp=128 is the fastest, as `evaluate --hybrid` has them.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
PRODUCTS, WIDTH, DEVICES = 1000, 4096, 1024


def chain():
    products = [{"name": f"mm{i}", "type": "MatMul", "inputs": [f"h{i - 1}" if i else "x", f"w{i}"],
                 "outputs": [{"name": f"h{i}"}]} for i in range(PRODUCTS)]
    loss = {"name": "loss", "type": "ReduceMean", "inputs": [f"h{PRODUCTS - 1}"], "outputs": [{"name": "l"}]}
    return {"schema": "autopar-graph/1", "name": "chain",
            "inputs": [{"name": "x", "shape": [WIDTH, WIDTH], "dtype": "float16", "batch_dim": 0}],
            "parameters": [{"name": f"w{i}", "shape": [WIDTH, WIDTH], "dtype": "float16"}
                           for i in range(PRODUCTS)],
            "operators": [*products, loss], "outputs": ["l"]}


class LongChain(unittest.TestCase):
    def plan(self, folder, command, *more):
        path = os.path.join(folder, "plan.json")
        done = subprocess.run([PROGRAM, command, os.path.join(folder, "chain.json"), "--chip", "ascend910b3",
                               "--device-num", str(DEVICES), "-q", "--plan-out", path, *more],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as f:
            return json.load(f)

    def test_no_grid_is_faster(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "chain.json"), "w") as f:
                json.dump(chain(), f)
            plan = self.plan(folder, "search")
            sums, steps = {}, {}
            for tp in 16, 32, 64, 128, 256:  # the others take more than twice as long as the fastest
                grid = self.plan(folder, "evaluate", "--hybrid", f"dp={DEVICES // tp},tp={tp}")
                steps[tp] = grid["prediction"]["step_time_s"]
                sums[tp] = grid["search"]["objective_s"]
        self.assertEqual(len(steps), 5)
        self.assertEqual(min(sums, key=sums.get), 64)
        self.assertEqual(min(steps, key=steps.get), 128)
        self.assertGreater(steps[64], 1.2 * steps[128])
        for tp, step in steps.items():
            self.assertLessEqual(plan["prediction"]["step_time_s"], step, f"tp={tp}")
        self.assertLessEqual(plan["prediction"]["step_bound_s"], plan["prediction"]["step_time_s"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
