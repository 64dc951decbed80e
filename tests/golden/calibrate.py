# SPDX-License-Identifier: Apache-2.0
"""Usage: calibrate.py CALIBRATE FIDELITY SOURCE_ROOT

Constants fitted to published rows: planted ones are found again from the predictions that they make, twice with
the same bytes, what is written is a profile that predicts so, and what cannot be fitted is refused.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

CALIBRATE, FIDELITY, ROOT = sys.argv[1:4]
ROWS = os.path.join(ROOT, "data", "fidelity.csv")
SOFTWARE = "llm-foundry-fsdp"
PLANTED = {"launch_s": 90e-6, "product_slowdown": 1.31}
CHIP, CHIP_PLANTED = "a100-40", {"efficiency.memory": 0.61}
failed = []


def hold(what, is_so, *seen):
    if not is_so:
        failed.append(what)
        print("FAILED:", what, *seen)


def run(program, *args, status=0):
    done = subprocess.run([program, *args], capture_output=True, text=True)
    hold(f"{args}: status {status}", done.returncode == status, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


def profile(*path):
    with open(os.path.join(ROOT, "chips", *path), encoding="utf-8") as f:
        return json.load(f)


def cells(text, first):
    """Cells of the line of a Markdown table that begins so."""
    line = next(line for line in text.split("\n") if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def plant(rows, path, folder, name, planted, *where):
    """Writes rows measured as a profile with planted constants predicts them."""
    profiles = os.path.join(folder, "profiles")
    os.makedirs(profiles, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, rows[0].keys())
        out.writeheader()
        out.writerows(rows)
    told = profile(*where)
    for key, value in planted.items():
        *objects, last = key.split(".")
        at = told
        for o in objects:
            at = at[o]
        at[last] = value
    with open(os.path.join(profiles, name + ".json"), "w", encoding="utf-8") as f:
        json.dump(told, f)
    predicted = os.path.join(folder, "predicted.csv")
    run(FIDELITY, path, "--profiles", profiles, "--csv", predicted)
    with open(predicted, encoding="utf-8", newline="") as f:
        seconds = {r["id"]: r["predicted_s"] for r in csv.DictReader(f)}
    for r in rows:
        r.update(iter_time_s=seconds[r["id"]], samples_per_s="", tokens_per_s_per_dev="")
    with open(path, "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, rows[0].keys())
        out.writeheader()
        out.writerows(rows)
    os.remove(os.path.join(profiles, name + ".json"))
    return profiles


with open(ROWS, encoding="utf-8", newline="") as f:
    published = [r for r in csv.DictReader(f) if r["source_id"] == "mosaicml"]
rows = published[::9]
for i, r in enumerate(rows):
    r["source_id"] = "even" if i % 2 == 0 else "odd"
with tempfile.TemporaryDirectory() as folder:
    path, output = os.path.join(folder, "rows.csv"), os.path.join(folder, "out.json")
    profiles = plant(rows, path, folder, SOFTWARE, PLANTED, "software", SOFTWARE + ".json")
    args = (path, "--software", SOFTWARE, "--free", ",".join(PLANTED), "--leave-one-out", "--output", output)
    text = run(CALIBRATE, *args)
    with open(output, encoding="utf-8") as f:
        written = f.read()
    hold("the same bytes twice", run(CALIBRATE, *args) == text)
    with open(output, encoding="utf-8") as f:
        hold("the same profile twice", f.read() == written)
    fitted = json.loads(written)
    for key, value in PLANTED.items():
        hold(f"{key} is found", abs(fitted[key] / value - 1) < 0.01, fitted[key])
        hold(f"{key} is printed", float(cells(text, key)[3]) == fitted[key], cells(text, key))
        hold(f"{key} has a source", fitted["sources"][key] ==
             f"fitted to {len(rows)} published runs: even ({len(rows[::2])}), odd ({len(rows[1::2])})",
             fitted["sources"][key])
    for key, value in profile("software", SOFTWARE + ".json").items():
        hold(f"{key} is as it was", key in ("sources", *PLANTED) or fitted.get(key) == value, fitted.get(key))
    every = cells(text, "all")
    hold("all rows count", every[1] == str(len(rows)), every)
    hold("they were wrong, and are not", float(every[2]) > 3 and float(every[3]) < 0.5, every)
    hold("nor are those that a fit leaves out", float(every[4]) < 0.5 and float(every[5]) < 0.5, every)
    with open(os.path.join(profiles, SOFTWARE + ".json"), "w", encoding="utf-8") as f:
        f.write(written)
    mean = [line for line in run(FIDELITY, path, "--profiles", profiles).split("\n")
            if line.startswith("| total |")][0].split("|")[5]
    hold("fidelity predicts so with it", float(mean) < 0.5, mean)

    os.remove(os.path.join(profiles, SOFTWARE + ".json"))

    # A chip: of its rows alone.
    plant(rows, path, folder, CHIP, CHIP_PLANTED, CHIP + ".json")
    text = run(CALIBRATE, path, "--chip", CHIP, "--free", ",".join(CHIP_PLANTED))
    hold("a chip's number is found", abs(float(cells(text, "efficiency.memory")[3]) / 0.61 - 1) < 0.01, text)
    some = sum(r["hw"].startswith("A100") and r["hw_mem_gib"] == "40" for r in rows)
    hold("rows of the chip count", cells(text, "all")[1] == str(some) and 0 < some < len(rows), text)

    # With a measured curve, which the profile then has.
    curve = os.path.join(folder, "curve.csv")
    with open(curve, "w", encoding="utf-8") as f:
        f.write("ranks,bytes,time_us\n8,1048576,90\n8,16777216,240\n8,1073741824,8200\n")
    args = (path, "--chip", CHIP, "--free", "efficiency.memory", "--link-curve", curve, "--output", output)
    text = run(CALIBRATE, *args)
    with open(output, encoding="utf-8") as f:
        curved = f.read()
    hold("how near links are is said", text.startswith("3 points of 1 curves; links of"), text[:80])
    told = json.loads(curved)["collectives"]
    hold("the curve is in the profile", [{k: v for k, v in c.items() if k != "curve"} for c in told] == [
        {"collective": "AllReduce", "ranks": 8, "servers": 1, "source": "measured: curve.csv"}], told)
    hold("with its points", [[b, round(s * 1e6, 6)] for b, s in told[0]["curve"]] ==
         [[1048576, 90], [16777216, 240], [1073741824, 8200]], told)
    hold("the same with a curve", run(CALIBRATE, *args) == text)
    with open(output, encoding="utf-8") as f:
        hold("the same profile with a curve", f.read() == curved)

    for why, args in {
        "there is no number launch": (path, "--software", SOFTWARE, "--free", "launch"),
        "is not a number to fit": (path, "--software", SOFTWARE, "--free", "master_bytes"),
        "more numbers are free than": (path, "--chip", CHIP, "--free", "fixed_s.cube,fixed_s.vector,fixed_s.memory,"
                                       "efficiency.memory"),
        "unknown software profile": (path, "--software", "nobodys"),
        "usage: calibrate": (path,),
    }.items():
        said = run(CALIBRATE, *args, status=2)
        hold(f"{why}: is said", why in said, said)
    said = run(CALIBRATE, path, "--software", "mindspore", "--free", "launch_s", status=3)
    hold("a profile without rows", "no row is of this profile" in said, said)
sys.exit(bool(failed))
