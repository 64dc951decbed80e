# SPDX-License-Identifier: Apache-2.0
"""Usage: bundle.py PROGRAM SOURCE_ROOT

Bundles: each file is held, key by key, against the formats that MindSpore takes; apply_plan.py is run on a
fake of MindSpore, and its calls are compared.
"""
import filecmp
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SOURCE = os.path.abspath(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests", "golden"))
import fake_mindspore as fake  # noqa: E402

MIX = os.path.join(SOURCE, "models", "multiple_mix.json")
GPT = os.path.join(SOURCE, "models", "gpt3_1.3b.json")
MACHINE = ["--device-num=8", "--chip=ascend910b3"]
AUTO = {"mode": "auto", "config": None}
FUSED = {"openstate": True, "allreduce": AUTO, "allgather": AUTO, "reducescatter": AUTO}


def cell_of(name):
    """Of a full scope name the cell, as cells_and_names() of the network under Default/network gives it."""
    parts = re.sub("^recompute_", "", name).split("/")[1:-1]
    return ".".join(part.split("-")[0] for part in parts[1:])


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


class Bundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = folder.name
        self.dir = os.path.join(self.at, "b")

    def run_program(self, *args):
        env = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"}
        return subprocess.run([PROGRAM] + list(args), cwd=self.at, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              universal_newlines=True)

    def bundle(self, model, *args, command="search"):
        done = self.run_program(command, model, *MACHINE, "--bundle", "b", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.plan = read(self.dir, "plan.json")
        return done

    def refused(self, code, text, *args):
        before = sorted(self.files())
        done = self.run_program(*args)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(sorted(self.files()), before)

    def files(self):
        return [os.path.relpath(os.path.join(at, name), self.at)
                for at, folders, names in os.walk(self.at) for name in names + folders]

    def settings(self, api):
        """{name: value}, types checked."""
        found = {}
        kinds = {"str": str, "int": int, "bool": bool, "dict": dict, "kwargs": dict, "list": list,
                 "tuple": list, "none": type(None)}
        for row in read(self.dir, "settings.json"):
            self.assertEqual(list(row), ["api", "name", "type", "value"])
            self.assertIs(type(row["value"]), kinds[row["type"]])
            if row["api"] == api:
                self.assertNotIn(row["name"], found)
                found[row["name"]] = row["value"]
        return found

    def script(self, rank=0, old=False, devices=8):
        fake.install(rank, old, devices)
        spec = importlib.util.spec_from_file_location("apply_plan",
                                                      os.path.join(self.dir, "apply_plan.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def network(self):
        return fake.network([(cell_of(op["name"]), op["type"]) for op in self.plan["operators"]
                             if op["type"] not in ("Send", "Receive")])

    def named(self, model, instance_of, **more):
        """A copy of a model with instances, instance_of(operator, how many of its cell and type came before);
        what else is said of operators, by the end of their names. Its path, and its network in Python."""
        graph = read(model)
        seen = {}
        for op in graph["operators"]:
            key = (cell_of(op["name"]), op["type"])
            op["instance"] = instance_of(op, seen.get(key, 0))
            seen[key] = seen.get(key, 0) + 1
            for said in (more[end] for end in more if op["name"].endswith("/%s-op0" % end)):
                op.update(said)
            if op["instance"] is None:
                del op["instance"]
        path = os.path.join(self.at, "named.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(graph, file)
        return path, lambda: fake.network([
            (cell_of(op["name"]), op["type"], op["instance"]) if op.get("instance")
            else (cell_of(op["name"]), op["type"]) for op in graph["operators"]])

    def path(self, *name):
        return os.path.join(self.dir, *name)

    def placed(self, key):
        """What a config says of cells is what the plan says of their operators."""
        config = read(self.dir, {"stage": "stage_config.json", "segment": "segment_config.json"}[key])
        for op in self.plan["operators"]:
            cell = cell_of(op["name"])
            said = [value for name, value in config.items()
                    if cell == name or cell.startswith(name + ".")]
            if op["type"] not in ("Send", "Receive") and said:
                self.assertEqual(said, [op.get(key, 0)], op["name"])
        return config

    def test_every_operator(self):
        """The executor mindspore: all strategies by name."""
        self.bundle(MIX)
        self.assertEqual(sorted(os.listdir(self.dir)), [
            "README.txt", "apply_plan.py", "group_info.pb", "megatron_args.txt", "mindformers.yaml",
            "operator_strategies.json", "plan.json", "recompute.json", "settings.json", "strategy.ckpt"])
        self.assertEqual(self.settings("AutoParallel"), {
            "parallel_mode": "sharding_propagation",
            "load_operator_strategy_file": "operator_strategies.json",
            "dataset_strategy": "data_parallel",
            "comm_fusion": FUSED})
        self.assertEqual(self.settings("set_auto_parallel_context"), {
            "device_num": 8, "parallel_mode": "auto_parallel", "search_mode": "sharding_propagation",
            "full_batch": False, "dataset_strategy": "data_parallel",
            "enable_parallel_optimizer": False, "pipeline_stages": 1, "comm_fusion": FUSED,
            "force_fp32_communication": False, "gradients_mean": False, "gradient_fp32_sync": True,
            "loss_repeated_mean": True, "enable_alltoall": True})
        self.assertEqual(self.settings("set_op_strategy_config"), {
            "set_op_strategy_config": {"mode": "LOAD", "path": "operator_strategies.json"}})
        self.script().apply(self.network())
        self.assertEqual(fake.calls, [
            ("Cell.recompute", "_backbone.relu1", True, False, False),
            ("Cell.recompute", "_backbone.relu2", True, False, False),
            ("AutoParallel", "sharding_propagation"),
            ("load_operator_strategy_file", self.path("operator_strategies.json")),
            ("dataset_strategy", "data_parallel"),
            ("comm_fusion", FUSED)])
        self.script(old=True).set_context()
        self.assertEqual(fake.calls[1:], [("set_op_strategy_config", {
            "mode": "LOAD", "path": self.path("operator_strategies.json")})])

    def test_same_files(self):
        """What options of their own write, the bundle has, too."""
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4", "--global-rank=5", "-o", "net.ckpt",
                    "--plan-out=plan.json", "--stage-config-out=stages.json",
                    "--group-ckpt-save-file=groups.pb")
        for mine, theirs in (("strategy.ckpt", "net.ckpt"), ("plan.json", "plan.json"),
                             ("stage_config.json", "stages.json"), ("group_info.pb", "groups.pb"),
                             ("stages/stage_0.ckpt", "net.stages/stage_0.ckpt"),
                             ("stages/stage_1.ckpt", "net.stages/stage_1.ckpt")):
            self.assertTrue(filecmp.cmp(self.path(mine), os.path.join(self.at, theirs), False), mine)

    def test_stages_of_semi_auto(self):
        """Each rank loads the checkpoint of its stage; cells are placed before they are wrapped."""
        self.bundle(MIX, "--executor=mindspore-semi-auto", "--pipeline-stages=2", "--micro-batches=4",
                    "--pipeline-scheduler=gpipe", "--only-trainable-params=false")
        stages = self.placed("stage")
        segments = self.placed("segment")
        self.assertEqual(set(stages.values()), {0, 1})
        self.assertEqual(set(segments.values()), {0})
        self.script(rank=5).apply(self.network())
        self.assertEqual(fake.calls, [
            ("Cell.recompute", "_backbone.relu1", True, False, False),
            ("Cell.recompute", "_backbone.relu2", True, False, False)] + [
            ("pipeline_stage", name, stage) for name, stage in stages.items()] + [
            ("Pipeline", {"micro_size": 4}),
            ("AutoParallel", "semi_auto"),
            ("load_param_strategy_file", self.path("stages", "stage_1.ckpt")),
            ("disable_strategy_file_only_for_trainable_params",),
            ("dataset_strategy", "data_parallel"),
            ("pipeline", {"stages": 2, "output_broadcast": False, "interleave": True,
                          "scheduler": "gpipe"}),
            ("comm_fusion", FUSED)])
        script = self.script(rank=3, old=True)
        script.set_context()
        context = fake.calls[0][1]
        self.assertEqual(context["strategy_ckpt_load_file"], self.path("stages", "stage_0.ckpt"))
        self.assertEqual(context["strategy_ckpt_config"], {
            "load_file": self.path("stages", "stage_0.ckpt"), "only_trainable_params": False})
        self.assertEqual(context["parallel_mode"], "semi_auto_parallel")
        self.assertNotIn("search_mode", context)
        self.assertEqual(context["pipeline_config"], {"pipeline_interleave": True,
                                                      "pipeline_scheduler": "gpipe"})
        script.prepare(self.network())
        self.assertEqual(fake.calls[-1], ("PipelineCell", {"micro_size": 4}))
        script.set_context(rank=4)
        self.assertEqual(fake.calls[-1][1]["strategy_ckpt_load_file"],
                         self.path("stages", "stage_1.ckpt"))
        self.assertRaisesRegex(ValueError, "for 8 devices, the job has 16",
                               self.script(devices=16).apply, self.network())
        self.assertEqual(fake.calls, [])
        os.remove(self.path("stages", "stage_1.ckpt"))
        self.assertRaisesRegex(FileNotFoundError, "stage_1.ckpt", script.set_context, 7)

    def test_propagation(self):
        """Optimizer sharding, micro-batches on one stage."""
        self.bundle(MIX, "--executor=mindspore-sharding-propagation", "--micro-batches=2",
                    "--enable-parallel-optimizer", "--optimizer-level=level2",
                    "--parallel-optimizer-threshold=24", "--optimizer-weight-shard-size=2")
        self.script().apply(self.network())
        self.assertEqual(fake.calls[2:7], [
            ("GradAccumulation", {"micro_size": 2}),
            ("AutoParallel", "sharding_propagation"),
            ("load_param_strategy_file", self.path("strategy.ckpt")),
            ("dataset_strategy", "data_parallel"),
            ("hsdp", {"shard_size": 2, "threshold": 24, "optimizer_level": "level2"})])
        context = self.settings("set_auto_parallel_context")
        self.assertEqual(context["search_mode"], "sharding_propagation")
        self.assertEqual(context["strategy_ckpt_load_file"], "strategy.ckpt")
        self.assertEqual(context["parallel_optimizer_config"], {
            "gradient_accumulation_shard": True, "parallel_optimizer_threshold": 24,
            "optimizer_weight_shard_size": 2, "optimizer_level": "level2"})

    def test_settings(self):
        """All that differs from a default is said, in both spellings."""
        self.bundle(MIX, "--enable-parallel-optimizer", "--optimizer-level=level3", "--gradients-mean",
                    "--no-gradient-fp32-sync", "--force-fp32-communication", "--no-loss-repeated-mean",
                    "--all-reduce-fusion-config=2,4", "--full-batch", "--no-enable-alltoall",
                    "--parameter-broadcast", "--communi-parallel-mode=no_group_parallel",
                    "--interleave-num=2", "--dataset-broadcast-opt-level=1",
                    "--optimizer-weight-shard-aggregated-save")
        fused = dict(FUSED, allreduce={"mode": "index", "config": [2, 4]})
        self.script().apply(self.network())
        self.assertEqual(fake.calls[2:], [
            ("MicroBatchInterleaved", {"interleave_num": 2}),
            ("AutoParallel", "sharding_propagation"),
            ("load_operator_strategy_file", self.path("operator_strategies.json")),
            ("dataset_strategy", "full_batch"),
            ("hsdp", {"shard_size": -1, "threshold": 64, "optimizer_level": "level3"}),
            ("comm_fusion", fused), ("enable_fp32_communication",), ("enable_gradients_mean",),
            ("disable_gradient_fp32_sync",), ("disable_loss_repeated_mean",),
            ("transformer_opt", self.path("parallel_speed_up.json"))])
        self.assertEqual(read(self.dir, "parallel_speed_up.json"), {"dataset_broadcast_opt_level": 1})
        self.assertEqual(self.settings("set_auto_parallel_context"), {
            "device_num": 8, "parallel_mode": "auto_parallel", "search_mode": "sharding_propagation",
            "full_batch": True, "dataset_strategy": "full_batch", "enable_parallel_optimizer": True,
            "parallel_optimizer_config": {"parallel_optimizer_threshold": 64,
                                          "optimizer_level": "level3"},
            "optimizer_weight_shard_aggregated_save": True, "pipeline_stages": 1, "comm_fusion": fused,
            "all_reduce_fusion_config": [2, 4], "force_fp32_communication": True,
            "gradients_mean": True, "gradient_fp32_sync": False, "loss_repeated_mean": False,
            "enable_alltoall": False, "parameter_broadcast": True,
            "communi_parallel_mode": "no_group_parallel"})
        self.assertEqual(self.settings("set_context"), {
            "ascend_config": {"parallel_speed_up_json_path": "parallel_speed_up.json"}})

    def test_dataset(self):
        """Parts as tuples; a Layout where the parts of one rank do not follow one another."""
        for given, taken in (
                ("[[4,1,1,1],[4]]", ((4, 1, 1, 1), (4,))),
                ('[{"device_matrix":[4,2],"alias_name":["a","b"],"tensor_map":["a","None","None","None"]},'
                 '[1]]',
                 (("Layout", (1, 4, 2), ("outer", "parts", "inner"), ("parts", "None", "None", "None")),
                  ("Layout", (8, 1, 1), ("outer", "parts", "inner"), ("None",))))):
            self.bundle(MIX, "--dataset-strategy=" + given)
            self.script().apply(self.network())
            self.assertIn(("dataset_strategy", taken), fake.calls)
            self.assertNotIn("full_batch", self.settings("set_auto_parallel_context"))

    def test_fusion(self):
        self.bundle(MIX, "--comm-fusion-allreduce-mode=size", "--comm-fusion-allreduce-config=32")
        self.assertEqual(self.settings("AutoParallel")["comm_fusion"],
                         dict(FUSED, allreduce={"mode": "size", "config": 32}))
        self.bundle(MIX, "--no-comm-fusion-openstate")
        self.assertEqual(self.settings("AutoParallel")["comm_fusion"], {"openstate": False})

    def test_data_parallel(self):
        """The class AutoParallel does not have this mode."""
        self.bundle(MIX, "--parallel-mode=data_parallel")
        self.assertEqual(self.settings("AutoParallel"), {})
        script = self.script()
        net = self.network()
        self.assertIs(script.apply(net), net)
        self.assertEqual(fake.calls[-1][0], "set_auto_parallel_context")
        self.assertEqual(fake.calls[-1][1]["parallel_mode"], "data_parallel")
        self.assertNotIn("strategy_ckpt_config", fake.calls[-1][1])
        self.assertRaisesRegex(ValueError, "data_parallel", script.configure, net)

    def test_generic(self):
        self.bundle(MIX, "--executor=generic")
        self.assertEqual(sorted(os.listdir(self.dir)), [
            "README.txt", "megatron_args.txt", "mindformers.yaml", "plan.json", "strategy.ckpt"])

    def test_layers(self):
        """Recomputed layers in the segments of a pipeline."""
        self.bundle(GPT, "--batch=16", "--micro-batches=8", "--pipeline-stages=2",
                    "--pipeline-segments=2", "--recompute=full", "--recompute-slice-activation")
        marks = read(self.dir, "recompute.json")
        self.assertEqual(marks["cells"], [
            {"cell": "network.backbone.blocks.%d" % i, "mp_comm_recompute": True,
             "parallel_optimizer_comm_recompute": False, "recompute_slice_activation": True}
            for i in range(24)])
        self.assertEqual((marks["primitives"], marks["not_applicable"]), ([], []))
        self.assertEqual(set(self.placed("stage").values()), {0, 1})
        self.assertEqual(set(self.placed("segment").values()), {0, 1})
        self.assertEqual(self.settings("AutoParallel")["pipeline"], {
            "stages": 2, "output_broadcast": False, "interleave": True, "scheduler": "1f1b"})
        self.script().apply(self.network())
        self.assertEqual(sum(call[0] == "Cell.recompute" for call in fake.calls), 24)
        self.assertIn(("pipeline_segment", "network.head", 1), fake.calls)

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
            "primitives": [], "not_applicable": []})
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

    def test_template(self):
        self.bundle(MIX)
        names = read(self.dir, "operator_strategies.json")
        items = {re.sub("-op0$", "-op7", name): {"stage": 0, "parallel_strategy": value["parallel_strategy"]}
                 for name, value in names["parallel_strategy_item"].items()}
        template = os.path.join(self.at, "saved.json")
        for drop in (False, True):
            if drop:
                del items[[name for name in items if "layer2-Dense/MatMul" in name][0]]
            with open(template, "w", encoding="utf-8") as file:
                json.dump({"current_stage": 0, "parallel_strategy_item": items,
                           "parallel_out_strategy_item": {}}, file)
            args = ["search", MIX] + MACHINE + ["--bundle", "b", "--operator-strategy-template", template]
            if drop:
                self.refused(4, "layer2-Dense/MatMul", *args)
                continue
            self.assertEqual(self.run_program(*args).returncode, 0)
            filled = read(self.dir, "operator_strategies.json")["parallel_strategy_item"]
            self.assertEqual(list(filled), list(items))
            self.assertEqual([v["parallel_strategy"] for v in filled.values()],
                             [v["parallel_strategy"] for v in items.values()])
        self.refused(2, "--bundle DIR is missing", "search", MIX, *MACHINE,
                     "--operator-strategy-template", template)
        with open(template, "w", encoding="utf-8") as file:
            file.write("{")
        self.refused(3, "saved.json:1", "search", MIX, *MACHINE, "--bundle", "b",
                     "--operator-strategy-template", template)

    def test_older_bundle(self):
        """What it had more goes; files of others stay."""
        self.bundle(MIX, "--pipeline-stages=4", "--micro-batches=4")
        for name in ("mine.txt", "stages/mine.txt"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("mine")
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        self.assertEqual(sorted(os.listdir(self.path("stages"))),
                         ["mine.txt", "stage_0.ckpt", "stage_1.ckpt"])
        self.bundle(MIX)
        self.assertEqual(os.listdir(self.path("stages")), ["mine.txt"])
        self.assertFalse(os.path.exists(self.path("stage_config.json")))
        self.assertTrue(os.path.exists(self.path("mine.txt")))
        os.remove(self.path("stages/mine.txt"))
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        self.bundle(MIX)
        self.assertFalse(os.path.exists(self.path("stages")))

    def test_evaluate(self):
        """A bundle's checkpoint gives its plan again."""
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        first = read(self.dir, "operator_strategies.json")
        os.rename(self.path("strategy.ckpt"), os.path.join(self.at, "net.ckpt"))
        os.rename(self.path("stage_config.json"), os.path.join(self.at, "stages.json"))
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4", "--strategy=net.ckpt",
                    "--stage-config=stages.json", command="evaluate")
        again = read(self.dir, "operator_strategies.json")["parallel_strategy_item"]
        for name, value in first["parallel_strategy_item"].items():
            if "MatMul" in name:
                self.assertEqual(again[name], value)

    def test_refused(self):
        search = ["search", MIX] + MACHINE
        with open(os.path.join(self.at, "file"), "w", encoding="utf-8") as file:
            file.write("a file")
        self.refused(2, "file: is no folder", *search, "--bundle", "file")
        self.refused(2, "is no folder", *search, "--bundle", "-")
        self.refused(6, "cannot write", *search, "--bundle", "no/such")
        self.refused(2, "contradict", "search", MIX, "--chip=ascend910b3",
                     "--min-devices", "--bundle", "b")
        os.mkdir(self.dir)
        os.mkfifo(self.path("README.txt"))
        self.refused(2, "README.txt: is in the way", *search, "--bundle", "b")
        os.remove(self.path("README.txt"))
        with open(self.path("README.txt"), "w", encoding="utf-8") as file:
            file.write("somebody's")
        self.refused(2, "README.txt: is in the way", *search, "--bundle", "b")
        os.rename(self.path("README.txt"), self.path("settings.txt"))
        os.mkdir(self.path("stages"))
        with open(self.path("stages/stage_0.ckpt"), "w", encoding="utf-8") as file:
            file.write("somebody's")
        self.refused(2, "stages: is in the way", *search, "--bundle", "b")
        os.remove(self.path("stages/stage_0.ckpt"))
        with open(MIX, encoding="utf-8") as file, open(self.path("plan.json"), "w",
                                                       encoding="utf-8") as copy:
            copy.write(file.read())
        self.refused(2, "is also an input", "search", "b/plan.json", *MACHINE, "--bundle", "b/")
        self.refused(2, "two outputs", *search, "--bundle", "b", "--plan-out=b/../b/plan.json")
        self.refused(6, "/dev/full", *search, "--bundle", "c", "--pipeline-stages=2",
                     "--micro-batches=4", "--plan-out=/dev/full")
        self.refused(5, "does not fit", *search, "--hybrid=dp=8", "--memory=1MB", "--bundle", "c")

    def test_stopped(self):
        """A search that is stopped leaves a whole bundle, or none."""
        model = os.path.join(SOURCE, "models", "gpt3_13b.json")
        done = self.run_program("search", model, "--device-num=64", "--chip=ascend910b",
                                "--time-limit=0.1", "--bundle", "b")
        self.assertIn(done.returncode, (7, 8))
        if done.returncode == 7:
            self.assertEqual(self.files(), [])
            return
        with open(self.path("README.txt"), encoding="utf-8") as file:
            self.assertIn("the search was stopped early", file.read())
        self.assertFalse(read(self.dir, "plan.json")["search"]["complete"])
        self.assertEqual(len(os.listdir(self.dir)), 10)

    def test_readme(self):
        def readme():
            with open(self.path("README.txt"), encoding="utf-8") as file:
                return file.read()

        self.bundle(MIX)
        self.assertIn("multiple_mix on 8 devices\n", readme())
        self.assertIn("NN_pre_auto_parallel", readme())
        self.assertNotIn("Each rank loads", readme())
        self.assertNotIn("decides otherwise", readme())
        self.bundle(MIX, "--executor=mindspore-semi-auto", "--pipeline-stages=2", "--micro-batches=4")
        self.assertIn("ranks 4 to 7  stages/stage_1.ckpt", readme())
        self.assertIn("Pipeline(net, 4)", readme())
        self.assertIn("step_parallel_end", readme())
        self.assertIn("What the executor decides otherwise", readme())
        self.assertNotIn("out_strategy", readme())
        for name in os.listdir(self.dir):
            if name != "stages":
                self.assertIn("\n%-24s  " % name, readme())
        sharded = [GPT, "--batch=16", "--hybrid=dp=2,tp=4,sp=1"]
        self.bundle(*sharded, command="evaluate")
        self.assertNotIn("have an out_strategy", readme())
        self.bundle(*sharded, "--executor=mindspore-semi-auto", command="evaluate")
        self.assertIn("operators have an out_strategy, which a strategy checkpoint cannot hold", readme())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
