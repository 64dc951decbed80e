# SPDX-License-Identifier: Apache-2.0
"""Usage: bundle_folder.py PROGRAM SOURCE_ROOT

The folder of a bundle: what may be in it, what goes and what stays.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
from bundle_case import BundleCase, MACHINE, MIX, SOURCE, read  # noqa: E402


class Folder(BundleCase):
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
