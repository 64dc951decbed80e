# SPDX-License-Identifier: Apache-2.0
"""Usage: bindings.py PROGRAM LIBRARY SOURCE_ROOT

The Python module gives the bytes of the command line on six models, its errors have code and place, exceptions of a
progress function come through, and its types hold.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM, LIBRARY, ROOT = (os.path.abspath(a) for a in sys.argv[1:4])
os.environ["AUTOPAR_LIBRARY"] = LIBRARY
os.environ["AUTOPAR_PLAN_MODELS"] = os.path.join(ROOT, "models")
MODULE = os.path.join(ROOT, "include", "python")
sys.path.insert(0, MODULE)
import autopar  # noqa: E402

CASES = [  # command and function, graph, settings
    ("search", "multiple_mix", {"device_num": 8, "chip": "ascend910b"}),
    ("search", "wide_deep", {"device_num": 16, "chip": "ascend910b", "enable_parallel_optimizer": True}),
    ("search", "resnet50", {"device_num": 4, "chip": "a100-80", "executor": "generic"}),
    ("evaluate", "llama2_7b", {"device_num": 8, "chip": "h100", "executor": "megatron", "hybrid": "dp=2,tp=4,sp=1"}),
    ("plan", "gpt3_1.3b", {"device_num": [8, 16], "chip": "h100", "executor": "megatron", "recompute": ["none", "full"]}),
    ("plan", "bert_large", {"device_num": 16, "chip": "ascend910b", "executor": "mindformers"}),
]


def words(settings):
    """As options."""
    for name, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value).lower() if isinstance(
            value, bool) else str(value)
        yield f"--{name.replace('_', '-')}={text}"


class Bindings(unittest.TestCase):
    def test_same_bytes(self):
        for command, graph, settings in CASES:
            with self.subTest(graph=graph), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "plan.json")
                done = subprocess.run([PROGRAM, command, graph, *words(settings), "--plan-out", path, "-q"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                made = getattr(autopar, command)(graph, **settings)
                with open(path, "rb") as f:
                    wanted = f.read()
                self.assertEqual(made.output("plan_out", ".json"), wanted)
                self.assertEqual(made.to_dict(), json.loads(wanted))
                self.assertEqual(made.step_time_s, made.to_dict()["prediction"]["step_time_s"])
                self.assertTrue(made.complete)
                made.write("plan_out", path + "2")
                with open(path + "2", "rb") as f:
                    self.assertEqual(f.read(), wanted)

    def test_explain(self):
        for command, graph, settings, names in (
                ("search", "multiple_mix", {"device_num": 8, "chip": "ascend910b"},
                 (None, "*layer2*", "layer1.weight", "AllReduce", "device_num", "stage:0", "memory", "batch", "software",
              "devices_per_server", "optimizer", "executor", "chip", "micro_batches", "hybrid")),
                ("plan", "gpt3_1.3b", {"device_num": 8, "chip": "h100", "executor": "megatron"},
                 (None, "blocks.3.*", "stage:0", "hybrid", "recompute", "memory", "sequence", "pipeline_scheduler"))):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "plan.json")
                made = getattr(autopar, command)(graph, **settings)
                made.write("plan_out", path)
                for name in names:
                    with self.subTest(graph=graph, name=name):
                        done = subprocess.run([PROGRAM, "explain", path, *([name] if name else []), "--json"],
                                              capture_output=True, text=True, check=False)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertEqual(made.explain(name), json.loads(done.stdout))
        for name in ("memory", "batch", "software"): # given nowhere, and in force all the same
            setting = made.explain(name)
            self.assertIn(str(made.to_dict()["settings"][name]), json.dumps(setting), name)
        with self.assertRaises(autopar.Error) as e:
            made.explain("nothing")
        self.assertEqual(e.exception.code, 2)
        self.assertIn("| --- |", made.explain_text("stage:0", ".md"))

    def test_graph_of_a_dict(self):
        with open(os.path.join(ROOT, "models", "multiple_mix.json"), encoding="utf-8") as f:
            graph = json.load(f)
        a = autopar.search(graph, device_num=8, chip="ascend910b")
        b = autopar.search("multiple_mix", device_num=8, chip="ascend910b")
        self.assertEqual(a.step_time_s, b.step_time_s)
        with open(os.path.join(ROOT, "models", "topo", "ascend910_8p.json"), encoding="utf-8") as f:
            table = json.loads(re.sub(r",(\s*[\]}])", r"\1", f.read()))  # the file's last comma is one too many
        self.assertEqual(autopar.search(graph, table).to_dict()["machine"]["devices"], 8)

    def test_errors(self):
        graph = {"schema": "autopar-graph/1", "inputs": [], "outputs": ["y"],
                 "operators": [{"name": "x", "type": "Matmul", "inputs": [], "outputs": [{"name": "y"}]}]}
        with self.assertRaises(autopar.Error) as e:
            autopar.search(graph, device_num=8, chip="h100")
        self.assertEqual((e.exception.code, e.exception.file, e.exception.line, e.exception.pointer,
                          e.exception.operator, e.exception.check),
                         (4, "graph.json", 1, "/operators/0/type", "x", "operator-known"))
        self.assertIn('did you mean "MatMul"?', str(e.exception))
        with self.assertRaises(autopar.Infeasible) as e:
            autopar.search("gpt3_175b", device_num=8, chip="h100", executor="megatron")
        self.assertEqual(e.exception.code, 5)
        for settings, code in (({"executor": "nobody"}, 2), ({"chips": "h100"}, 2), ({"strategy": "/none"}, 6)):
            with self.assertRaises(autopar.Error) as e:
                autopar.evaluate("multiple_mix", device_num=8, **{"chip": "h100", **settings})
            self.assertEqual(e.exception.code, code)
        with self.assertRaises(autopar.Error) as e:
            autopar.search("multiple_mix", device_num=[8, 16], chip="h100")
        self.assertEqual(e.exception.code, 2)

    def test_progress(self):
        phases = []
        autopar.search("multiple_mix", device_num=8, chip="h100", progress=phases.append)
        self.assertIn("planning", phases)
        with self.assertRaises(ZeroDivisionError):
            autopar.search("multiple_mix", device_num=8, chip="h100", progress=lambda phase: 1 / 0)
        stopped = autopar.search("wide_deep", device_num=64, chip="h100",
                                 progress=lambda phase: phase != "simulation")
        self.assertFalse(stopped.complete)

    def test_interrupt(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):  # without a signal it takes many seconds
            autopar.plan("gpt3_175b", device_num=1024, chip="a100-80", executor="megatron", prune=False)
        took = time.monotonic() - began
        print(f"interrupted after {took:.1f} s")
        self.assertLess(took, 20)
        self.assertGreater(autopar.search("multiple_mix", device_num=8, chip="h100").step_time_s, 0)

    def test_plans_outlive_each_other(self):
        first = autopar.search("multiple_mix", device_num=8, chip="h100")
        text = first.summary()
        del first
        self.assertIn("step", text)
        steps = []
        threads = [threading.Thread(target=lambda: steps.append(
            autopar.search("multiple_mix", device_num=8, chip="h100").step_time_s)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(set(steps)), 1)
        self.assertEqual(len(steps), 4)

    def test_min_devices(self):
        done = subprocess.run([PROGRAM, "search", "gpt3_1.3b", "--chip", "a100-80", "--min-devices", "--json",
                               "--executor", "megatron"], capture_output=True, text=True, check=True)
        self.assertEqual(autopar.min_devices("gpt3_1.3b", chip="a100-80", executor="megatron")["devices"],
                         json.loads(done.stdout)["min_devices"])

    def test_types(self):
        done = subprocess.run(["mypy", "--strict", "--cache-dir", os.devnull,
                               os.path.join(MODULE, "autopar.py")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


unittest.main(argv=sys.argv[:1], verbosity=0)
