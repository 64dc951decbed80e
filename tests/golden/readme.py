# SPDX-License-Identifier: Apache-2.0
"""Usage: readme.py PROGRAM SOURCE_ROOT

The commands of README.md run, in order, in a folder that has what `tools/demo.sh` leaves. A command ends as README
says: with 0, or where errors are shown with the code that the text names, or with 1 where two plans differ. Each line
that is shown is in the output, in this order; "..." stands for lines that are left out, and long messages may be
wrapped. AP_UPDATE=1 prints what differs as it is now.
"""
import os
import re
import subprocess
import sys
import tempfile

PROGRAM, ROOT = (os.path.abspath(a) for a in sys.argv[1:3])
NOT_HERE = ("train.log", "old.json")  # files of a user's own


def blocks(text):
    """Of each command its words and the lines shown behind it."""
    found, shown = [], None
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("    $ "):
            command = line[6:]
            while command.endswith("\\"):
                command = command[:-1].rstrip() + " " + next(lines).strip()
            shown = []
            found.append((command, shown))
        elif line.startswith("    ") or (line == "" and shown):
            if shown is not None:
                shown.append(line[4:])
        else:
            shown = None
    return found


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


def missing(shown, output):
    """The shown lines that are not in the output behind those before them."""
    at, lost, output = 0, [], plain(output)
    for line in shown:
        line = plain(line)
        if not line or line == "...":
            continue
        for part in line.split("..."):
            where = output.find(plain(part), at)
            if where < 0:
                lost.append(line)
                break
            at = where + len(plain(part))
    return lost


def main():
    failed = count = 0
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        found = blocks(f.read())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "models", "tests", "strategies"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "demo-out"))
        env = {**os.environ, "PATH": os.path.dirname(PROGRAM) + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        subprocess.run([PROGRAM, "search", "models/multiple_mix.json", "models/topo/ascend910_8p.json", "-q", "-o",
                        "demo-out/multiple_mix.ckpt"], cwd=folder, env=env, check=True, stderr=subprocess.DEVNULL)
        for command, shown in found:
            if any(name in command for name in NOT_HERE):
                continue
            count += 1
            done = subprocess.run(["sh", "-c", re.sub("^python3 ", sys.executable + " ", command)], cwd=folder, env=env, capture_output=True, text=True, check=False)
            output = done.stdout + done.stderr
            errors = any("autopar-plan: error:" in line for line in shown)
            lost = missing(shown, output)
            if (done.returncode not in (0, 1) and not errors) or (errors and not done.returncode) or lost:
                failed += 1
                print(f"$ {command}\n  exit {done.returncode}; not in the output: " + "\n    ".join([""] + lost))
                if os.environ.get("AP_UPDATE"):
                    print(output)
    print(f"{count} commands, {failed} failed")
    sys.exit(failed > 0 or count < 15)


main()
