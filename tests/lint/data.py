# SPDX-License-Identifier: Apache-2.0
"""Usage: data.py SOURCE_ROOT

No row of data/*.csv without its source: data/SOURCES has a paragraph for every source_id, with address, contents
and licence, and none that nothing comes from; every row says where in its source it stands, and has a name of its
own. Software profiles state no errors of predictions but those of docs/fidelity.md. Every number of chips and
software profiles is published, fitted to runs (few are) or assumed for a reason, and says so.
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
known_errors = {c[0]: (c[4], c[9], c[10]) for c in cells if len(c) == 12}
said = 0
for path in sorted(glob.glob(os.path.join(ROOT, "chips", "software", "*.json"))):
    with open(path, encoding="utf-8") as f:
        profile = json.load(f)
    measured = known_errors.get(profile["name"], ("", "", ""))
    for key, value in zip(("step_error_percent", "memory_error_percent", "memory_within_percent"), measured):
        said += key in profile
        if str(profile.get(key, "")) != value:
            failed.append(f"{path}: {key} is {profile.get(key)}, docs/fidelity.md has \"{value}\"")
if not said:
    failed.append("no software profile says an error")
# Every number of a profile is published, fitted or assumed for a reason, and says so; few are fitted.
MOST_FITTED = {"chips": 3, "software": 6}
BASES = {"fitted ": "fitted", "inferred: ": "assumed", "assumed: ": "assumed"}
count = {}


def numbers(value, path):
    """Paths of the numbers in a profile; elements of lists have that of their list, levels their names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, path + [key])
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, path + [inner["name"]] if isinstance(inner, dict) else path)
    elif isinstance(value, (int, float)):
        yield path


for path in sorted(glob.glob(os.path.join(ROOT, "chips", "*.json")) +
                   glob.glob(os.path.join(ROOT, "chips", "software", "*.json"))):
    with open(path, encoding="utf-8") as f:
        profile = json.load(f)
    kind, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)
    said_of = profile.pop("sources", {})
    every = {".".join(p) for p in numbers(profile, [])}
    fitted, found = set(), set()
    for number in sorted(every):
        parts = number.split(".")
        of = next((k for k in (".".join(parts[:n]) for n in range(len(parts), 0, -1)) if k in said_of), None)
        if of is None:
            failed.append(f"{name}: nothing says where {number} is from")
            continue
        basis = next((b for begins, b in BASES.items() if said_of[of].startswith(begins)), "published")
        if basis == "fitted" and " runs" not in said_of[of]:
            basis = "published"  # a curve through published measurements of single kernels
        count[kind, basis] = count.get((kind, basis), 0) + 1
        found.add(of)
        if basis == "fitted":
            fitted.add(of)
    if len(fitted) > MOST_FITTED[kind]:
        failed.append(f"{name}: {len(fitted)} are fitted, at most {MOST_FITTED[kind]} may be: {sorted(fitted)}")
    for of, text in said_of.items():
        if of not in found and of not in profile:
            failed.append(f"{name}: there is no number {of}")
        if len(text) < 12 and not text.startswith("as "):
            failed.append(f"{name}: \"{text}\" does not say where {of} is from")
for (kind, basis), n in sorted(count.items()):
    print(f"numbers of {kind} that are {basis}: {n}")

failed += [f"SOURCES: nothing comes from {name}" for name in known if name not in used]
if not rows:
    failed.append("there are no rows")
for what in failed:
    print(what)
sys.exit(bool(failed))
