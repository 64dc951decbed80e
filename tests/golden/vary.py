# SPDX-License-Identifier: Apache-2.0
"""Usage: vary.py PROGRAM SOURCE_ROOT

search --vary on random small graphs, numbers and ranges, held against searches with profiles in which the number is
what the table says: on both sides of each end, and within intervals that are called proven. AP_SEED repeats a run,
AP_CASES says how many cases there are.
"""
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SEED = int(os.environ.get("AP_SEED", "21"))
CASES = int(os.environ.get("AP_CASES", "14"))
TIE = 1e-6  # of steps: costs are whole quanta
WORK = pathlib.Path(tempfile.mkdtemp())
ENV = {k: v for k, v in os.environ.items() if k not in ("RANK_TABLE_FILE", "AUTOPAR_PLAN_MODELS")}
NUMBERS = [  # as said, in the profile, and which profile
    ("inner.bandwidth", ("levels", 0, "bandwidth_Bps"), "chip"),
    ("outer.bandwidth", ("levels", 1, "bandwidth_Bps"), "chip"),
    ("levels.outer.latency_s", ("levels", 1, "latency_s"), "chip"),
    ("inner.efficiency", ("levels", 0, "efficiency"), "chip"),
    ("memory.bandwidth", ("memory", "bandwidth_Bps"), "chip"),
    ("fixed_s.collective", ("fixed_s", "collective"), "chip"),
    ("efficiency.matmul", ("efficiency", "matmul"), "chip"),
    ("kernel_slowdown", ("kernel_slowdown",), "software"),
    ("collective_slowdown", ("collective_slowdown",), "software"),
    ("memory", None, None),
]


def network(rng):
    """A chain of products, with activations, sums with what came before, and a loss."""
    batch, width = rng.choice([32, 256, 2048]), rng.choice([256, 1024, 2048])
    params, ops, last, wide = [], [], "x", [("x", width)]
    for i in range(rng.randint(2, 5)):
        out = rng.choice([256, 512, 1024, 2048])
        params.append({"name": "l%d.weight" % i, "shape": [out, wide[-1][1]], "dtype": "float32"})
        ops.append({"name": "l%d/MatMul" % i, "type": "MatMul", "inputs": [last, "l%d.weight" % i],
                    "outputs": [{"name": "h%d" % i}], "attrs": {"transpose_b": True}})
        last = "h%d" % i
        same = [name for name, size in wide if size == out]
        if same and rng.random() < 0.6:
            ops.append({"name": "l%d/Add" % i, "type": "Add", "inputs": [last, rng.choice(same)],
                        "outputs": [{"name": "s%d" % i}]})
            last = "s%d" % i
        if rng.random() < 0.6:
            ops.append({"name": "l%d/ReLU" % i, "type": "ReLU", "inputs": [last], "outputs": [{"name": "r%d" % i}]})
            last = "r%d" % i
        wide.append((last, out))
    ops.append({"name": "loss/Mean", "type": "ReduceMean", "inputs": [last], "outputs": [{"name": "loss"}],
                "attrs": {"axis": [0, 1], "keep_dims": False}})
    return {"schema": "autopar-graph/1", "name": "chain", "optimizer": "adam",
            "inputs": [{"name": "x", "shape": [batch, width], "dtype": "float32", "batch_dim": 0}],
            "parameters": params, "constants": [], "operators": ops, "outputs": ["loss"]}


def run(*args):
    done = subprocess.run([str(PROGRAM), *args], cwd=WORK, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False)
    return done.returncode, done.stdout, done.stderr


def write(name, value):
    (WORK / name).write_text(json.dumps(value))


def searched(rest, profiles, number, value):
    """The step of a search where a number is another; no plan: infinite."""
    path, which = number[1:]
    if path is None:
        rest = rest + ["--memory", "%dB" % value]
    else:
        changed = json.loads(json.dumps(profiles[which]))
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        write(which + "_there.json", changed)
        rest = [which + "_there.json" if word == which + ".json" else word for word in rest]
    code, out, err = run("search", "net.json", *rest, "--json")
    assert code in (0, 5), (code, err)
    return json.loads(out)["prediction"]["step_time_s"] if code == 0 else math.inf


def check(rng, case):
    profiles = {"chip": json.loads((ROOT / "chips" / "a100-80.json").read_text()),
                "software": json.loads((ROOT / "chips" / "software" / "generic.json").read_text())}
    chip = profiles["chip"]
    chip.update(name="mine", aliases=[])
    profiles["software"].update(name="own", aliases=[])
    profiles["software"].setdefault("kernel_slowdown", 1.0)
    profiles["software"].setdefault("collective_slowdown", 1.0)
    chip["levels"] = chip["levels"][:2]
    for level, name in zip(chip["levels"], ("inner", "outer")):
        level["name"] = name
        level["bandwidth_Bps"] *= rng.choice([0.01, 0.03, 0.1, 1])
        level["latency_s"] *= rng.choice([0.01, 0.1, 1])
        level["efficiency"] = 0.2
    chip["efficiency"]["matmul"] = 0.2
    for unit in chip["fixed_s"]:
        chip["fixed_s"][unit] = rng.choice([1e-8, 1e-7, 1e-6])
    chip["devices_per_server"] = 4
    write("chip.json", chip)
    write("software.json", profiles["software"])
    write("net.json", network(rng))
    number = NUMBERS[case % len(NUMBERS)]
    span = rng.choice([(0.25, 4), (0.5, 2), (0.7, 1.4)])
    rest = ["--device-num", str(rng.choice([4, 8])), "--chip", "chip.json", "--software", "software.json",
            "--executor", "generic"]
    said = "%s=%gx..%gx" % (number[0], *span)
    if number[1] is None:
        code, out, err = run("search", "net.json", *rest, "--json")
        assert code == 0, err
        most = json.loads(out)["prediction"]["memory"][0]["total_bytes"]
        said = "memory=%dB..%dB" % (most * 0.9, most * 1.3)
    code, out, err = run("search", "net.json", *rest, "--vary", said, "--json")
    assert code == 0, (said, code, err)
    told = json.loads(out)["things"][0]
    intervals, points = told["intervals"]["rows"], told["points"]["rows"]
    for a, b in zip(intervals, intervals[1:]):
        assert a["plan"] != b["plan"] and a["to"] < b["from"] <= a["to"] * 1.001 + 1, (a, b)
    for t in intervals:
        for side in ("from", "to"):
            step_s, stated_s = searched(rest, profiles, number, t[side]), t["step_%s_s" % side]
            stated_s = math.inf if stated_s is None else stated_s
            # a plan that was found elsewhere may be faster than what a search finds here
            assert step_s >= stated_s * (1 - TIE), (said, t, side, step_s)
            if t["status"] == "proven" and step_s < math.inf:
                assert step_s <= stated_s * (1 + told["points"]["proven_within"]), (said, t, side, step_s)
        if t["status"] != "proven" or t["to"] <= t["from"]:
            continue
        value = t["from"] * (t["to"] / t["from"]) ** rng.random()
        value = round(value) if number[1] is None else value
        step_s = searched(rest, profiles, number, value)
        if t["plan"] is None:
            assert step_s == math.inf, (said, t, value)
            continue
        least_s = min(t["step_from_s"], t["step_to_s"]) / (1 + t["margin"])
        assert step_s >= least_s * (1 - TIE), (said, t, value, step_s)
        most_s = max(t["step_from_s"], t["step_to_s"])
        assert step_s <= most_s * (1 + told["points"]["proven_within"]), (said, t, value, step_s)
    return len(intervals), sum(t["status"] == "proven" for t in intervals), len(points)


def check_stopped():
    """A signal ends it with what is known, which is then not called complete."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
    for wait_s in (2.0**k / 4 for k in range(8)):
        with subprocess.Popen([PROGRAM, "search", "gpt3_13b_flash", "--device-num", "64", "--chip", "ascend910b",
                               "--micro-batches", "8", "--vary", "hccs.bandwidth=0.1x..10x", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            try:
                run.wait(wait_s)
                break  # all is known by then
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGINT)
            out = run.communicate()[0]
        if run.returncode == 8:
            points = json.loads(out)["things"][0]["points"]
            assert not points["complete"] and points["rows"], points
            return
        assert run.returncode == 128 + signal.SIGINT, run.returncode  # nothing was known yet
    raise AssertionError("a signal never left what is known")


def main():
    rng = random.Random(SEED)
    print("AP_SEED=%d" % SEED)
    check_stopped()
    total = [0, 0, 0]
    for case in range(CASES):
        found = check(rng, case)
        total = [a + b for a, b in zip(total, found)]
        print("case %d: %d intervals, %d proven, %d searches" % (case, *found), flush=True)
    print("%d intervals, %d proven, %d searches" % tuple(total))
    assert total[1] * 2 > total[0] > CASES, total  # neither nothing proven nor nothing that changes


main()
