# SPDX-License-Identifier: Apache-2.0
"""Usage: data.py SOURCE_ROOT

No row of data/*.csv without its source: data/SOURCES has a paragraph for every source_id, with address, contents
and licence, and none that nothing comes from; every row says where in its source it stands, and has a name of its
own.
"""
import csv
import glob
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
failed += [f"SOURCES: nothing comes from {name}" for name in known if name not in used]
if not rows:
    failed.append("there are no rows")
for what in failed:
    print(what)
sys.exit(bool(failed))
