#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: picture.py PROGRAM SOURCE_ROOT

Pictures of plans: boxes and frames have room for their labels in a wide font even where they were laid out in a narrow
one, or without any; none is taller than two screens; stages that are alike are drawn once; what changed since an
older plan is marked.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"} | {
    "AUTOPAR_PLAN_MODELS": str(ROOT / "models"), "LC_ALL": "C.UTF-8"}
WIDE, NARROW = "DejaVu Sans", "DejaVu Sans Condensed"
failed = 0


def fail(*what):
    global failed
    failed += 1
    print("FAILED:", *what)


def run(*args):
    done = subprocess.run([PROGRAM, *args, "-q"], capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL)
    if done.returncode:
        fail(*args, "->", done.returncode, done.stderr[:300])


def draw(*args):
    run("render", *args, "--dot-out", "out.dot")
    return pathlib.Path("out.dot").read_text(encoding="utf-8")


def laid_out(dot, font, fonts=True):
    """Nodes and clusters by name: width and height in points, and the widths of their texts."""
    env = ENV | ({} if fonts else {"FONTCONFIG_FILE": "/dev/null", "FONTCONFIG_PATH": "/nonexistent"})
    done = subprocess.run(["dot", "-Tjson"], input=dot.replace("sans-serif", font), capture_output=True, text=True, env=env)
    out, doc = {}, json.loads(done.stdout)
    for o in doc.get("objects", []):
        texts = [(t["text"], t["width"]) for t in o.get("_ldraw_", []) if t["op"] == "T"]
        if "bb" in o:
            box = [float(v) for v in o["bb"].split(",")]
            out[o["name"]] = (box[2] - box[0], box[3] - box[1], texts)
        elif "width" in o:
            out[o["name"]] = (72 * float(o["width"]), 72 * float(o["height"]), texts)
    box = [float(v) for v in doc["bb"].split(",")]
    return out, box[2] - box[0], box[3] - box[1]


def check_widths(name, dot):
    wide = laid_out(dot, WIDE)[0]
    for what, layout in (("narrow", laid_out(dot, NARROW)[0]), ("no font", laid_out(dot, WIDE, False)[0])):
        if layout.keys() != wide.keys():
            fail(name, what, "other objects")
        texts = 0
        for key, (width, _, _) in layout.items():
            for text, w in wide[key][2]:
                texts += 1
                if w > width:
                    fail(name, what, key, f"has {width:.0f} points for {w:.0f} of {text!r}")
        if texts < 20:
            fail(name, "no texts")


def check_size(name, width, height):
    """Two screens at the size that text is read in."""
    if height > 2200 or width > 3200:
        fail(name, f"{width:.0f} by {height:.0f} points")


def check_circles(name, dot):
    """A line into another column leads to a circle, and goes on from one or more with the same number."""
    number = dict(re.findall(r"\t(c\d+)\t\[[^\]]*label=(\d+)", dot))
    ends, starts = {number[c] for c in re.findall(r"\tn\d+ -> (c\d+)\b", dot)}, [
        number[c] for c in re.findall(r"\t(c\d+) -> n\d+\b", dot)]
    if ends != set(starts) or len(number) != len(ends) + len(starts) or ends != {str(i + 1) for i in range(len(ends))}:
        fail(name, "circles", sorted(ends), starts)
    return len(ends)


def main():
    for model in sorted((ROOT / "models").glob("*.json")):
        _, width, height = laid_out(draw(str(model)), WIDE)
        check_size(model.stem, width, height)
    circles = 0
    plans = {
        "mlp": ("search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b"),
        "resnet": ("search", "resnet50", "--device-num", "8", "--chip", "ascend910b"),
        "stages": ("evaluate", "gpt3_13b", "--device-num", "128", "--chip", "a100-80", "--executor", "megatron",
                   "--micro-batches", "16", "--batch", "128", "--hybrid", "dp=2,tp=8,pp=8,sp=1"),
        "moe": ("evaluate", "mixtral_8x7b", "--device-num", "64", "--chip", "h200-141", "--executor", "generic",
                "--micro-batches", "4", "--hybrid", "dp=16,tp=4"),
        "experts": ("search", "mixtral_8x7b", "--device-num", "64", "--chip", "h200-141", "--micro-batches", "32",
                    "--enable-parallel-optimizer"),
        "gpt": ("search", "gpt3_13b", "--device-num", "64", "--chip", "ascend910b", "--micro-batches", "8",
                "--enable-parallel-optimizer"),
        "planned": ("plan", "gpt3_1.3b", "--device-num", "16", "--chip", "a100-80", "--executor", "megatron",
                    "--hybrid", "tp=1,2", "--pipeline-stages", "2"),
    }
    for name, args in plans.items():
        run(*args, "--plan-out", f"{name}.json")
        dot = draw(f"{name}.json")
        check_widths(name, dot)
        _, width, height = laid_out(dot, WIDE)
        check_size(name, width, height)
        circles += check_circles(name, dot)
        plan = json.loads(pathlib.Path(f"{name}.json").read_text())
        title = f"{plan['graph']['name']} on {plan['machine']['devices']} x {plan['machine']['chip']}: "
        if f"<B>{title}" not in dot:
            fail(name, "no title", title)
        drawn = sum(int(n) for n in re.findall(r">(\d+) operators in \d+ boxes<", dot))
        if drawn != len(plan["operators"]):
            fail(name, drawn, "operators of", len(plan["operators"]))
    if circles < 10:
        fail("few circles", circles)
    dot = draw("stages.json")
    stages = re.findall(r"<B>(stage [^<(]*)", dot)
    if [s.strip() for s in stages] != ["stage 0", "stage 1 to stage 6, alike", "stage 7"]:
        fail("stages are drawn as", stages)
    if not re.search(r"as in stage 1 to stage 6", dot):
        fail("layers of other stages are drawn again")
    # hues: what the plan cuts is in the legend, nothing else
    for name, words in (("resnet", {"batch"}), ("stages", {"batch", "sequence", "heads", "hidden", "vocabulary"})):
        legend = draw(f"{name}.json").split("node [")[0]
        shown = {w for w in ("batch", "sequence", "heads", "hidden", "vocabulary", "expert") if f">{w} 8<" in legend}
        if shown != words:
            fail(name, "legend", shown)
    # what changed
    run("search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b", "--hybrid", "dp=8", "--plan-out", "dp.json")
    old, new = (json.loads(pathlib.Path(f).read_text()) for f in ("dp.json", "mlp.json"))
    dot = draw("mlp.json", "--against", "dp.json", "--detail", "full")
    changed = sum(a["in_strategy"] != b["in_strategy"] or a["out_strategy"] != b["out_strategy"]
                  for a, b in zip(old["operators"], new["operators"]))
    if len(re.findall(r"<B>was ", dot)) != changed:
        fail("changed", len(re.findall(r"<B>was ", dot)), changed)
    if "<B>was " in draw("mlp.json", "--against", "mlp.json"):
        fail("nothing changed, and something is marked")
    if draw("mlp.json", "--against", "mlp.json") != draw("mlp.json"):
        fail("a plan held against itself is another picture")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
    os.chdir("/")
print("failed" if failed else "pictures: ok")
sys.exit(bool(failed))
