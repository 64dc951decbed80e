# SPDX-License-Identifier: Apache-2.0
"""Usage: json_out.py PROGRAM SOURCE_ROOT

With --json standard output is one JSON value, whatever the exit code: the result, or autopar-failure/1
with the messages that standard error has as text.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
STATUS = {2: "usage", 3: "malformed", 4: "wrong", 5: "infeasible", 6: "io", 7: "limit", 70: "bug"}
KEYS = ["level", "file", "line", "column", "pointer", "operator", "check", "text"]
ENV = {k: v for k, v in os.environ.items() if k not in ("RANK_TABLE_FILE", "NO_COLOR")}
ENV["AUTOPAR_PLAN_MODELS"] = str(ROOT / "models")
failed = ran = 0


def run(*args):
    p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


def fail(args, what):
    global failed
    failed += 1
    print("FAILED:", " ".join(args), ":", what)


def ask(args, condition, what):
    if not condition:
        fail(args, what)


def place_of(m):
    """A message's line on standard error, as far as its parts are not cut there."""
    at = ""
    if m["file"]:
        at = m["file"] + "".join(f":{m[k]}" for k in ("line", "column") if m[k]) + ": "
    return f"autopar-plan: {m['level']}: {at}{m['pointer'] or ''}"


def check_messages(args, doc, err):
    for key, level in (("errors", "error"), ("warnings", "warning"), ("notes", "note")):
        ask(args, isinstance(doc.get(key), list), f"no {key}")
        ask(args, doc["counts"][key] >= len(doc[key]), f"{key} are not counted")
        for m in doc[key]:
            ask(args, list(m)[:8] == KEYS, f"keys {list(m)}")
            ask(args, m["level"] == level, f"{m['level']} among the {key}")
            ask(args, place_of(m) in err and m["text"] in err, f"not on standard error: {m}")


def failure(code, *args):
    """A run that ends with this code, its one JSON object checked."""
    global ran
    ran += 1
    got, out, err = run(*args, "--json")
    ask(args, got == code, f"ended with {got}, not {code}: {err}")
    try:
        doc = json.loads(out)
    except ValueError as e:
        fail(args, f"{e}: {out[:200]!r}")
        return {}
    ask(args, doc["schema"] == "autopar-failure/1", "schema")
    ask(args, doc["exit"] == got and doc["status"] == STATUS[got], f"{doc['status']} {doc['exit']}")
    ask(args, len(doc["errors"]) >= 1, "no error")
    check_messages(args, doc, err)
    return doc


def listed(*args):
    global ran
    ran += 1
    code, out, err = run("list", *args, "--json")
    ask(args, code == 0 and isinstance(json.loads(out), list), f"{code}, {out[:100]!r}")
    return json.loads(out)


def failures():
    mix = str(ROOT / "models/multiple_mix.json")
    machine = ["--device-num", "8", "--chip", "a100-80"]
    for command in (["search"], ["evaluate"]):
        extra = ["--hybrid", "dp=8"] if command == ["evaluate"] else []
        failure(2, *command, mix, *machine, "--no-such-option")
        failure(2, *command, mix, "--device-num", "8")
        failure(2, *command)
        failure(3, *command, str(ROOT / "LICENSE"), *machine, *extra)
        failure(4, *command, str(ROOT / "tests/bad/graph/operator-known.json"), *machine, *extra)
        failure(6, *command, "missing.json", *machine, *extra)
        failure(6, *command, mix, *machine, *extra, "--plan-out", "missing/plan.json")
        failure(7, *command, mix, *machine, *extra, "--max-input", "1K")
    failure(7, "search", mix, *machine, "--time-limit", "0")
    out_of_memory = failure(7, "search", mix, *machine, "--planner-memory", "64K")
    ask(["out of memory"], "out of memory" in out_of_memory["errors"][0]["text"], "text")
    failure(2, "no-such-command")
    failure(2, "render", mix)
    failure(2, "diff", mix)
    failure(3, "diff", str(ROOT / "README.md"), mix)
    failure(4, "diff", mix, mix)
    failure(2, "list", "colours")
    failure(2, "list", "operators", "MatMull")
    failure(6, "check", "--against", mix, "missing.json")

    short = failure(5, "search", mix, *machine, "--memory", "20MB")
    need, have, lack = (short["shortfall"][k] for k in ("needed_bytes", "usable_bytes", "short_bytes"))
    ask(["shortfall"], have == 20 << 20 and need - have == lack > 0, short["shortfall"])
    ask(["shortfall"], short["errors"][0]["check"] == "memory" and short["notes"], "notes")
    short = failure(5, "search", mix, *machine, "--memory", "20MB", "--hybrid", "dp=8")
    ask(["shortfall"], short["shortfall"]["usable_bytes"] == 20 << 20, short["shortfall"])
    wrong = failure(4, "search", str(ROOT / "tests/bad/graph/operator-known.json"), *machine)["errors"][0]
    ask(["place"], wrong["line"] and wrong["column"] and wrong["pointer"] and wrong["operator"], wrong)

    # who reads a file from standard output gets nothing else
    code, out, err = run("search", mix, *machine, "--memory", "20MB", "--json", "-o", "-")
    ask(["-o -"], code == 5 and out == "" and '"autopar-failure/1"' in err, out)
    # nothing but text without it
    code, out, err = run("search", mix, *machine, "--memory", "20MB")
    ask(["text"], code == 5 and out == "", out)
    # results are what they were
    code, out, err = run("search", mix, *machine, "--json")
    ask(["result"], code == 0 and "errors" not in json.loads(out), out)


def checks():
    global ran
    for kind in ("graph", "rank_table"):
        for bad in sorted((ROOT / "tests/bad" / kind).iterdir()):
            args = ["check", str(bad), "--json", "--max-errors", "1000"]
            code, out, err = run(*args)
            doc = json.loads(out)
            ran += 1
            ask(args, doc["schema"] == "autopar-check/1", "schema")
            ask(args, (code == 0) == (not doc["errors"]), f"{code}, {len(doc['errors'])} errors")
            ask(args, doc["files"][0]["errors"] == doc["counts"]["errors"], "counts")
            check_messages(args, doc, err)


def lists():
    for topic in ("chips", "engines", "models", "operators", "optimizers", "settings", "software"):
        items = listed(topic)
        names = [i.get("name") for i in items]
        ask([topic], len(items) > 1 and all(names) and len(set(names)) == len(names), names)
        for name in names[:3] + names[-3:]:
            one = listed(topic, name)
            ask([topic, name], len(one) == 1 and one[0]["name"] == name, one)
    ask(["MatMul"], listed("operators", "MatMul")[0]["rows"][0]["rule"], "no rule")
    chip = json.loads((ROOT / "chips/a100-80.json").read_text())
    ask(["a100"], listed("chips", "a100")[0] == chip, "another profile")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    failures()
    checks()
    lists()
print(f"{ran} runs, {failed} failures")
sys.exit(ran < 300 or failed > 0)
