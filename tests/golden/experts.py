# SPDX-License-Identifier: Apache-2.0
"""Usage: experts.py PROGRAM

What experts cost where tokens are moved to them: of each block and micro-batch an all-to-all to the experts
and one back, each of k T h b (ep - 1) / ep bytes of a device (T tokens of it, each with k experts, h units of
b bytes), and the same behind the backward pass, whichever of dp, cp and tp the ep ranks are of; weights of
3 E h f / (ep etp) elements of a device; gradients summed over the dp cp tp / (ep etp) devices that hold the same
experts.
"""
import json
import math
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
LAYERS, H, F, E, K, S, B = 2, 64, 96, 16, 4, 128, 16
CASES = [  # dp, tp, cp, ep, etp
    (8, 1, 1, 8, 1), (16, 1, 1, 4, 1), (8, 2, 1, 8, 2), (4, 2, 1, 8, 1), (8, 2, 1, 4, 1), (4, 2, 2, 16, 1),
    (4, 1, 2, 8, 1), (2, 1, 4, 8, 1), (4, 2, 2, 8, 2), (2, 4, 2, 16, 1), (8, 4, 1, 16, 1), (2, 2, 1, 4, 1),
]


def run(*args):
    subprocess.run([PROGRAM, *args], check=True, stdout=subprocess.DEVNULL)


def check(folder, dp, tp, cp, ep, etp):
    run("evaluate", f"{folder}/g.json", "--device-num", str(dp * tp * cp), "--chip", "h100", "--executor",
        "megatron", "--hybrid", f"dp={dp},tp={tp},cp={cp},ep={ep},etp={etp},mbs=1,sp={int(tp > 1)}",
        "--plan-out", f"{folder}/p.json")
    with open(f"{folder}/p.json", encoding="utf-8") as file:
        plan = json.load(file)
    tokens = S // (tp * cp)
    volume = K * tokens * H * 2 * (ep - 1) / ep
    for layer in range(LAYERS):
        for name in "dealt", "narrow":
            found = [r for r in plan["redistributions"] if r["tensor"] == f"layers.{layer}.{name}" and r["steps"]]
            assert len(found) == 1, f"{name}: {len(found)} redistributions"
            for way in "steps", "back_steps":
                steps = [s for s in found[0][way] if s["kind"] == "AlltoAll"]
                axes = [s["axis"][1] for s in steps]
                sent = sum(s["bytes_before"] * (n - 1) / n for s, n in zip(steps, axes))
                assert axes == [ep], f"{name}: all-to-alls among {axes}, not ep {ep}"
                assert abs(sent / volume - 1) < 0.01, f"{name} sends {sent} bytes, not {volume}"
    products = [o for o in plan["operators"] if o["type"] == "BatchMatMul" and "/ffn-" in o["name"]]
    assert len(products) == 3 * LAYERS
    for o in products:
        elements = math.prod(o["in_slice"][1])
        assert elements * ep * etp == E * H * F, f"{o['name']}: {elements} elements of a device"
        grads = [c for c in o["communications"] if c["phase"] == "gradient"]
        size = math.prod(parts for c in grads for _, parts in c["axes"])
        assert size == dp * tp * cp // (ep * etp), f"{o['name']}: gradients among {size} devices"


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        run("model", "mixtral", "--layers", str(LAYERS), "--hidden", str(H), "--inner", str(F), "--heads", "8",
            "--kv-heads", "8", "--experts", str(E), "--active", str(K), "--sequence", str(S), "--batch", str(B),
            "--vocabulary", "512", "--capacity", "1", "--kernels", "fused", "-o", f"{folder}/g.json")
        for case in CASES:
            try:
                check(folder, *case)
            except AssertionError as e:
                failed += 1
                print(f"dp={case[0]} tp={case[1]} cp={case[2]} ep={case[3]} etp={case[4]}: {e}")
    print(f"{len(CASES)} cases, {failed} failed")
    sys.exit(failed > 0)


main()
