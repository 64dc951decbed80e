# SPDX-License-Identifier: Apache-2.0
"""Usage: experts.py PROGRAM

What experts cost where tokens are moved to them: of each block and micro-batch an all-to-all to the experts
and one back, each of k T h b (ep - 1) / ep bytes of a device (T tokens of it, each with k experts, h units of
b bytes), and the same behind the backward pass, whichever of dp, cp and tp the ep ranks are of; weights of
3 E h f / (ep etp) elements of a device; gradients summed over the dp cp tp / (ep etp) devices that hold the same
experts. Where experts take all tokens and the busiest has 1 + v times the mean, the busiest of ep devices has
1 + v sqrt((ep - 1) / (E - 1)) times it, to work on, to send and to keep.
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

OWN = [(8, 1, 1, 8, 1), (4, 2, 1, 4, 2)]
RELAYED = [(8, 1, 1, 8, 1), (16, 1, 1, 16, 1), (8, 2, 1, 8, 2), (4, 2, 1, 8, 1)]
UNEVEN = [(8, 1, 1, 1, 1), (8, 1, 1, 8, 1), (16, 1, 1, 16, 1), (4, 2, 1, 4, 2), (4, 2, 1, 8, 1), (2, 1, 4, 8, 1)]


def run(*args):
    subprocess.run([PROGRAM, *args], check=True, stdout=subprocess.DEVNULL)


def evaluate(folder, dp, tp, cp, ep, etp, *args):
    run("evaluate", f"{folder}/g.json", "--device-num", str(dp * tp * cp), "--chip", "h100", "--executor",
        "megatron", "--hybrid", f"dp={dp},tp={tp},cp={cp},ep={ep},etp={etp},mbs=1,sp={int(tp > 1)}",
        "--plan-out", f"{folder}/p.json", *args)
    with open(f"{folder}/p.json", encoding="utf-8") as file:
        return json.load(file)


def is_expert(o):
    return "/ffn-" in o["name"] and o["type"] != "Reshape"


def check_uneven(folder, *degrees):
    """Against experts with equal numbers of tokens: longer by the busiest device's share, and no more than that."""
    even, ep = evaluate(folder, *degrees, "--expert-imbalance", "1"), degrees[3]
    for imbalance, args in (1.52, ()), (3, ("--expert-imbalance", "3")):
        plan, load = evaluate(folder, *degrees, *args), min(ep, 1 + (imbalance - 1) * math.sqrt((ep - 1) / (E - 1)))
        assert abs(plan["settings"]["expert_imbalance"] or 1.52) == imbalance
        for a, b in zip(even["operators"], plan["operators"]):
            if not is_expert(a):
                assert a["cost"] == b["cost"] and a["memory"] == b["memory"], f"{a['name']} has no experts"
                continue
            assert "load" not in a["cost"] and abs(b["cost"].get("load", 1) / load - 1) < 1e-9, f"{b['cost']}, not {load}"
            for key in "forward_s", "backward_s":
                assert a["cost"][key] <= b["cost"][key] <= load * a["cost"][key] * (1 + 1e-9), f"{a['name']}: {key}"
            for key in ("gradient_s", "optimizer_s"):
                assert a["cost"][key] == b["cost"][key], f"{a['name']}: weights are dealt evenly"
            assert abs(b["memory"]["activations_bytes"] - load * a["memory"]["activations_bytes"]) <= 2, f"{a['name']}"
            assert a["memory"]["weights_bytes"] == b["memory"]["weights_bytes"]
        for a, b in zip(even["redistributions"], plan["redistributions"]):
            ratio = load if a["tensor"].endswith(("dealt", "narrow")) else 1
            for key in "forward_s", "backward_s":
                assert abs(b[key] - ratio * a[key]) <= 1e-9 * a[key], f"{a['tensor']}: {key} {b[key]}, not {ratio} x {a[key]}"
        assert (plan["prediction"]["step_time_s"] > even["prediction"]["step_time_s"]) == (ep > 1)


def check(folder, dp, tp, cp, ep, etp):
    plan = evaluate(folder, dp, tp, cp, ep, etp)
    assert all("load" not in o["cost"] for o in plan["operators"]), "experts have a capacity"
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


def check_kept(folder, dp, tp, cp, ep, etp):
    """Of k T places of a device are kept: tokens, gate and wide product, what the last one reads, weights; no answers."""
    plan = evaluate(folder, dp, tp, cp, ep, etp)
    places = B * S * K // (dp * tp * cp) // (B // dp)
    want = {"dealt": H, "gate": F // etp, "wide": F // etp, "gated": F // etp, "weights.dealt": 1}
    for layer in range(LAYERS):
        own = [o for o in plan["operators"] if is_expert(o) and f"/{layer}-" in o["name"]]
        assert [o["type"] for o in own] == ["BatchMatMul", "BatchMatMul", "MoeGate", "BatchMatMul"], [o["type"] for o in own]
        results = sum(o["memory"]["activations_bytes"] for o in own)
        assert own[-1]["memory"]["activations_bytes"] == 0, "what the experts answer is kept"
        assert results == 2 * etp * places * sum(want[t] for t in ("gate", "wide", "gated")), results
        for name in want if etp == 1 else (): # else what is gathered is, once more, and not held
            moved = [r for r in plan["redistributions"] if r["tensor"] == f"layers.{layer}.{name}" and r["steps"]]
            held = sum(r["kept_bytes"] for r in moved)
            assert held == (2 * places * want[name] if moved else 0), f"{name}: {held} bytes of copies"
        assert not any(r["kept_bytes"] for r in plan["redistributions"] if r["tensor"] == f"layers.{layer}.narrow")
    again = evaluate(folder, dp, tp, cp, ep, etp, "--recompute", "moe_act")
    less = sum(p["prediction"]["memory"][0]["activations_bytes"] * (-1 if p is again else 1) for p in (plan, again))
    assert less >= 2 * LAYERS * places * want["gated"], f"moe_act saves {less} bytes"


def check_relayed(folder, dp, tp, cp, ep, etp):
    """DeepEP sends the same tokens to the same experts: what differs are times of redistributions, shorter or equal."""
    plain = evaluate(folder, dp, tp, cp, ep, etp, "--devices-per-server", "4")
    plan = evaluate(folder, dp, tp, cp, ep, etp, "--devices-per-server", "4", "--moe-token-dispatcher-type", "deepep")
    assert plain["operators"] == plan["operators"] and len(plain["redistributions"]) == len(plan["redistributions"])
    for a, b in zip(plain["redistributions"], plan["redistributions"]):
        of_tokens = a["tensor"].endswith(("dealt", "narrow")) and a["steps"]
        for key in "forward_s", "backward_s":
            assert b[key] < a[key] if of_tokens else b[key] == a[key], f"{a['tensor']}: {key} {b[key]}, of {a[key]}"
    assert plan["prediction"]["step_time_s"] < plain["prediction"]["step_time_s"]


def check_mindspore(folder, dp, tp, cp, ep, etp):
    """Operators of MindSpore alone, which exchange the same bytes for each product that reads them."""
    config = {"model_type": "mixtral", "hidden_size": H, "intermediate_size": F, "num_hidden_layers": LAYERS,
              "num_attention_heads": 8, "num_key_value_heads": 8, "num_local_experts": E, "num_experts_per_tok": K,
              "vocab_size": 512, "max_position_embeddings": S, "torch_dtype": "bfloat16", "hidden_act": "silu"}
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    run("evaluate", f"{folder}/config.json", "--batch", str(B), "--sequence", str(S), "--device-num", str(dp * tp),
        "--chip", "ascend910b", "--hybrid", f"dp={dp},tp={tp},ep={ep},mbs=1", "--plan-out", f"{folder}/p.json")
    with open(f"{folder}/p.json", encoding="utf-8") as file:
        plan = json.load(file)
    types = [o["type"] for o in plan["operators"]]
    assert types.count("TopKRouter") == LAYERS and types.count("Gather") == 2 * LAYERS + 1
    assert "MoeDispatch" not in types and "MoeCombine" not in types
    moved = [r for r in plan["redistributions"] if r["tensor"].endswith(("dealt", "answers")) and r["steps"]]
    assert [r["tensor"].split(".")[-1] for r in moved] == ["dealt", "dealt", "answers"] * LAYERS
    for r in moved:
        step = r["steps"][0]
        assert len(r["steps"]) == 1 and step["kind"] == "AlltoAll" and step["axis"] == [tp, ep], r["steps"]
        assert step["bytes_before"] == K * S * H * 2, step


def main():
    failed = 0
    for capacity, cases, of in ("1", CASES, check), ("0", UNEVEN, check_uneven), ("1", RELAYED, check_relayed), ("1", OWN, check_kept), ("1", OWN, check_mindspore):
        with tempfile.TemporaryDirectory() as folder:
            run("model", "mixtral", "--layers", str(LAYERS), "--hidden", str(H), "--inner", str(F), "--heads", "8",
                "--kv-heads", "8", "--experts", str(E), "--active", str(K), "--sequence", str(S), "--batch", str(B),
                "--vocabulary", "512", "--capacity", capacity, "--kernels", "fused", "-o", f"{folder}/g.json")
            for case in cases:
                try:
                    of(folder, *case)
                except AssertionError as e:
                    failed += 1
                    print(f"dp={case[0]} tp={case[1]} cp={case[2]} ep={case[3]} etp={case[4]}: {e}")
    print(f"{len(CASES) + len(UNEVEN) + len(RELAYED) + 2 * len(OWN)} cases, {failed} failed")
    sys.exit(failed > 0)


main()
