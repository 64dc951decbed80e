# SPDX-License-Identifier: Apache-2.0
"""Usage: data.py SOURCE_ROOT

No row of data/*.csv without its source: data/SOURCES has a paragraph for every source_id, with address, contents
and licence, and none that nothing comes from; every row says where in its source it stands, and has a name of its
own. Software profiles state no errors of predictions but those of docs/fidelity.md.
"""
import csv
import glob
import json
import os
import sys

ROOT = sys.argv[1]
KEYS = ("from", "what", "licence")
failed = []


def sources(path):
    found = {}
    with open(path, encoding="utf-8") as f:
        paragraphs = f.read().split("\n\n")
    for paragraph in paragraphs[1:]:
        name, *lines = paragraph.strip().split("\n")
        facts = dict(line.split(": ", 1) for line in lines if ": " in line)
        if name in found:
            failed.append(f"SOURCES: {name} stands twice")
        for key in KEYS:
            if not facts.get(key, "").strip():
                failed.append(f"SOURCES: {name} lacks \"{key}: \"")
        found[name] = facts
    return found


known = sources(os.path.join(ROOT, "data", "SOURCES"))
used = set()
rows = 0
for path in sorted(glob.glob(os.path.join(ROOT, "data", "*.csv"))):
    name = os.path.basename(path)
    ids = set()
    with open(path, encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            rows += 1
            used.add(row["source_id"])
            if row["source_id"] not in known:
                failed.append(f"{name}: {row['id']} is of \"{row['source_id']}\", which is not in SOURCES")
            if not row["source_locator"].strip():
                failed.append(f"{name}: {row['id']} does not say where in its source it stands")
            if not row["id"] or row["id"] in ids:
                failed.append(f"{name}: \"{row['id']}\" is no name of a row of its own")
            ids.add(row["id"])

# What software profiles say of errors is what docs/fidelity.md has, which the bench makes of the rows.
with open(os.path.join(ROOT, "docs", "fidelity.md"), encoding="utf-8") as f:
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in f if line.startswith("|")]
known_errors = {c[0]: (c[4], c[8]) for c in cells if len(c) == 10}
said = 0
for path in sorted(glob.glob(os.path.join(ROOT, "chips", "software", "*.json"))):
    with open(path, encoding="utf-8") as f:
        profile = json.load(f)
    measured = known_errors.get(profile["name"], ("", ""))
    for key, value in zip(("step_error_percent", "memory_error_percent"), measured):
        said += key in profile
        if str(profile.get(key, "")) != value:
            failed.append(f"{path}: {key} is {profile.get(key)}, docs/fidelity.md has \"{value}\"")
if not said:
    failed.append("no software profile says an error")
failed += [f"SOURCES: nothing comes from {name}" for name in known if name not in used]
if not rows:
    failed.append("there are no rows")
for what in failed:
    print(what)
sys.exit(bool(failed))
