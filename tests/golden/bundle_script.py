# SPDX-License-Identifier: Apache-2.0
"""Usage: bundle_script.py PROGRAM SOURCE_ROOT

apply_plan.py of a bundle on networks of a fake of MindSpore: what it marks, and what it refuses.
"""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from bundle_case import BundleCase, GPT, MACHINE, MIX, SOURCE, cell_of, fake, read  # noqa: E402


class Script(BundleCase):
    def test_marks_of_the_script(self):
        """A script that recomputes primitives and cells itself, and prepare() more than once."""
        model, network = self.named(GPT, lambda op, k: "%s%d" % (op["type"].lower(), k))
        for instances in (True, False):
            self.bundle(model if instances else GPT, "--batch=16", "--recompute=selective",
                        "--pipeline-stages=2", "--micro-batches=4")
            marks = read(self.dir, "recompute.json")["primitives"]
            self.assertTrue(marks)
            net = network() if instances else self.network()
            held = [p for cell in dict(net.cells_and_names()).values() for p in vars(cell).values()
                    if isinstance(p, fake.Primitive)]
            script = self.script()
            for primitive in held:
                primitive.recompute(False)
            self.assertRaises(TypeError, lambda: held[0].recompute(True))  # its mark has replaced the method
            del fake.calls[:]
            once = script.prepare(net)
            made = list(fake.calls)
            called = [call[1] for call in made if call[0] == "Primitive.recompute"]
            self.assertTrue(called)
            self.assertEqual(sorted(called), sorted(p.path for p in held if p.attrs["recompute"]))
            self.assertEqual(made[-1], ("Pipeline", {"micro_size": 4}))
            script.prepare(net)
            self.assertEqual(fake.calls, made + made)
            self.assertIs(script.prepare(once), once)
            whole = script.configure(once)
            self.assertIs(script.configure(whole), whole)
            self.assertEqual([call[0] for call in fake.calls].count("AutoParallel"), 1)
        self.bundle(MIX)
        for old in (False, True):
            net = self.network()
            script = self.script(old=old)
            dict(net.cells_and_names())["_backbone.relu1"].recompute(mp_comm_recompute=False)
            script.prepare(net)
            script.prepare(net)
            self.assertEqual(fake.calls.count(("Cell.recompute", "_backbone.relu2", True, False, False)),
                             1 if old else 2)

    def test_known_calls(self):
        """settings.json takes calls that a bundle makes, each once."""
        self.bundle(MIX)
        rows = read(self.dir, "settings.json")
        first = {"api": "AutoParallel", "name": "parallel_mode", "type": "str", "value": "semi_auto"}
        self.assertEqual(self.run_program("check", "b/settings.json").returncode, 0)
        for faulty, text in (
                (rows + [first], "parallel_mode of AutoParallel is called twice"),
                (rows + [dict(first, name="no_init_parameters")], "no_init_parameters of AutoParallel is no call"),
                (rows + [dict(first, api="os", name="system")], "system of os is no call"),
                (rows[1:] + [dict(first, type="bool", value=True)], "parallel_mode of AutoParallel takes"),
                (rows[1:] + [dict(first, api="set_context", name="ascend_config", type="dict",
                                  value={"mode": 1})], None)):
            with open(os.path.join(self.at, "settings.json"), "w", encoding="utf-8") as file:
                json.dump(faulty, file)
            done = self.run_program("check", "settings.json")
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(text or '"mode" is no argument of this call', done.stderr)
            if text:
                self.assertRaisesRegex(ValueError, text, self.edited("settings.json", faulty).apply,
                                       self.network())
                self.assertEqual(fake.calls, [])
        calls = [(api, name, kind.replace("file", "str")) for api, names in self.script()._CALLS.items()
                 for name, kinds in names.items() for kind in kinds.split()]
        value = {"str": "", "int": 1, "bool": True, "dict": {}, "kwargs": {}, "list": [], "tuple": [],
                 "none": None}
        for api, name, kind in calls:  # what the script takes, check takes
            with open(os.path.join(self.at, "settings.json"), "w", encoding="utf-8") as file:
                json.dump([{"api": api, "name": name, "type": kind, "value": value[kind]}], file)
            done = self.run_program("check", "settings.json")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_cores(self):
        """Selective recomputation: the core of attention, by primitives."""
        self.bundle(GPT, "--batch=16", "--recompute=selective")
        marks = read(self.dir, "recompute.json")
        self.assertEqual(marks["cells"], [])
        again = {op["name"]: cell_of(op["name"]) for op in self.plan["operators"] if op["recompute"]}
        said = {(mark["cell"], mark["type"]) for mark in marks["primitives"]}
        rest = {mark["operator"] for mark in marks["not_applicable"]}
        for op in self.plan["operators"]:
            key = (cell_of(op["name"]), op["type"])
            self.assertEqual(op["name"] in again, key in said or op["name"] in rest, op["name"])
        self.assertTrue(said and rest and all(mark["recompute"] for mark in marks["primitives"]))
        self.script().apply(self.network())
        self.assertEqual(sorted(call for call in fake.calls if call[0] == "Primitive.recompute"),
                         sorted(("Primitive.recompute", "%s/%s" % key, True) for key in said))

    def test_gathered_again(self):
        """What products gather behind norms: the norms' primitives say that it runs again."""
        asked = ["--batch=16", "--recompute=communication", "--hybrid=dp=2,tp=4,sp=1,mbs=1"]
        self.bundle(GPT, *asked, command="evaluate")
        marks = read(self.dir, "recompute.json")
        self.assertEqual((marks["cells"], marks["primitives"], marks["not_applicable"]), ([], [], []))
        norms = [cell_of(op["name"]) for op in self.plan["operators"]
                 if op["type"] == "LayerNorm" and "blocks." in cell_of(op["name"])]
        self.assertEqual(len(norms), 48)
        self.assertEqual(marks["communications"], [
            {"cell": cell, "type": "LayerNorm", "recompute_comm_op": True} for cell in norms])
        self.assertNotIn("recompute_comm_op", self.readme())
        net = self.network()
        self.script().apply(net)
        said = {name for name, cell in net.cells_and_names() for p in vars(cell).values()
                if isinstance(p, fake.Primitive) and p.attrs.get("recompute_comm_op")}
        self.assertEqual(said, set(norms))
        model, _ = self.named(GPT, lambda op, k: "" if "blocks-CellList/3-" in op["name"] else None)
        self.bundle(model, *asked, command="evaluate")
        marks = read(self.dir, "recompute.json")
        self.assertEqual([m["recompute_comm_op"] for m in marks["not_applicable"]], [True, True])
        self.assertEqual(len(marks["communications"]), 46)
        self.assertIn("results of 2 norms is gathered again", self.readme())
        done = self.run_program("check", "b/recompute.json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_instances(self):
        """By attributes every operator of the core is reached, and no other."""
        model, network = self.named(GPT, lambda op, k: "%s%d" % (op["type"].lower(), k)
                                    if op["type"] != "BatchMatMul" else "products.%d" % k)
        self.bundle(model, "--batch=16", "--recompute=selective")
        marks = read(self.dir, "recompute.json")
        self.assertEqual((marks["cells"], marks["not_applicable"]), ([], []))
        again = sum(op["recompute"] for op in self.plan["operators"])
        self.assertEqual(len(marks["primitives"]), again)
        attention = "network.backbone.blocks.3.attention"
        self.assertIn({"cell": attention, "instance": "products.0", "type": "BatchMatMul",
                       "recompute": True}, marks["primitives"])
        self.script().apply(network())
        marked = [call[1] for call in fake.calls if call[0] == "Primitive.recompute"]
        self.assertEqual(marked, ["%s/%s" % (mark["cell"], mark["instance"])
                                  for mark in marks["primitives"]])
        self.assertEqual(len(set(marked)), again)
        for instance, lost in (("products.0", lambda cell: cell.products.clear()),
                               ("add0", lambda cell: delattr(cell, "add0"))):
            net = network()
            lost(dict(net.cells_and_names())[attention])
            script = self.script()
            with self.assertRaisesRegex(KeyError, "primitive %s of cell '%s'" % (instance, attention)):
                script.apply(net)
            self.assertEqual(fake.calls, [])

    def test_shard(self):
        """Strategies that the graph has are called, where the attribute is known."""
        model, network = self.named(
            MIX, lambda op, k: None if op["type"] in ("Abs", "Cast") else op["type"].lower(),
            ReLU={"in_strategy": [[2, 4]]}, Abs={"in_strategy": [[8, 1]]},
            **{"layer2-Dense/MatMul": {"in_strategy": [[2, 4], [1, 4]], "out_strategy": [[8, 1]]}})
        called = [("Primitive.shard", "_backbone.relu1/relu", ((2, 4),), None),
                  ("Primitive.shard", "_backbone.layer2/matmul", ((2, 4), (1, 4)), ((8, 1),)),
                  ("Primitive.shard", "_backbone.relu2/relu", ((2, 4),), None)]
        for route in ("mindspore-semi-auto", "mindspore-sharding-propagation"):
            self.bundle(model, "--executor=" + route)
            shards = read(self.dir, "shard.json")
            self.assertEqual(shards["shards"][1], {
                "cell": "_backbone.layer2", "instance": "matmul", "in_strategy": [[2, 4], [1, 4]],
                "out_strategy": [[8, 1]]})
            self.assertEqual([(left["operator"].split("/")[-1], left["in_strategy"])
                              for left in shards["not_applicable"]], [("Abs-op0", [[8, 1]])])
            for mark in shards["shards"]:
                self.assertIn((mark["cell"], mark["in_strategy"]), [
                    (cell_of(op["name"]), op["in_strategy"]) for op in self.plan["operators"]])
            self.script().apply(network())
            self.assertEqual(fake.calls[:3], called)
            self.assertNotIn("Primitive.shard", [call[0] for call in fake.calls[3:]])
            checked = self.run_program("check", "b/shard.json", "b/recompute.json")
            self.assertIn("calls of shard() (shards 3, not_applicable 1): nothing to report",
                          checked.stdout)
            with open(self.path("README.txt"), encoding="utf-8") as file:
                text = file.read()
            self.assertIn("3 operators are cut by shard(), which wins", text)
            self.assertIn("1 operator is said by the graph to be cut by shard()", text)
            self.assertNotIn("an out_strategy, which a strategy checkpoint cannot", text)
            self.assertIn("\nshard.json  ", text)
            net = network()
            del dict(net.cells_and_names())["_backbone.relu2"].relu
            script = self.script()
            with self.assertRaisesRegex(KeyError, "primitive relu of cell '_backbone.relu2'"):
                script.apply(net)
            self.assertEqual(fake.calls, [])
        self.bundle(model)
        self.assertFalse(os.path.exists(self.path("shard.json")))
        self.script().apply(network())
        self.assertNotIn("Primitive.shard", [call[0] for call in fake.calls])

    def test_shard_where_semi_auto_stops(self):
        """An in_strategy in the graph is all that is needed: the bundle calls it."""
        softmax = {"name": "Default/network-Net/head-Head/Softmax-op0", "type": "Softmax", "inputs": ["h"],
                   "attrs": {"axis": [0]}, "outputs": [{"name": "p"}], "instance": "softmax"}
        graph = {"schema": "autopar-graph/1", "name": "net", "outputs": ["l"],
                 "inputs": [{"name": "x", "shape": [64, 32], "dtype": "float32", "batch_dim": 0}],
                 "parameters": [{"name": "w", "shape": [32, 16], "dtype": "float32"}],
                 "operators": [
                     {"name": "Default/network-Net/MatMul-op0", "type": "MatMul", "inputs": ["x", "w"],
                      "outputs": [{"name": "h"}]}, softmax,
                     {"name": "Default/network-Net/ReduceMean-op0", "type": "ReduceMean", "inputs": ["p"],
                      "outputs": [{"name": "l"}]}]}
        path = os.path.join(self.at, "net.json")
        for pinned in (False, True):
            if pinned:
                softmax["in_strategy"] = [[1, 8]]
            with open(path, "w", encoding="utf-8") as file:
                json.dump(graph, file)
            args = [path, *MACHINE, "--executor=mindspore-semi-auto", "--bundle", "b"]
            if not pinned:
                self.refused(5, "it needs an in_strategy, that is shard() [semi-auto]", "search", *args)
        self.bundle(path, "--executor=mindspore-semi-auto")
        self.script().apply(fake.network([("head", "Softmax", "softmax")]))
        self.assertEqual(fake.calls[0], ("Primitive.shard", "head/softmax", ((1, 8),), None))

    def test_imported(self):
        """A dump's attributes come through: the strategies of its script are called again."""
        done = self.run_program("import", os.path.join(
            SOURCE, "tests", "dumps", "transformer_step_parallel_begin_0052.ir"), "-o", "net.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.bundle("net.json", "--executor=mindspore-semi-auto", "--optimizer=adam")
        shards = read(self.dir, "shard.json")
        graph = read(self.at, "net.json")
        pinned = [(cell_of(op["name"]), op["instance"]) for op in graph["operators"] if "in_strategy" in op]
        self.assertEqual(len(pinned), 47)
        self.assertEqual(sorted((mark["cell"], mark["instance"]) for mark in shards["shards"]),
                         sorted(set(pinned)))
        self.assertEqual(shards["not_applicable"], [])
        self.assertEqual(read(self.dir, "recompute.json"), {
            "cells": [{"cell": "network.layers.1.mlp", "mp_comm_recompute": True,
                       "parallel_optimizer_comm_recompute": False, "recompute_slice_activation": False}],
            "primitives": [], "communications": [], "not_applicable": []})
        self.assertEqual(pinned.count(("network.layers.0.attention", "transpose")), 3)
        self.assertIn({"cell": "network.layers.0.attention", "instance": "batch_matmul",
                       "in_strategy": [[2, 4, 1, 1], [2, 4, 1, 1]]}, shards["shards"])

    def test_missing_cells(self):
        """What the network lacks is said, and nothing is changed."""
        self.bundle(GPT, "--batch=16", "--recompute=selective", "--micro-batches=4",
                    "--pipeline-stages=2")
        marks = read(self.dir, "recompute.json")["primitives"]
        for lost in (lambda op: op["type"] == marks[0]["type"],
                     lambda op: cell_of(op["name"]).startswith("loss")):
            net = fake.network([(cell_of(op["name"]), op["type"]) for op in self.plan["operators"]
                                if op["type"] not in ("Send", "Receive") and not lost(op)])
            script = self.script()
            with self.assertRaisesRegex(KeyError, "no cell 'loss'|primitive " + marks[0]["type"]):
                script.apply(net)
            self.assertEqual(fake.calls, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
