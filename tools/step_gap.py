#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: step_gap.py PLAN [PERCENT]

Of a plan file: step, step bound, step gap and, where the gap is above PERCENT, what the step waits for beside its
kernels, longest first: exchanges of gradients behind the last pass, collectives of operators and redistributions
within the passes, the pipeline's bubble. The bound takes of these only what every plan has to wait for. Columns of
a Markdown table; nothing where the step has no bound."""
import json
import sys

UNITS = (1, "s"), (1e-3, "ms"), (1e-6, "us")


def seconds(value):
    unit, name = next((u for u in UNITS if value >= u[0]), UNITS[-1])
    return f"{value / unit:.3g} {name}"


def behind(events):
    """Seconds between the last pass and the first update, of the stage where they are most."""
    most = 0
    for stage in {e["stage"] for e in events}:
        ends = [e["end_s"] for e in events if e["stage"] == stage and e["event"] in ("backward", "redistribution_back")]
        starts = [e["start_s"] for e in events if e["stage"] == stage and e["event"] == "optimizer"]
        if ends and starts:
            most = max(most, min(starts) - max(ends))
    return most


def terms(plan):
    """[(seconds, words)], longest first."""
    prediction, length = plan["prediction"], {"collectives": 0, "redistributions": 0}
    for event in plan["schedule"]:
        if event["event"] in ("redistribution", "redistribution_back"):
            length["redistributions"] += event["end_s"] - event["start_s"]
        elif event["event"] == "communication":
            told = plan["operators"][event["operator"]]["communications"][event["communication"]]
            if told["phase"] in ("forward", "backward"):
                length["collectives"] += event["end_s"] - event["start_s"]
    tail = min(behind(plan["schedule"]), prediction["exposed_communication_s"])
    within, total = prediction["exposed_communication_s"] - tail, sum(length.values())
    found = [(tail, "gradients behind the last pass"), (prediction["bubble_s"], "bubble")]
    found += [(within * part / total, f"{words} in the passes") for words, part in length.items() if total > 0]
    return sorted((t for t in found if t[0] >= 0.001 * prediction["step_time_s"]), reverse=True)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    step, bound, gap = (plan["prediction"][key] for key in ("step_time_s", "step_bound_s", "step_gap"))
    above = len(sys.argv) > 2 and gap * 100 > float(sys.argv[2])
    if bound > 0 and (above or len(sys.argv) == 2):
        waits = ", ".join(f"{words} {seconds(value)}" for value, words in terms(plan)) or "kernels alone"
        print(f"{seconds(step)} | {seconds(bound)} | {gap:.2%} | {waits} |".replace("%", " %"))


main()
