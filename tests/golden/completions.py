# SPDX-License-Identifier: Apache-2.0
"""Usage: completions.py PROGRAM BASH_FILE ZSH_FILE FISH_FILE

Types into each shell, on a terminal of its own, and looks at what command it runs when the words were completed.
"""
import os
import pty
import select
import shutil
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='RE''ADY>'; source {}"),
    "zsh": (["zsh", "-f", "-i"], "fpath=({0:h} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt prompt_cr; "
                                 "PROMPT='RE''ADY>'"),
    "fish": (["fish", "--no-config", "-i"], "source {}; function fish_prompt; echo -n RE''ADY'>'; end"),
}
CASES = [  # what is typed, \t completes; the words that then run
    ("sea\t multiple_m\t", ["search", "multiple_mix"]),
    ("plan gpt3_175\t --exec\tmegat\t", ["plan", "gpt3_175b", "--executor", "megatron"]),
    ("search --chip v100-1\t", ["search", "--chip", "v100-16"]),
    ("evaluate --software megatron-deep\t", ["evaluate", "--software", "megatron-deepspeed"]),
    ("search --no-full-b\t", ["search", "--no-full-batch"]),
    ("search --progress=js\t", ["search", "--progress", "json"]),
    ("list softw\t", ["list", "software"]),
    ("model mixt\t", ["model", "mixtral"]),
    ("check onlyf\t", ["check", "onlyfile.json"]),
    ("search --config onlyf\t", ["search", "--config", "onlyfile.json"]),
    ("plan --bundle fold\t", ["plan", "--bundle", "folder"]),
    ("solve --search-m\tbrut\t", ["solve", "--search-mode", "brute_force"]),
]
RECORDER = """#!/bin/sh
# completion reads through a pipe; what was typed runs on the terminal
[ -t 1 ] || exec '{program}' "$@"
printf '%s\\n' "$@" > '{folder}/said.tmp'
mv '{folder}/said.tmp' '{folder}/said'
"""


class Shell:
    def __init__(self, words, env, folder):
        self.text, self.seen = "", 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, env)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, done, what):
        end = time.monotonic() + 60
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: {self.text[-600:]!r}")
            if select.select([self.fd], [], [], 0.05)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace")

    def prompt(self):
        def there():
            return "READY>" in self.text[self.seen:]
        self.wait(there, "no prompt")
        self.seen = len(self.text)

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def plain(words):
    """--x=y as two words; / that a folder's name ends in is the shell's."""
    out = []
    for word in words:
        out += word.split("=", 1) if word.startswith("--") else [word]
    return [word.rstrip("/") for word in out if word]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bin_folder, said = os.path.join(folder, "bin"), os.path.join(folder, "said")
        work = os.path.join(folder, "work")
        os.makedirs(os.path.join(work, "folder"))
        os.mkdir(bin_folder)
        open(os.path.join(work, "onlyfile.json"), "w", encoding="utf-8").close()
        recorder = os.path.join(bin_folder, "autopar-plan")
        with open(recorder, "w", encoding="utf-8") as f:
            f.write(RECORDER.format(program=PROGRAM, folder=folder))
        os.chmod(recorder, 0o755)
        env = {"PATH": bin_folder + ":" + os.environ["PATH"], "HOME": folder, "TERM": "vt100", "LC_ALL": "C.UTF-8",
               "COLUMNS": "200", "LINES": "50"}
        for shell, given in zip(SHELLS, sys.argv[2:]):
            words, start = SHELLS[shell]
            name = os.path.join(folder, shell, os.path.basename(given))
            os.makedirs(os.path.dirname(name))
            shutil.copyfile(given, name)
            if not shutil.which(words[0]):
                print(f"no {shell} here")
                failed += 1
                continue
            start = start.replace("{0:h}", os.path.dirname(name)).replace("{}", name)
            tty = Shell(words, env, work)
            try:
                tty.type(start + "\r")
                tty.prompt()
                for typed, wanted in CASES:
                    tty.type("autopar-plan " + typed + "\r")
                    tty.wait(lambda: os.path.exists(said), f"{shell}: {typed!r} ran nothing")
                    with open(said, encoding="utf-8") as f:
                        got = plain(f.read().split("\n"))
                    os.remove(said)
                    tty.prompt()
                    if got != wanted:
                        failed += 1
                        print(f"{shell}: {typed!r} became {got}; expected {wanted}")
            except AssertionError as e:
                failed += 1
                print(f"{shell}: {e}")
            finally:
                tty.end()
    print(f"{len(CASES)} cases in {len(SHELLS)} shells, {failed} failed")
    sys.exit(failed > 0)


main()
