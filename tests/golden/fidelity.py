# SPDX-License-Identifier: Apache-2.0
"""Usage: fidelity.py FIDELITY SOURCE_ROOT

The bench of published measurements: rows of every kind and what cannot be expressed, aggregates computed again
from what --csv wrote, predictions that look at nothing that was measured, the same bytes twice, files that are no
such CSV.
"""
import csv
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

FIDELITY, ROOT = sys.argv[1:3]
ROWS = os.path.join(ROOT, "tests", "golden", "fidelity", "rows.csv")
failed = []


def hold(what, is_so, *seen):
    if not is_so:
        failed.append(what)
        print("FAILED:", what, *seen)


def run(*args, status=0):
    done = subprocess.run([FIDELITY, *args], capture_output=True, text=True)
    hold(f"{args}: status {status}", done.returncode == status, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def near(a, b, most=1e-9):
    return abs(a - b) <= most * max(abs(a), abs(b))


def table(text, heading):
    """Rows of the Markdown table whose first line begins so."""
    lines = text[text.index("| " + heading):].split("\n")
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def within(errors):
    """What nine of ten amounts are within."""
    amounts = sorted(map(abs, errors))
    at = 0.9 * (len(amounts) - 1)
    below = int(at)
    return amounts[below] + (at - below) * (amounts[min(below + 1, len(amounts) - 1)] - amounts[below])


def ranks(values):
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def spearman(x, y):
    a, b = ranks(x), ranks(y)
    mean = (len(x) + 1) / 2
    over = sum((i - mean) * (k - mean) for i, k in zip(a, b))
    return over / (sum((i - mean) ** 2 for i in a) * sum((k - mean) ** 2 for k in b)) ** 0.5


work = tempfile.TemporaryDirectory()
at = lambda name: os.path.join(work.name, name)

given = read(ROWS)
text = run(ROWS, "--csv", at("out.csv"), "--svg", at("out.svg"), "--markdown", at("out.md"))
out = read(at("out.csv"))
by_id = {row["id"]: row for row in out}

# A row for each, in order; what came in comes out, quotes and line breaks too.
hold("header", list(out[0]) == ["id", "measured_s", "predicted_s", "measured_bytes", "predicted_bytes",
                                "predicted_fits", "source_id", "reason"])
hold("ids", [row["id"] for row in out] == [row["id"] for row in given])
hold("an id in quotes", 'a "quoted" id,\nin two lines' in by_id)
for row in out:
    hold(f"{row['id']}: a prediction or a reason", bool(row["predicted_s"]) != bool(row["reason"]), row)
    hold(f"{row['id']}: bytes with seconds", bool(row["predicted_s"]) == bool(row["predicted_bytes"]), row)

# Seconds as stated, or of a rate: 32 x 256 tokens / (8 x 100,000/s), 128 images / 6,400/s.
for name, seconds in (("row-1", 0.02), ("row-12", 0.01024), ("row-13", 0.0128), ("row-15", 0.02)):
    hold(f"{name}: measured", near(float(by_id[name]["measured_s"]), seconds), by_id[name])
hold("bytes measured", by_id["row-12"]["measured_bytes"] == "3000000000")

# What cannot be expressed, and why.
for name, why in {"row-21": "TPU v4", "row-22": "JAX 0.4", "row-23": "Mamba-2.8B", "row-24": "eight",
                  "row-25": "dp 3", "row-26": "vocab", "row-27": "int4", "row-28": "now and then",
                  "row-29": "mbs 3", "row-30": "fp8", "row-31": "PCIe", "row-32": "swiglu", "row-35": "latent",
                  "blank": "framework"}.items():
    hold(f"{name}: reason", why in by_id[name]["reason"], by_id[name])
hold("others are expressed", sum(not row["reason"] for row in out) == 26)
reasons = table(text, "cannot be expressed because")
hold("reasons are counted", sum(int(n) for _, n in reasons) == 14, reasons)

# The network of the cluster: a card a server, a card a device, what the profile has.
one, each, own = (float(by_id[name]["predicted_s"]) for name in ("row-16", "row-17", "row-18"))
hold("the network counts", each < own < one, one, each, own)

# Products in 8 bits: faster than in 16, less so where the largest value of each tensor is looked for first.
wide, delayed, tensorwise, blocks = (float(by_id[f"row-{n}"]["predicted_s"]) for n in (36, 37, 38, 39))
hold("products in 8 bits", wide / 2 < delayed < blocks < tensorwise < wide, wide, delayed, tensorwise, blocks)

# What of it is recomputed: half of the layers takes less than all of them, a recipe nothing.
some = float(by_id["row-13"]["predicted_s"])
lines = {k: list(csv.DictReader(io.StringIO(open(ROWS, encoding="utf-8", newline="").read()))) for k in ("all", "none")}
for kind, word in (("all", "full"), ("none", "none")):
    for row in lines[kind]:
        row["recompute"] = word if row["id"] in ("row-13", "row-14") else row["recompute"]
    with open(at(kind + ".csv"), "w", encoding="utf-8", newline="") as f:
        w = csv.DictWriter(f, list(given[0]))
        w.writeheader()
        w.writerows(lines[kind])
    run(at(kind + ".csv"), "--csv", at(kind + ".out.csv"))
full, none = ({row["id"]: row for row in read(at(kind + ".out.csv"))} for kind in ("all", "none"))
hold("layers recomputed", float(none["row-13"]["predicted_s"]) < some < float(full["row-13"]["predicted_s"]))
# Words of other frameworks: each takes some time, and none as much as all; numbers are no more than layers.
words = {"selective": "selective", "none+select": "activation", "none+actfn": "activation", "selective(op)": "products",
         "selective[mlp, layernorm]": "modules", "full:block:999": "full"}
took = {}
for word in words:
    for row in lines["none"]:
        row["recompute"] = word if row["id"] == "row-13" else "none"
    with open(at("word.csv"), "w", encoding="utf-8", newline="") as f:
        w = csv.DictWriter(f, list(given[0]))
        w.writeheader()
        w.writerows([row for row in lines["none"] if row["id"] == "row-13"])
    run(at("word.csv"), "--csv", at("word.out.csv"))
    took[word] = float(read(at("word.out.csv"))[0]["predicted_s"] or "nan")
least, most = (float(rows["row-13"]["predicted_s"]) for rows in (none, full))
for word, kind in words.items():
    hold(word, abs(took[word] - most) < 0.02 * most if kind == "full" else least < took[word] < most or
         (kind == "selective" and took[word] >= least))
hold("two words for one", took["none+select"] == took["none+actfn"])
hold("a recipe", none["row-14"]["predicted_s"] == by_id["row-14"]["predicted_s"])



def predicted(name, **facts):
    """Seconds of a row with other facts."""
    base = next(row for row in given if row["id"] == name)
    with open(at("facts.csv"), "w", encoding="utf-8", newline="") as f:
        w = csv.DictWriter(f, list(given[0]))
        w.writeheader()
        w.writerow({**base, **facts})
    run(at("facts.csv"), "--csv", at("facts.out.csv"))
    return float(read(at("facts.out.csv"))[0]["predicted_s"] or "nan")


# Of micro-batches that nothing is said of, the fastest; of a fabric that carries less, its part: twice as many
# links that carry half are as fast.
by_mbs = [predicted("row-1", mbs=str(n), grad_accum="") for n in (1, 2, 4)]
hold("micro-batches are tuned", predicted("row-1", mbs="", grad_accum="") == min(by_mbs) < max(by_mbs), by_mbs)
fabric = [predicted("row-16", interconnect=f"{n}x {what} 100 Gb/s per node")
          for n, what in ((5, "IB"), (5, "Omni-Path"), (36, "Omni-Path"))]
hold("a slow fabric", fabric[1] > 1.2 * fabric[0] and near(fabric[0], fabric[2], 0.02), fabric)
# A recipe of NeMo has products run beside the collectives of their results.
recipe = [predicted("row-1", framework=name, tp="4", dp="2", sp="1", overlap="recipe") for name in
          ("Megatron-LM", "NeMo 25.02")]
hold("a recipe's overlap", recipe[1] < recipe[0], recipe)

# nanotron deals layers by the weights of products and the head: a stage takes one more until it has more than its share.
layers, hidden, ffn, words = 10, 512, 1024, 8000
cost, stages = 4 * hidden + 3 * ffn, []
for i in range(1, layers + 1):
    spent = (i - 1) * cost
    stage = sum(1 for s in range(1, 4) if spent > (layers * cost + words) * s / 4)
    stages.append(max(stage, stages[-1] if stages else 0))
expected = ",".join(str(stages.count(s)) for s in range(4))
os.mkdir(at("plans"))
predicted("row-1", framework="nanotron", arch="dense", ffn_type="swiglu", layers=str(layers), ffn=str(ffn), vocab=str(words), pp="4",
          dp="2")
run(at("facts.csv"), "--plans", at("plans"))
with open(at("plans/row-1.plan.json"), encoding="utf-8") as f:
    hybrid = json.load(f)["settings"]["hybrid"]
hold("layers by cost", f"layers={expected}" in hybrid and expected != "3,2,2,3", hybrid, expected)

# Where parts of a network are trained, no plan says so.
hold("parts of a network", [predicted("row-1", model=name) == predicted("row-1") for name in
                            ("phi-1.5 lora", "LLaMA (adapter_v2)", "exploration")] == [False, False, True], "")

# What a measurement counts: all that the device holds, tensors alone, or those of the first step, whose passes run
# before there are moments: with few activations it holds more in its update. nvidia-smi and torchtitan see what the
# allocator keeps, 0.25 and 0.4 of what passes hold, which is all that grows with the batch.
counted = {}
for kind in ("peak, as printed", "torch max_memory_allocated", "torch max allocated, max over logged ranks",
             "nvidia-smi, whole GB", "torchtitan reported peak"):
    for batch in ("1", "16"):
        predicted("row-1", mem_kind=kind, mem_bytes="1e9", mbs=batch, grad_accum="", gbs="128")
        counted[kind.split()[-1], batch] = int(read(at("facts.out.csv"))[0]["predicted_bytes"])
for batch in ("1", "16"):
    everything, tensors, first = (counted[word, batch] for word in ("printed", "max_memory_allocated", "ranks"))
    hold("libraries and buffers are counted or not", everything - tensors == 1536 << 20, counted)
    hold("with what is kept for later", near((counted["GB", batch] - everything) / (counted["peak", batch] - tensors),
                                             0.25 / 0.4, 1e-6), counted)
    hold("which is a part", tensors < counted["peak", batch] < 1.4 * tensors, counted)
    hold("a first step holds less", first < tensors, counted)
hold("of what grows", near(*(counted[word, "16"] - counted[word, "1"] for word in ("peak", "max_memory_allocated")), 0.4001)
     and not near(*(counted[word, "16"] - counted[word, "1"] for word in ("peak", "max_memory_allocated")), 0.1), counted)
weights = 8 * 12 * 512 ** 2 + 5120 * 512  # at least; two moments of four bytes each
hold("moments come with the update", counted["max_memory_allocated", "16"] - counted["ranks", "16"] >= 8 * weights, counted)
hold("or the passes' memory is free then", 0 < counted["max_memory_allocated", "1"] - counted["ranks", "1"] <
     counted["max_memory_allocated", "16"] - counted["ranks", "16"], counted)

# Of two servers, nvidia-smi shows the one that it is called on, the first, with no logits.
shown = {}
for servers in ("1", "2"):
    for kind in ("nvidia-smi, whole GB", "nvidia-smi, whole GB, first/last node"):
        predicted("row-1", mem_kind=kind, mem_bytes="1e9", dp="4", pp="2", mbs="4", grad_accum="", gbs="128", vocab="50000",
                  recompute="full", devices_per_node="8" if servers == "1" else "4")
        shown[servers, "last" in kind] = int(read(at("facts.out.csv"))[0]["predicted_bytes"])
hold("the fullest of one server", shown["1", True] == shown["1", False] == shown["2", True], shown)
hold("the first of two servers", shown["2", False] < shown["2", True], shown)

# What became of runs: of those that ran, how many are predicted not to fit; of those that died, how many to fit.
# Neither other failures count, nor what is implausible, nor what does not say what it recomputes.
fates = [("ok", "80", {}), ("ok", "1", {}), ("ok", "80", {}), ("oom", "80", {}), ("oom", "1", {}), ("oom", "1", {}),
         ("oom", "1", {}), ("fail", "1", {}), ("ok", "1", {"grade": "D"}), ("ok", "1", {"recompute": "recipe"}),
         ("", "1", {}), ("", "1", {"iter_time_s": ""}), ("ok", "", {})]
first = next(row for row in given if row["id"] == "row-1")
with open(at("fates.csv"), "w", encoding="utf-8", newline="") as f:
    w = csv.DictWriter(f, list(first) + ["outcome"])
    w.writeheader()
    for i, (outcome, gib, other) in enumerate(fates):
        w.writerow({**first, **other, "id": f"fate-{i}", "outcome": outcome, "hw_mem_gib": gib})
said = run(at("fates.csv"), "--csv", at("fates.out.csv"))
hold("who fits", [row["predicted_fits"] for row in read(at("fates.out.csv"))] ==
     [{"80": "yes", "1": "no", "": ""}[gib] for _, gib, _ in fates], read(at("fates.out.csv")))
row = ["4", "2", "50.0", "4", "1", "25.0"]
hold("outcomes", table(said, "runs of") == [["tiny"] + row, ["total"] + row], said[-900:])
for i, word in ((1, "ran"), (3, "died"), (10, "ran")):
    hold(f"fate-{i} is named", re.search(rf"^fate-{i} .*  {word}, is predicted to need [0-9.]+ of \S+ GiB$", said, re.M), said)
hold("others are not", len(re.findall("is predicted to need", said)) == 3, said)

# Aggregates, computed again.
grades = {row["id"]: row["grade"] for row in given}
sources = list(dict.fromkeys(row["source_id"] for row in out))
for cells in table(text, "source"):
    mine = [row for row in out if cells[0] in (row["source_id"], "total")]
    errors = [float(r["predicted_s"]) / float(r["measured_s"]) - 1 for r in mine
              if r["measured_s"] and r["predicted_s"] and grades[r["id"]] in ("A", "")]
    memory = [int(r["predicted_bytes"]) / int(r["measured_bytes"]) - 1 for r in mine if r["measured_bytes"]]
    expected = [str(len(mine)), str(sum(bool(r["reason"]) for r in mine)), str(len(errors))]
    expected += [f"{statistics.mean(map(abs, errors)) * 100:.1f}", f"{statistics.median(map(abs, errors)) * 100:.1f}",
                 f"{within(errors) * 100:.1f}", f"{statistics.mean(errors) * 100:+.1f}"] if errors else ["", "", "", ""]
    expected += [str(len(memory))] + ([f"{abs(memory[0]) * 100:.1f}", f"{within(memory) * 100:.1f}", f"{memory[0] * 100:+.1f}"]
                                      if memory else ["", "", ""])
    hold(f"errors of {cells[0]}", cells[1:] == expected, cells, expected)
hold("every source has a line", [cells[0] for cells in table(text, "source")] == sources + ["total"])
ids = [f"row-{i}" for i in range(1, 12)] + ['a "quoted" id,\nin two lines']


def ranking_of(rows, times):
    """What a ranking says of rows that took so long."""
    took = [float(row["predicted_s"]) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (took[i], i))
    least = [min(times[i] for i in order[:n]) / min(times) - 1 for n in (1, 3)]
    errors = [abs(a / b - 1) for a, b in zip(took, times)]
    return ["12", f"{spearman(took, times):.2f}"] + [
        f"{100 * x:.1f}" for x in least + [sum(errors) / len(errors), errors[order[0]]]]


group = [by_id[i] for i in ids]
measured, predicted = ([float(row[key]) for row in group] for key in ("measured_s", "predicted_s"))
for shift in (0, 2, 5, 9):  # the times of others, too
    times = measured[shift:] + measured[:shift]
    other = dict(zip(ids, times))
    with open(at("times.csv"), "w", encoding="utf-8", newline="") as f:
        w = csv.DictWriter(f, list(given[0]))
        w.writeheader()
        w.writerows([{**row, "iter_time_s": other[row["id"]]} for row in given if row["id"] in other])
    said = table(run(at("times.csv")), "strategies of")
    ranking = ranking_of(group, times)
    hold(f"ranking, {shift}", said == [["GPT-tiny, 8 devices, batch 32"] + ranking, ["mean"] + ranking], said, ranking)
    hold("a ranking like none of these says nothing", shift != 5 or ranking[2] != ranking[3] != "0.0", ranking)
hold("ranking of the file", table(text, "strategies of")[0][1:] == ranking_of(group, measured), table(text, "strategies of"))

# A line a row, with its error.
error = predicted[0] / measured[0] - 1
off = re.escape(f"{error * 100:+.1f}")
hold("a line a row", re.search(rf"^row-1 +0\.0200 +{predicted[0]:.4f} +{off} ", text, re.M), text[:400])
hold("what is not judged", re.search(r"^row-19 .*not judged$", text, re.M))

# One source; the same bytes twice.
run(ROWS, "--only", "others", "--csv", at("others.csv"))
hold("--only", read(at("others.csv")) == [row for row in out if row["source_id"] == "others"])
hold("the same bytes", run(ROWS, "--csv", at("out2.csv"), "--svg", at("out2.svg"), "--markdown", at("out.md")) == text)
for name in ("out%s.csv", "out%s.svg"):
    hold(name, open(at(name % ""), "rb").read() == open(at(name % 2), "rb").read())
svg = open(at("out.svg"), encoding="utf-8").read()
hold("a mark a row and a source", svg.count("<use ") == 25 + 2, svg.count("<use "))
hold("the table is in the document", "\n".join(" | ".join(c) for c in table(text, "source")) ==
     "\n".join(" | ".join(c) for c in table(open(at("out.md"), encoding="utf-8").read(), "source")))

# Nothing that was measured, and no name of where it was, decides a prediction: without all that, and with the columns
# in another order, they have the same bytes.
blank = ("id", "source_id", "source_url", "source_locator", "iter_time_s", "iter_time_basis", "samples_per_s",
         "tokens_per_s_per_dev", "tflops_per_dev", "tflops_kind", "mfu", "mem_bytes", "mem_kind", "params_b",
         "inferred", "grade", "notes")
with open(at("blank.csv"), "w", encoding="utf-8", newline="") as f:
    w = csv.DictWriter(f, list(reversed(list(given[0]))))
    w.writeheader()
    for row in given:
        w.writerow({key: "" if key in blank else value for key, value in row.items()})
run(at("blank.csv"), "--csv", at("blank.out.csv"))
facts = ("predicted_s", "predicted_bytes", "reason")
hold("predictions look at facts alone", [[row[key] for key in facts] for row in read(at("blank.out.csv"))] ==
     [[row[key] for key in facts] for row in out])

# Neutral software is predicted, too: what runs beside a collective is not slowed down.
run(ROWS, "--neutral", "--csv", at("neutral.csv"))
neutral = read(at("neutral.csv"))
hold("--neutral", [row["reason"] for row in neutral] == [row["reason"] for row in out])
pairs = [(float(a["predicted_s"]), float(b["predicted_s"])) for a, b in zip(neutral, out) if a["predicted_s"]]
hold("--neutral is no slower", all(a <= b for a, b in pairs) and any(a < b for a, b in pairs), pairs)

# What is no such file.
head = ",".join(given[0])


def bad(text, what):
    with open(at("bad.csv"), "w", encoding="utf-8", newline="") as f:
        f.write(text)
    said = run(at("bad.csv"), status=3)
    hold(f"{what} is said", what in said, said)


bad(head + '\n"open', "line 2")
bad(head + '\n"x"y,', "line 2")
bad(head + "\na,b\n", "2 fields")
bad(head.replace("gbs", "GBS") + "\n", "gbs")
run(at("nowhere.csv"), status=6)
run(ROWS, "--csv", at("no/such/folder.csv"), status=6)
run(status=2)
run(ROWS, "--what", status=2)
with open(at("crlf.csv"), "w", encoding="utf-8", newline="") as f:
    f.write("\ufeff" + open(ROWS, encoding="utf-8", newline="").read().replace("\n", "\r\n").replace(
        "id,\r\nin two", "id,\nin two").rstrip("\r\n"))
run(at("crlf.csv"), "--csv", at("crlf.out.csv"))
hold("other line ends", open(at("crlf.out.csv"), "rb").read() == open(at("out.csv"), "rb").read())
with open(at("empty.csv"), "w", encoding="utf-8", newline="") as f:
    f.write(head)
run(at("empty.csv"), "--svg", at("empty.svg"))
sys.exit(bool(failed))
