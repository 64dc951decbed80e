# SPDX-License-Identifier: Apache-2.0
"""What the tests of bundles share: a folder, the program, and a bundle as it is read. Arguments of a test:
PROGRAM SOURCE_ROOT."""
import hashlib
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
import fake_mindspore as fake

MIX = os.path.join(SOURCE, "models", "multiple_mix.json")
GPT = os.path.join(SOURCE, "models", "gpt3_1.3b.json")
MACHINE = ["--device-num=8", "--chip=ascend910b3"]


def cell_of(name):
    """Of a full scope name the cell, as cells_and_names() of the network under Default/network gives it."""
    parts = re.sub("^recompute_", "", name).split("/")[1:-1]
    return ".".join(part.split("-")[0] for part in parts[1:])


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


class BundleCase(unittest.TestCase):
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

    def readme(self):
        with open(self.path("README.txt"), encoding="utf-8") as file:
            return file.read()

    def edited(self, name, value):
        """The script over a bundle, one JSON file of which is another, though the manifest has it so."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)
        manifest = read(self.dir, "manifest.json")
        for part in manifest["files"]:
            if part["name"] == name:
                part.update(self.part(name))
        with open(self.path("manifest.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        return self.script()

    def part(self, name):
        """What the manifest says of a file, from the file."""
        with open(self.path(*name.split("/")), "rb") as file:
            held = file.read()
        return {"name": name, "bytes": len(held), "sha256": hashlib.sha256(held).hexdigest()}

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
