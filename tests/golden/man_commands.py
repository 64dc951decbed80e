# SPDX-License-Identifier: Apache-2.0
"""Usage: man_commands.py PROGRAM SOURCE_ROOT

The examples of the manual pages of commands run: each, in a folder that has the files which they name.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM, ROOT = (os.path.abspath(a) for a in sys.argv[1:3])
LLAMA = ["llama", "--layers", "2", "--hidden", "512", "--heads", "8", "--kv-heads", "8", "--inner", "1024", "--vocabulary",
         "2048", "--sequence", "256", "--batch", "64", "--attention", "flash", "--dtype", "bfloat16"]
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
          "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 2048,
          "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}
SCRIPT = """torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size {pp} --num-layers 4 \\
  --hidden-size 512 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 --vocab-size 32000 \\
  --micro-batch-size 1 --global-batch-size 16 --bf16
"""
RUN = {"compare", "diff"}  # 1 says that there are differences
failed = 0


def run(folder, *words):
    return subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]})


def must(folder, *words):
    done = run(folder, *words)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")


def prepare(folder):
    """The files that examples name."""
    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def copy(name, *path):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, *path), os.path.join(folder, name))

    for name in ("net.json", "graph.json", "old.json"):
        copy(name, "models", "multiple_mix.json")
    must(folder, "model", *LLAMA, "-o", "gpt.json", "-q")
    write("config.json", json.dumps(CONFIG))
    copy("rank_table.json", "models", "topo", "ascend910_8p.json")
    copy("lab.json", "models", "topo", "ascend910_8p.json")
    copy("hostfile", "tests", "topologies", "hosts", "hostfile")
    copy("ir/17_pre_auto_parallel_0021.ir", "tests", "dumps", "cnn_pre_auto_parallel_0023.ir")
    copy("net.onnx", "tests", "onnx", "llama_17.onnx")
    write("run.sh", SCRIPT.format(pp=2))
    write("other.sh", SCRIPT.format(pp=1))
    search = ("search", "net.json", "rank_table.json", "-q")
    must(folder, *search, "-o", "net.ckpt", "--plan-out", "net.plan.json")
    for name in ("plan.json", "yesterday.json", "last-week.plan.json"):
        shutil.copyfile(os.path.join(folder, "net.plan.json"), os.path.join(folder, name))
    must(folder, *search, "--enable-parallel-optimizer", "--plan-out", "today.json")
    must(folder, *search, "--pipeline-stages", "2", "--micro-batches", "4", "-o", "merged.json")
    shutil.copytree(os.path.join(folder, "merged.stages"), os.path.join(folder, "net.stages"))
    for i, name in enumerate(("run", "run1", "run2")):
        must(folder, "evaluate", "--config", "other.sh" if i == 2 else "run.sh", "--chip", "h100", "-q", "--bundle", name)
        with open(os.path.join(folder, name, "plan.json"), encoding="utf-8") as f:
            step = json.load(f)["prediction"]["step_time_s"]
        write(f"train{i or ''}.log", "step,time_s\n" + "".join(f"{k},{step * 1.1}\n" for k in range(1, 20)))


def examples(page):
    """The commands that a page shows, continued lines joined."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    text = text.split("\n.Sh EXAMPLES\n")[1].split("\n.Sh ")[0]
    text = re.sub(r"\\e\n\s+", "", text)
    return [m.replace("\\e", "\\") for m in re.findall(r"(?m)^(?:\.Dl )?\$ (autopar-plan .*)$", text)]


def main():
    global failed
    pages = sorted(f for f in os.listdir(os.path.join(ROOT, "man")) if re.fullmatch(r"autopar-plan(-\w+)?\.1", f))
    count = 0
    with tempfile.TemporaryDirectory() as base:
        prepared = os.path.join(base, "prepared")
        os.mkdir(prepared)
        prepare(prepared)
        for page in pages:
            folder = os.path.join(base, page)
            shutil.copytree(prepared, folder)
            if "explain" in page:
                shutil.copyfile(os.path.join(folder, "gpt.json"), os.path.join(folder, "net.json"))
                must(folder, "search", "net.json", "rank_table.json", "-q", "--plan-out", "net.plan.json")
            shown = examples(os.path.join(ROOT, "man", page))
            if not shown:
                failed += 1
                print(f"{page}: no examples")
            for command in shown:
                count += 1
                if command.startswith("autopar-plan convert"):  # its outputs are inputs of others
                    shutil.rmtree(folder)
                    shutil.copytree(prepared, folder)
                done = subprocess.run(["sh", "-c", command.replace("autopar-plan", "'" + PROGRAM + "'", 1)], cwd=folder,
                                      capture_output=True, text=True, check=False)
                if done.returncode and not (done.returncode == 1 and command.split()[1] in RUN):
                    failed += 1
                    print(f"{page}: {command}\n  exit {done.returncode}: {done.stderr}{done.stdout[:300]}")
    print(f"{count} commands of {len(pages)} pages, {failed} failed")
    sys.exit(failed > 0 or count < 40)


main()
