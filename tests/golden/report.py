#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: report.py PROGRAM SOURCE_ROOT

Reports of plans: the page is well-formed, complete in itself and small; its figures are the plan's; names that are
markup, or long, stay text; two plans beside one another.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_page

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"} | {
    "AUTOPAR_PLAN_MODELS": str(ROOT / "models"), "LC_ALL": "C"}
failed = 0


def fail(*what):
    global failed
    failed += 1
    print("FAILED:", *what)


def run(*args, code=0):
    done = subprocess.run([PROGRAM, *args, "-q"], capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        fail(*args, "->", done.returncode, done.stderr[:300])
    return done.stderr


def report(*args):
    run("render", *args, "--report", "out.html")
    text = pathlib.Path("out.html").read_text(encoding="utf-8")
    root, faults = report_page.check(text)
    for fault in faults[:10]:
        fail(*args, fault)
    return root, text


def seconds(s):
    """As the program shows them: three digits and a unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if s >= size or unit == "ns":
            v = s / size
            break
    digits = 0 if v >= 99.95 else 1 if v >= 9.995 else 2
    return f"{v:.{digits}f} {unit}"


def gib(n):
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n >= 1 << shift:
            v = n / (1 << shift)
            digits = 0 if v >= 99.95 else 1 if v >= 9.995 else 2
            return f"{v:.{digits}f} {unit}"
    return f"{n} B"


def number(text):
    """The value of a text that the program shows, in seconds or bytes."""
    value, unit = re.match(r"([0-9.e+-]+) ?([A-Za-z]*)", text).groups()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60, "h": 3600, "d": 86400, "B": 1,
                           "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}[unit]


def near(shown, value, what, slack=0.006):
    if abs(number(shown) - value) > slack * abs(value) + 1e-12:
        fail(what, "shows", shown, "of", value)


def rows(section):
    for body in section.all("tbody"):
        for tr in body.all("tr"):
            yield [td.text() for td in tr.all("td")]


def compare(root, plan):
    """Figures of the page with those of the plan file."""
    p = plan["prediction"]
    name, total = plan["graph"]["name"], max(m["total_bytes"] for m in p["memory"])
    title = next(root.all("h1")).text()
    if not title.startswith(f"{name} on {plan['machine']['devices']} {plan['machine']['chip']}: "):
        fail(name, "title", title)
    near(title.rsplit(": ", 1)[1], p["step_time_s"], "title")
    kpi = [b.text() for k in root.all("div", "kpi") for b in k.all("b")]
    near(kpi[0], p["step_time_s"], "step")
    if not any(k == gib(total) for k in kpi):
        fail(name, "memory", kpi, gib(total))
    if "measured" in p and f"± {p['measured']['error_percent']} %" not in kpi:
        fail(name, "error", kpi)
    if "measured" not in p and "not known" not in kpi:
        fail(name, "an error from nowhere", kpi)
    # shares of a step are 100 %
    widths = [float(re.search(r"width:([0-9.]+)%", i.attrs["style"])[1])
              for b in root.id("step").all("div", "bar") for i in b.all("i")]
    if abs(sum(widths) - 100) > 0.5:
        fail(name, "shares of a step", widths)
    key = next(root.id("step").all("div", "key")).text()
    for what, value in (("compute", p["compute_s"]), ("exposed communication", p["exposed_communication_s"]),
                        ("bubble", p["bubble_s"]), ("optimizer", p["optimizer_s"])):
        if value > 0:
            near(re.search(what + r" ([0-9.]+ \w+)", key)[1], value, what)
    # every stage is in a card, and in a row of the table of memory
    seen = []
    for card in root.id("stages").all("div", "card"):
        title = next(card.all("b")).text()
        ends = [int(n) for n in re.findall(r"\d+", title)] or [0]
        first, last = ends[0], ends[-1]
        seen += range(first, last + 1)
        shown = [s.text() for s in card.all("span")]
        stage = plan["stages"][first]
        if not any(s.startswith(gib(stage["memory_bytes"])) for s in shown):
            fail(name, title, "memory", shown)
        if not any(f"fwd {seconds(stage['forward_s'])} · bwd {seconds(stage['backward_s'])}" == s for s in shown):
            fail(name, title, "times", shown, seconds(stage["forward_s"]), seconds(stage["backward_s"]))
    if seen != list(range(len(plan["stages"]))):
        fail(name, "stages", seen)
    kinds = [th.text() for th in next(root.id("memory").all("thead")).all("th")]
    for row in rows(root.id("memory")):
        memory = p["memory"][int((re.match(r"\d+", row[0]) or ["0"])[0])]
        for kind, shown in zip(kinds[1:-3], row[1:]):
            if shown != gib(memory[kind + "_bytes"]):
                fail(name, "memory", kind, shown, memory[kind + "_bytes"])
    # what is recomputed, and whether twice the samples would fit
    lead = next(root.all("header")).text()
    recomputed = plan.get("recompute")
    for kind, counts in zip(recomputed["kinds"], recomputed["counts"]) if recomputed else ():
        if sum(counts) and f"{kind} in {sum(counts)} layer" not in lead:
            fail(name, "recomputed", kind, counts)
    if not recomputed and not any(o["recompute"] for o in plan["operators"]) and "nothing is recomputed" not in lead:
        fail(name, "recomputed?")
    shards = max(q["optimizer_shards"] for q in plan["parameters"])
    if (f"optimizer states are sharded over up to {shards} devices" in lead) != (shards > 1):
        fail(name, "optimizer shards", shards)
    left = [plan["machine"]["capacity_bytes"] - m["total_bytes"] - m["activations_bytes"] - m["recompute_bytes"] -
            m["temporary_bytes"] for m in p["memory"]]
    short, text = sum(v < 0 for v in left), root.id("stages").text()
    words = "would fit, and leave" if not short else f"{short} of {len(left)} stages would not fit; stage" \
        if len(left) > 1 else "would not fit, and lack"
    if total <= plan["machine"]["capacity_bytes"] and (words not in text or gib(abs(min(left))) not in text):
        fail(name, "room", words, min(left), text[-300:])
    # kernels by class are all kernels
    want = sum(o["cost"]["forward_s"] + o["cost"]["backward_s"] + o["cost"]["optimizer_s"] for o in plan["operators"])
    got = sum(number(row[2]) for row in rows(root.id("time")) if len(row) == 4)
    if abs(want - got) > 0.01 * want:
        fail(name, "kernels", want, got)
    # gradients are exchanged as often as they run: the last of each micro-batch's in a bucket
    micro = plan["settings"]["micro_batches"]
    each = sum(micro - 1 for o in plan["operators"] for c in o["communications"] if "each_micro_batch" in c)
    if plan["fusion"]:
        want = sum(b["kind"] != "AllGather" for b in plan["fusion"]) + each
        got = sum(int(row[4]) for row in rows(root.id("time")) if len(row) == 8 and row[1] == "gradients")
        if got != want:
            fail(name, "exchanges of gradients", got, want)
    # every operator and redistribution is in a line of the list
    counted = sum(int(row[2]) for row in rows(root.id("operators")))
    if counted != len(plan["operators"]) + len(plan["redistributions"]):
        fail(name, "operators", counted)
    times = [number(row[1]) for row in rows(root.id("operators"))]
    if times != sorted(times, reverse=True):
        fail(name, "operators are not by time")
    shares = sum(float(row[0].split()[0]) for row in rows(root.id("operators")))
    if abs(shares - 100) > 0.06 * len(times):
        fail(name, "shares of operators", shares)
    # passes drawn are passes of the plan
    if "slots" in plan["stages"][0]:
        rects = [r for r in root.id("schedule").all("rect") if r.attrs["class"] in ("bf", "bb", "bw")]
        if not 0 < len(rects) <= 2 * sum(len(s["slots"]) for s in plan["stages"]):
            fail(name, "passes", len(rects))
    # what else there was
    text = root.id("plans").text()
    for b in plan["baselines"]:
        if b["name"] not in text:
            fail(name, "baseline", b["name"])
    for other in plan.get("joint", {}).get("fastest", []):
        if other["decided"] not in text:
            fail(name, "of the fastest", other["decided"])


def plans():
    yield "mlp", ("search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b")
    yield "pipe", ("evaluate", "gpt3_1.3b", "--device-num", "32", "--chip", "a100-80", "--executor", "megatron",
                   "--micro-batches", "16", "--hybrid", "dp=2,tp=4,pp=4,sp=1")
    yield "dealt", ("search", "gpt3_1.3b", "--device-num", "16", "--chip", "ascend910b", "--micro-batches", "2",
                    "--batch", "32", "--enable-parallel-optimizer", "--optimizer-level", "level2")
    yield "full", ("evaluate", "gpt3_1.3b", "--device-num", "32", "--chip", "a100-80", "--executor", "megatron",
                   "--micro-batches", "16", "--hybrid", "dp=2,tp=4,pp=4,sp=1", "--batch", "1024", "--recompute",
                   "selective")
    yield "planned", ("plan", "gpt3_1.3b", "--device-num", "8", "--chip", "a100-80", "--executor", "megatron",
                      "--hybrid", "tp=1,2", "--pipeline-stages", "1")


def hostile():
    """A graph whose names are markup, or of a megabyte."""
    graph = json.loads((ROOT / "models" / "multiple_mix.json").read_text())
    evil = ["</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'><svg/onload=alert(1)>",
            "<!--", "&lt;b&gt; & &amp;", "]]>", "\u202egnihton\u202c", "new\nline\ttab\x1b[31m",
            "http://example.org/x?a=1&b=2", "x" * 1_000_000 + "<b>", "<" * 1000, "名前 ünï"]
    names = {}
    graph.pop("cells", None)
    for i, node in enumerate(graph["operators"]):
        node["name"] = f"{evil[i % len(evil)]} {i}"
        node["cell"] = evil[(i + 1) % len(evil)].replace(".", "")
    for kind in ("inputs", "parameters", "constants"):
        for i, t in enumerate(graph.get(kind, [])):
            names[t["name"]] = f"{evil[i % len(evil)]} {kind} {i}"
            t["name"] = names[t["name"]]
    for i, node in enumerate(graph["operators"]):
        for t in node["outputs"]:
            names[t["name"]] = f"{evil[i % len(evil)]} result {i}"
            t["name"] = names[t["name"]]
    for node in graph["operators"]:
        node["inputs"] = [names.get(t, t) for t in node["inputs"]]
    graph["outputs"] = [names.get(t, t) for t in graph["outputs"]]
    graph["name"] = "<h1>\"'&</h1><script>alert(2)</script>" + "y" * 1_000_000
    return graph


def main():
    for name, args in plans():
        run(*args, "--plan-out", f"{name}.json")
        root, text = report(f"{name}.json")
        compare(root, json.loads(pathlib.Path(f"{name}.json").read_text()))
        again = report(f"{name}.json")[1]
        if text != again:
            fail(name, "two reports differ")
    pathlib.Path("hostile.json").write_text(json.dumps(hostile()))
    run("search", "hostile.json", "--device-num", "8", "--chip", "ascend910b", "--plan-out", "hostile.plan.json",
        "--max-input", "256MB")
    root, text = report("hostile.plan.json", "--max-input", "256MB")
    if "<img" in text or "<b>" not in text or text.count("<script") != 1:
        fail("markup of names")
    # two plans: figures of both, and what changed
    run("search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b", "--hybrid", "dp=8", "--plan-out",
        "dp.json")
    root, text = report("mlp.json", "--against", "dp.json")
    old, new = (json.loads(pathlib.Path(f).read_text()) for f in ("dp.json", "mlp.json"))
    kpis = [next(k.all("b")).text() for k in root.all("div", "kpi")]
    if len(kpis) != 2:
        fail("not both plans", kpis)
    near(kpis[0], old["prediction"]["step_time_s"], "old step")
    near(kpis[1], new["prediction"]["step_time_s"], "new step")
    changed = sum(a["in_strategy"] != b["in_strategy"] or a["out_strategy"] != b["out_strategy"]
                  for a, b in zip(old["operators"], new["operators"]))
    section = root.id("changes")
    if f"\n{changed} of {len(new['operators'])} operators are cut otherwise" not in section.text() or \
            not re.search(r"products: hidden over \d instead of .*; step -", section.text()):
        fail("changes", section.text()[:100], changed)
    if sum(int(row[0]) for row in rows(section)) != changed:
        fail("changed operators")
    root, text = report("mlp.json", "--against", "mlp.json")
    if "0 of " not in root.id("changes").text():
        fail("nothing changed")
    # faults
    for args, code, words in (
            ((str(ROOT / "models" / "multiple_mix.json"), "--report", "x.html"), 4, "is an operator graph; expected a plan"),
            (("mlp.json",), 2, "--dot-out FILE or --report FILE"),
            (("mlp.json", "--report", "mlp.json"), 2, "is also an input"),
            (("mlp.json", "--report", "dp.json", "--against", "dp.json"), 2, "is also an input"),
            (("mlp.json", "--report", "x.html", "--against", "none.json"), 6, "none.json"),
            (("mlp.json", "--report", "nowhere/x.html"), 6, "nowhere")):
        if words not in run("render", *args, code=code):
            fail(*args, "says nothing of", words)
        if os.path.exists("x.html"):
            fail(*args, "wrote a file")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
    os.chdir("/")
print("failed" if failed else "reports: ok")
sys.exit(bool(failed))
