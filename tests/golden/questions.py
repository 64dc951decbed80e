# SPDX-License-Identifier: Apache-2.0
"""Usage: questions.py PROGRAM SOURCE_ROOT

Runs the commands of docs/questions.md, in an empty folder and in their order, and compares what they print with what
the page shows. A block that begins with "    $ " is commands and output. Of the output "..." on a line of its own
stands for any number of lines, and at the end of a line for the rest of it; all else is there as it is shown. Commands
that set a variable hold for all that follow. A command that is on the page twice runs once. AP_UPDATE=1 writes the
lines anew: for those between two cuts, as many that follow each other and are most like them.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PAGE = ROOT / "docs" / "questions.md"
INDENT = "    "
MOST = 12  # lines of output that a reader is shown at a time
ENV = {k: v for k, v in os.environ.items() if k not in ("RANK_TABLE_FILE", "NO_COLOR", "AP_UPDATE")}
ENV["AUTOPAR_PLAN_MODELS"] = str(ROOT / "models")
ENV["PATH"] = "%s:%s" % (PROGRAM.parent, ENV["PATH"])


def pieces(text):
    """The page as [(kind, lines)]: "text", "command" with all its lines, "output"; without indentation but for text."""
    found, end = [("text", [])], None
    for line in text.split("\n"):
        kind, inner = found[-1][0], line[len(INDENT):]
        if not line.startswith(INDENT):
            end = None
            if kind != "text":
                found.append(("text", []))
            found[-1][1].append(line)
        elif end or kind == "command" and found[-1][1][-1].endswith("\\"):
            found[-1][1].append(inner)
            end = None if inner == end else end
        elif inner.startswith("$ "):
            found.append(("command", [inner]))
            here = re.search(r"<< '(\w+)'", inner)
            end = here and here.group(1)
        elif kind == "text":
            found[-1][1].append(line)
        else:
            if kind != "output":
                found.append(("output", []))
            found[-1][1].append(inner)
    return found


def fits(shown, line):
    return line.startswith(shown[:-3]) if shown.endswith("...") else line == shown


def first_wrong(shown, real):
    """The first line of shown that real does not have where it should; none: None."""
    at, free = 0, False
    for line in shown:
        if line == "...":
            free = True
            continue
        while free and at < len(real) and not fits(line, real[at]):
            at += 1
        if at == len(real) or not fits(line, real[at]):
            return line
        at, free = at + 1, False
    return None if free or at == len(real) else "the end of the output"


def shape(line):
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.]*", "0", line))


def likeness(shown, line):
    if shown.endswith("..."):
        shown, line = shown[:-3], line[:len(shown) - 3]
    return difflib.SequenceMatcher(None, shape(shown), shape(line), autojunk=False).ratio() + (shown == line)


def anew(shown, real):
    """Of real the runs of lines that are most like those shown between cuts, in their order, the first of those alike."""
    inner = shown[shown[0] == "...":len(shown) - (shown[-1] == "...")]
    runs = [run.split("\n") for run in "\n".join(inner).split("\n...\n")]
    like = [[sum(map(likeness, run, real[j:])) if j + len(run) <= len(real) else 0.0 for j in range(len(real))]
            for run in runs]
    best = [[0.0] * (len(real) + 1) for _ in range(len(runs) + 1)]
    for i in reversed(range(len(runs))):
        for j in reversed(range(len(real))):
            best[i][j] = max(best[i][j + 1], best[i + 1][min(j + len(runs[i]), len(real))] + like[i][j])
    lines, j = [], 0
    for i, run in enumerate(runs):
        first = j
        while j < len(real) and best[i][j] == best[i][j + 1]:
            j += 1
        lines += ["..."] * (j > first)
        for old, line in zip(run, real[j:]):
            cut = old.endswith("...") and len(line) >= len(old)
            lines.append(line[:len(old) - 3] + "..." if cut else line)
        j = min(j + len(run), len(real))
    return lines + ["..."] * (j < len(real))


def main():
    page = pieces(PAGE.read_text())
    update, ran, variables, failed, new = os.environ.get("AP_UPDATE") == "1", {}, [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        for at, (kind, lines) in enumerate(page):
            new.append(lines if kind == "text" else [INDENT + line for line in lines])
            if kind != "command":
                continue
            command = "\n".join(lines)[2:]
            if re.match(r"\w+='[^']*'$", command):
                variables.append(command)
            if command not in ran:
                p = subprocess.run(["sh", "-c", "\n".join(variables + [command])], cwd=folder, env=ENV, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                ran[command] = p.returncode, [line.rstrip() for line in p.stdout.rstrip("\n").split("\n") if p.stdout]
            status, real = ran[command]
            # 1: they differ, 5: proven that nothing fits
            if status not in (0, 1, 5):
                failed += 1
                print("FAILED: exit status %d: %s\n%s" % (status, command, "\n".join(real)))
            shown = page[at + 1][1] if at + 1 < len(page) and page[at + 1][0] == "output" else []
            if update and shown not in ([], ["..."]):
                page[at + 1] = "output", anew(shown, real)
                continue
            wrong = first_wrong(shown, real)
            if wrong or len(shown) > MOST + 3:
                failed += 1
                print("FAILED: %s\n  %s\nof:\n%s" % (command, wrong or "%d lines are shown" % len(shown),
                                                     "\n".join(real)))
    asked = len(re.findall(r"^### ", PAGE.read_text(), re.M))
    if asked < 30 or len(ran) < 30:
        failed += 1
        print("FAILED: %d questions, %d commands" % (asked, len(ran)))
    if update:
        PAGE.write_text("\n".join(line for lines in new for line in lines))
    print("%d questions, %d commands" % (asked, len(ran)))
    return 1 if failed else 0


sys.exit(main())
