# SPDX-License-Identifier: Apache-2.0
"""Usage: picture_memory.py PROGRAM SOURCE_ROOT

Runs with less and less address space: where memory runs out while the picture is drawn, the run ends with a
message, and what else was asked for is there; nothing ever ends in a signal.
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"}
STEP = 1 << 20
failed = 0


def fail(*what):
    global failed
    failed += 1
    print("FAILED:", *what)


def limited(size, *args):
    def limit():
        if size:
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL,
                          preexec_fn=limit)


def clear():
    for f in os.listdir("."):
        os.unlink(f)


def least(*args):
    """The least size, in steps, with which a run ends with 0."""
    low, high = 0, 1 << 12
    while high - low > 1:
        at = (low + high) // 2
        clear()
        if limited(at * STEP, *args).returncode == 0:
            high = at
        else:
            low = at
    return high


def ladder(suffix):
    """Exit codes of a run from where all of it fits down to where nothing does."""
    graph = str(ROOT / "models/gpt3_1.3b.json")
    plain = ["search", graph, "--device-num", "8", "--chip", "a100-80", "--hybrid", "dp=8", "--memory", "1T", "-q",
             "--jobs", "1", "--plan-out", "plan.json", "-o", "net.ckpt"]
    drawn = [*plain, "--detail", "full", "--dot-out", "net" + suffix]
    bottom, top = least(*plain), least(*drawn)
    codes = set()
    clear()
    assert limited(0, *plain).returncode == 0
    want = {f: pathlib.Path(f).read_bytes() for f in ("plan.json", "net.ckpt")}
    for size in range(top + 2, max(bottom - 6, 8), -1):
        clear()
        p = limited(size * STEP, *drawn)
        files = set(os.listdir("."))
        codes.add(p.returncode)
        if p.returncode not in (0, 7, 8):
            fail(suffix, size, "ended with", p.returncode, p.stderr[-300:])
        expected = {0: {*want, "net" + suffix}, 8: set(want)}.get(p.returncode, set())
        if files != expected:
            fail(suffix, size, p.returncode, "left", sorted(files))
        for f in files & set(want):
            if pathlib.Path(f).read_bytes() != want[f]:
                fail(suffix, size, f, "is another")
    print(suffix, "plain", bottom, "MiB, drawn", top, "MiB, codes", sorted(codes))
    if not {0, 7, 8} <= codes:
        fail(suffix, "codes", codes)
    clear()
    return bottom, top


def render():
    """Where the picture is all that is asked for, it is the limit that was hit."""
    graph = str(ROOT / "models/gpt3_1.3b.json")
    args = ["render", graph, "--detail", "full", "--dot-out", "net.dot"]
    seen = set()
    for size in range(least(*args), 8, -1):
        clear()
        p = limited(size * STEP, *args)
        seen.add((p.returncode, "while the picture was drawn" in p.stderr))
        if p.returncode not in (0, 7) or bool(os.listdir(".")) != (p.returncode == 0):
            fail("render", size, "ended with", p.returncode, p.stderr[-300:], os.listdir("."))
        if (7, True) in seen and (7, False) in seen:
            break
    if (7, True) not in seen:
        fail("render never lacked memory for the picture", seen)
    clear()


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    ladder(".dot")
    render()
print(failed, "failures")
sys.exit(failed > 0)
