# SPDX-License-Identifier: Apache-2.0
"""Usage: bundle.py PROGRAM SOURCE_ROOT

Bundles: each file is held, key by key, against the formats that MindSpore takes.
"""
import filecmp
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
from bundle_case import BundleCase, GPT, MACHINE, MIX, fake, read  # noqa: E402

AUTO = {"mode": "auto", "config": None}
FUSED = {"openstate": True, "allreduce": AUTO, "allgather": AUTO, "reducescatter": AUTO}


class Bundle(BundleCase):
    def test_every_operator(self):
        """The executor mindspore: all strategies by name."""
        self.bundle(MIX)
        self.assertEqual(sorted(os.listdir(self.dir)), [
            "README.txt", "apply_plan.py", "group_info.pb", "manifest.json", "megatron.sh",
            "mindformers.yaml", "operator_strategies.json", "plan.json", "recompute.json", "settings.json", "strategy.ckpt"])
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

    def test_norms(self):
        """Diagnostics of gradients, in both spellings."""
        norms = ["--dump-local-norm", "--dump-device-local-norm"]
        self.bundle(MIX, *norms)
        self.script().apply(self.network())
        self.assertEqual(fake.calls[-2:], [("print_local_norm",), ("enable_device_local_norm",)])
        context = self.settings("set_auto_parallel_context")
        self.assertIs(context["dump_local_norm"], True)
        self.assertIs(context["dump_device_local_norm"], True)
        self.assertNotIn("dump_local_norm_path", context)
        self.bundle(MIX, *norms, "--dump-local-norm-path=norms.json")  # no file of the bundle
        self.script().apply(self.network())
        self.assertEqual(fake.calls[-2:], [("dump_local_norm", "norms.json"), ("enable_device_local_norm",)])
        self.script(old=True).set_context()
        self.assertEqual(fake.calls[0][1]["dump_local_norm_path"], "norms.json")
        self.bundle(MIX, "--dump-local-norm-path=norms")
        self.assertEqual(self.settings("set_auto_parallel_context")["dump_local_norm_path"], "norms")
        self.assertIn('AutoParallel has no method for dump_local_norm_path "norms"', self.readme())
        self.bundle(MIX)
        self.assertNotIn("norm", self.readme())

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
            "README.txt", "ds_config.json", "manifest.json", "megatron.sh", "mindformers.yaml", "plan.json",
            "strategy.ckpt"])

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

    def test_readme(self):
        self.bundle(MIX)
        self.assertIn("multiple_mix on 8 devices\n", self.readme())
        self.assertIn("NN_pre_auto_parallel", self.readme())
        self.assertNotIn("Each rank loads", self.readme())
        self.assertNotIn("decides otherwise", self.readme())
        self.bundle(MIX, "--executor=mindspore-semi-auto", "--pipeline-stages=2", "--micro-batches=4")
        self.assertIn("ranks 4 to 7  stages/stage_1.ckpt", self.readme())
        self.assertIn("Pipeline(net, 4)", self.readme())
        self.assertIn("step_parallel_end", self.readme())
        self.assertIn("What the executor decides otherwise", self.readme())
        self.assertNotIn("out_strategy", self.readme())
        for name in os.listdir(self.dir):
            if name != "stages":
                self.assertIn("\n%-24s  " % name, self.readme())
        sharded = [GPT, "--batch=16", "--hybrid=dp=2,tp=4,sp=1"]
        self.bundle(*sharded, command="evaluate")
        self.assertNotIn("have an out_strategy", self.readme())
        self.bundle(*sharded, "--executor=mindspore-semi-auto", command="evaluate")
        self.assertIn("operators have an out_strategy, which a strategy checkpoint cannot hold", self.readme())
        apart = ["--parameter-broadcast", "--communi-parallel-mode=no_group_parallel", "--scale-sense=1024"]
        self.bundle(MIX, *apart)
        limits = self.readme().split("\nLimits\n")[1]
        self.assertIn('AutoParallel has no method for parameter_broadcast true, communi_parallel_mode '
                      '"no_group_parallel": use', limits)
        self.assertIn("scale_sense 1024 is an argument of PipelineGradReducer()", limits)
        self.bundle(MIX, *apart, "--parallel-mode=data_parallel")
        self.assertNotIn("has no method", self.readme())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
