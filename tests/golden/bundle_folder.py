# SPDX-License-Identifier: Apache-2.0
"""Usage: bundle_folder.py PROGRAM SOURCE_ROOT

The folder of a bundle: what may be in it, what goes and what stays.
"""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
from bundle_case import BundleCase, MACHINE, MIX, SOURCE, fake, read  # noqa: E402


class Folder(BundleCase):
    def put(self, name, text):
        with open(os.path.join(self.at, *name.split("/")), "w", encoding="utf-8") as file:
            file.write(text)

    def warned(self, done):
        """The files that warnings name."""
        return sorted(re.findall("autopar-plan: warning: (.*?): ", done.stderr))

    def parts(self):
        return [os.path.relpath(os.path.join(at, name), self.dir)
                for at, _, names in os.walk(self.dir) for name in names]

    def test_manifest(self):
        """Size and hash of each file, and of the plan."""
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        manifest = read(self.dir, "manifest.json")
        self.assertEqual(list(manifest), ["schema", "tool", "plan_sha256", "files"])
        self.assertEqual(manifest["schema"], "autopar-bundle/1")
        self.assertEqual(manifest["tool"], read(self.dir, "plan.json")["tool"])
        self.assertEqual(manifest["plan_sha256"], self.part("plan.json")["sha256"])
        self.assertEqual(sorted(part["name"] for part in manifest["files"]),
                         sorted(set(self.parts()) - {"manifest.json"}))
        self.assertIn("stages/stage_1.ckpt", self.parts())
        for part in manifest["files"]:
            self.assertEqual(part, self.part(part["name"]))
        held = {name: self.part(name) for name in self.parts()}
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        self.assertEqual({name: self.part(name) for name in self.parts()}, held)

    def test_check(self):
        """A bundle is held against its manifest; by the script, too."""
        self.bundle(MIX)
        whole = {name: self.part(name) for name in self.parts()}
        for folder in ("b", "b/", "b/../b"):
            done = self.run_program("check", folder)
            self.assertEqual((done.returncode, done.stdout), (0, "%s: a bundle (10 files): nothing to report\n" % folder))
        self.assertEqual(self.run_program("check", "b", "--fail-if", "step_time>1us").returncode, 1)
        self.assertEqual(json.loads(self.run_program("check", "b", "--json").stdout)["files"], [
            {"file": "b", "kind": "bundle", "what": "10 files", "errors": 0, "warnings": 0}])
        os.makedirs(self.path("__pycache__"))  # Python's own
        self.put("b/__pycache__/apply_plan.pyc", "")
        self.assertEqual(self.run_program("check", "b").returncode, 0)
        for name in whole:
            with open(self.path(name), "rb") as file:
                held = file.read()
            for text, change, error in (
                    ("b/%s: is missing" % name, lambda path: os.remove(path), FileNotFoundError),
                    ("b/%s: is not what the bundle was made with" % name,
                     lambda path: self.put("b/" + name, held[:-1].decode("latin-1") + "?"), ValueError),
                    ("b/more.txt: is no file of the bundle",
                     lambda path: self.put("b/more.txt", "more"), None)):
                if name == "manifest.json" and error:
                    text = "b: holds a bundle without manifest.json" if error is FileNotFoundError else \
                        "b/manifest.json:"
                change(self.path(name))
                done = self.run_program("check", "b")
                self.assertIn(done.returncode, (4, 3 if name == "manifest.json" else 4), done.stderr)
                self.assertIn(text, done.stderr)
                if name != "apply_plan.py" and error:  # which would not load
                    script = self.script()
                    for call in (script.apply, script.prepare, script.configure,
                                 lambda net, script=script: script.set_context()):
                        self.assertRaisesRegex(error, name if error is FileNotFoundError or
                                               name != "manifest.json" else "", call, self.network())
                    self.assertEqual(fake.calls, [])
                with open(self.path(name), "wb") as file:
                    file.write(held)
                if os.path.exists(self.path("more.txt")):
                    os.remove(self.path("more.txt"))
        self.assertEqual(self.run_program("check", "b").returncode, 0)

    def test_parts(self):
        """The folder and its files are taken where a plan or a strategy is."""
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        for args in (["check", "b", "--against", MIX], ["check", "b/", "--against", MIX],
                     ["check", "b/plan.json", "--against", MIX],
                     ["check", "b/stages", "--against", MIX, *MACHINE],
                     ["check", "b/strategy.ckpt", "--against", MIX, *MACHINE],
                     ["render", "b/plan.json", "--dot-out", "x.dot"], ["diff", "b/plan.json", "b/plan.json"],
                     ["convert", "b/stages", "merged.ckpt"]):
            done = self.run_program(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("strategy.ckpt"), "rb") as one, open(os.path.join(self.at, "merged.ckpt"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        os.remove(self.path("README.txt"))
        done = self.run_program("check", "b", "--against", MIX)
        self.assertEqual(done.returncode, 4)
        self.assertIn("b/README.txt: is missing", done.stderr)

    def test_manifests_that_are_wrong(self):
        self.bundle(MIX)
        good = read(self.dir, "manifest.json")
        part = good["files"][0]

        def with_part(**more):
            return dict(good, files=[dict(part, **more)] + good["files"][1:])
        for wrong, text in (
                (dict(good, schema="autopar-bundle/2"), "autopar-bundle/1 is expected"),
                (dict(good, plan_sha256="0" * 64), "is not the hash of plan.json"),
                (dict(good, files={}), "array"),
                (with_part(name="../b/README.txt"), "another file in the folder"),
                (with_part(name="/etc/passwd"), "another file in the folder"),
                (with_part(name="manifest.json"), "another file in the folder"),
                (with_part(name="plan.json"), "plan.json is listed twice"),
                (with_part(sha256="abc"), "should be a SHA-256"),
                (with_part(bytes=-1), "bytes")):
            self.put("b/manifest.json", json.dumps(wrong))
            for path in ("b", "b/manifest.json"):
                done = self.run_program("check", path)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn(text, done.stderr)
        self.put("b/manifest.json", json.dumps(good))
        done = self.run_program("check", "b/manifest.json")
        self.assertEqual(done.stdout, "b/manifest.json: the manifest of a bundle (10 files): nothing to report\n")

    def test_where(self):
        """A new folder, an empty one, or one with a bundle; nothing else is touched."""
        search = ["search", MIX] + MACHINE
        self.refused(2, "is in the way: the folder is not empty and holds no bundle", *search, "--bundle", "/")
        self.assertFalse(os.path.exists("/manifest.json") or os.path.exists("/.autopar-plan.lock"))
        for name in (".hidden", "notes.txt"):
            os.mkdir(self.dir)
            self.put("b/" + name, "mine")
            self.refused(2, "is in the way", *search, "--bundle", "b")
            os.remove(self.path(name))
            os.rmdir(self.dir)
        self.refused(5, "", *search, "--hybrid=dp=8", "--memory=1MB", "--bundle", "b")
        self.assertFalse(os.path.exists(self.dir))
        os.mkdir(self.dir)
        self.refused(5, "", *search, "--hybrid=dp=8", "--memory=1MB", "--bundle", "b")
        self.bundle(MIX)
        held = self.parts()
        self.assertEqual(len(held), 11)
        os.remove(self.path("manifest.json"))  # as older versions left it
        self.assertEqual(self.warned(self.bundle(MIX)), [])
        self.assertEqual(sorted(self.parts()), sorted(held))
        self.put("b/shard.json", "{}")  # nobody's, but of the name of a file of bundles
        self.refused(2, "b/shard.json: is in the way of a file of the bundle, and no run wrote it", *search,
                     "--bundle", "b")
        os.remove(self.path("shard.json"))
        os.mkdir(self.path("plan.json.d"))
        self.assertEqual(self.warned(self.bundle(MIX)), ["b/plan.json.d"])

    def test_older_bundle(self):
        """What it had more goes; what others wrote or changed stays, and is named."""
        self.bundle(MIX, "--pipeline-stages=4", "--micro-batches=4")
        mine = ["b/mine.txt", "b/stages/mine.txt", "b/stages/stage_9.ckpt"]
        for name in mine:
            self.put(name, "mine")
        done = self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        self.assertEqual(self.warned(done), mine)
        self.assertEqual(sorted(os.listdir(self.path("stages"))),
                         ["mine.txt", "stage_0.ckpt", "stage_1.ckpt", "stage_9.ckpt"])
        done = self.bundle(MIX)
        self.assertEqual(self.warned(done), mine)
        self.assertEqual(sorted(os.listdir(self.path("stages"))), ["mine.txt", "stage_9.ckpt"])
        self.assertFalse(os.path.exists(self.path("stage_config.json")))
        for name in mine:
            os.remove(os.path.join(self.at, name))
        self.bundle(MIX, "--pipeline-stages=2", "--micro-batches=4")
        self.put("b/stages/stage_1.ckpt", "changed")
        self.put("b/stage_config.json", "{}")
        self.put("b/settings.json", "[]")
        done = self.bundle(MIX)
        self.assertEqual(self.warned(done), ["b/settings.json", "b/stage_config.json", "b/stages/stage_1.ckpt"])
        self.assertIn("b/settings.json: was changed after a run had written it, and is replaced", done.stderr)
        self.assertIn("b/stage_config.json: is no file of the bundle, and was changed after a run had written "
                      "it; it stays", done.stderr)
        self.assertEqual(os.listdir(self.path("stages")), ["stage_1.ckpt"])
        self.assertEqual(self.run_program("check", "b").returncode, 4)
        os.remove(self.path("stages/stage_1.ckpt"))
        os.remove(self.path("stage_config.json"))
        self.assertEqual(self.warned(self.bundle(MIX)), [])
        self.assertFalse(os.path.exists(self.path("stages")))
        self.assertEqual(self.run_program("check", "b").returncode, 0)

    def test_stage_files(self):
        """Beside a checkpoint, or converted into a folder: what runs wrote goes, what others wrote stays."""
        def search(stages, *args):
            done = self.run_program("search", MIX, *MACHINE, "--pipeline-stages=%d" % stages, "--micro-batches=4",
                                    "-o", "n.ckpt", *args)
            self.assertEqual(done.returncode, 0, done.stderr)
            return self.warned(done)

        def listed(folder):
            return sorted(os.listdir(os.path.join(self.at, folder)))
        self.assertEqual(search(4), [])
        for name in ("stage_7.ckpt", "other.json", "notes.txt"):
            self.put("n.stages/" + name, "mine")
        self.put("n.stages/stage_3.ckpt", "changed")
        self.assertEqual(search(2), ["n.stages/other.json", "n.stages/stage_3.ckpt", "n.stages/stage_7.ckpt"])
        self.assertEqual(listed("n.stages"), ["notes.txt", "other.json", "stage_0.ckpt", "stage_1.ckpt",
                                              "stage_3.ckpt", "stage_7.ckpt"])
        for name in ("stage_7.ckpt", "stage_3.ckpt", "other.json"):
            os.remove(os.path.join(self.at, "n.stages", name))
        self.put("n.stages/stage_0.ckpt", "changed")
        self.assertEqual(search(2), ["n.stages/stage_0.ckpt"])
        self.assertEqual(search(2), [])
        os.mkdir(os.path.join(self.at, "f"))
        self.put("f/stage_5.ckpt", "mine")
        for stages in (4, 2):
            search(stages)
            done = self.run_program("convert", "n.ckpt", "f/")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.warned(done), ["f/stage_5.ckpt"] if stages == 4 else
                             ["f/stage_2.ckpt", "f/stage_3.ckpt", "f/stage_5.ckpt"])
        self.assertEqual(len(listed("f")), 5)

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
        self.assertEqual(len(os.listdir(self.dir)), 9)  # no hybrid was looked for


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
