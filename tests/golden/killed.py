# SPDX-License-Identifier: Apache-2.0
"""Usage: killed.py PROGRAM SOURCE_ROOT [KILL_AT_LIBRARY]

Runs that are killed at any moment: before each call that changes files, and at random. What was there is whole
afterwards, the next run works as if nothing had been, and nothing is left of the one that was killed.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
LIBRARY = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
from bundle_case import BundleCase, MACHINE, MIX, PROGRAM, read  # noqa: E402

FILES = ["--bundle=b", "-o", "net.ckpt", "--plan-out=p.json", "--global-rank=0"]
FIRST = ["search", MIX, *MACHINE, *FILES, "--pipeline-stages=4", "--micro-batches=4"]
SECOND = ["search", MIX, *MACHINE, *FILES, "--pipeline-stages=2", "--micro-batches=4"]
ONE_STAGE = ["search", MIX, *MACHINE, *FILES]


class Killed(BundleCase):
    def tree(self):
        """{name: contents} of all files."""
        found = {}
        for at, _, names in os.walk(self.at):
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.at)] = file.read()
        return found

    def lay(self, tree):
        for name in os.listdir(self.at):
            path = os.path.join(self.at, name)
            (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
        for name, held in tree.items():
            path = os.path.join(self.at, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(held)

    def done(self, args):
        done = self.run_program(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning:", done.stderr)
        return self.tree()

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"}
        return dict(env, **more)

    def start(self, args, **more):
        return subprocess.Popen([PROGRAM, *args], cwd=self.at, env=self.environment(**more),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def whole(self, before, after, moment):
        """Every file is as one of the two runs wrote it; a bundle that checks is that of one run."""
        now = {name: held for name, held in self.tree().items()
               if not (os.path.basename(name).startswith(".") and name.endswith(".tmp"))}
        now.pop(os.path.join("b", ".autopar-plan.lock"), None)
        for name, held in now.items():
            self.assertIn(held, (before.get(name), after.get(name)), "%s, killed at %s" % (name, moment))
        for name in before:
            if name in after:
                self.assertIn(name, now, "killed at %s" % moment)
        if os.path.exists(self.dir):
            bundle = {name: held for name, held in now.items() if name.startswith("b" + os.sep)}
            of_one = any(bundle == {name: held for name, held in tree.items() if name.startswith("b" + os.sep)}
                         for tree in (before, after))
            code = self.run_program("check", "b").returncode
            self.assertEqual(code == 0, of_one and bool(bundle), "killed at %s" % moment)

    def again(self, before, after, moment):
        """The next run."""
        self.whole(before, after, moment)
        now = self.done(SECOND)
        self.assertEqual(sorted(now), sorted(after), "killed at %s" % moment)
        self.assertEqual(now, after, "killed at %s" % moment)

    def before_and_after(self):
        first = self.done(FIRST)
        self.lay({})
        second = self.done(SECOND)
        self.lay(first)
        self.assertEqual(sorted(self.done(SECOND)), sorted(second))
        return first, second

    def every_call(self, before, after):
        for at in range(1, 2000):
            self.lay(before)
            run = self.start(SECOND, LD_PRELOAD=LIBRARY, KILL_AT=str(at))
            if run.wait() != -signal.SIGKILL:
                self.assertEqual(run.returncode, 0)
                return at
            self.again(before, after, "call %d" % at)
        return self.fail("the run does not end")

    @unittest.skipUnless(LIBRARY, "the program cannot be given a library")
    def test_every_call(self):
        """Over files of another run; the first run of all."""
        first, second = self.before_and_after()
        self.assertGreater(self.every_call(first, second), 100)
        self.assertGreater(self.every_call({}, second), 80)

    @unittest.skipUnless(LIBRARY, "the program cannot be given a library")
    def test_killed_again_and_again(self):
        """What several runs left that were killed in turn."""
        first, second = self.before_and_after()
        seed = int(os.environ.get("AP_SEED", "20240229"))
        print("AP_SEED=%d" % seed)
        chosen = random.Random(seed)
        for _ in range(int(os.environ.get("AP_CASES", "6"))):
            self.lay(first)
            moments = [chosen.randrange(1, 150) for _ in range(4)]
            for at in moments:
                self.start(chosen.choice((FIRST, SECOND)), LD_PRELOAD=LIBRARY, KILL_AT=str(at)).wait()
            if chosen.random() < 0.5:
                self.again(first, second, "calls %s" % moments)
                continue
            done = self.run_program(*ONE_STAGE)  # which leaves the stage files beside the checkpoint alone
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([name for name in self.tree() if os.path.basename(name)[0] == "."], [])

    def test_any_time(self):
        first, second = self.before_and_after()
        began = time.monotonic()
        self.done(FIRST)
        length = time.monotonic() - began
        for i in range(25):
            self.lay(first)
            run = self.start(SECOND)
            time.sleep(length * i / 20)
            run.kill()
            run.wait()
            self.again(first, second, "%.4f s" % (length * i / 20))

    @unittest.skipUnless(LIBRARY, "the program cannot be given a library")
    def test_two_writers(self):
        """While a run is at work on a bundle, another is refused, and takes nothing of the first away."""
        second = self.done(SECOND)
        self.lay({})
        run = self.start(SECOND, LD_PRELOAD=LIBRARY, HOLD_AT="40")
        os.waitid(os.P_PID, run.pid, os.WSTOPPED)
        held = self.tree()
        self.assertTrue(any(name.endswith(".tmp") for name in held))
        other = self.run_program(*FIRST)
        self.assertEqual(other.returncode, 6, other.stderr)
        self.assertIn("b: another run of autopar-plan is at work on it", other.stderr)
        self.assertEqual(self.tree(), held)
        beside = self.run_program(*[arg for arg in SECOND if arg != "--bundle=b"])
        self.assertEqual(beside.returncode, 0, beside.stderr)
        run.send_signal(signal.SIGCONT)
        self.assertEqual(run.wait(), 0)
        self.assertEqual(self.tree(), second)

    def test_many_writers(self):
        """Of runs that begin together each ends whole or is refused; the bundle is that of one."""
        runs = [self.start(["search", MIX, *MACHINE, "--bundle=b", "--pipeline-stages=%d" % n,
                            "--micro-batches=4"]) for n in (1, 2, 4) * 4]
        codes = [run.wait() for run in runs]
        self.assertLessEqual(set(codes), {0, 6})
        self.assertIn(0, codes)
        self.assertEqual(self.run_program("check", "b").returncode, 0)
        stages = read(self.dir, "plan.json")["settings"]["pipeline_stages"]
        self.assertEqual(len([name for name in self.tree() if "stage_" in name and ".ckpt" in name]),
                         stages if stages > 1 else 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
