#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# grid.sh PLANNER GRID [sample | all [K/N]]: does `plan` decide for the fastest hybrid of the named grid (bench/grid.c)?
# Each case is a bundled model on 8 to 1,024 devices of three chips for an executor. What is decided must not be slower than
# the fastest of the grid that fits, and there is a plan wherever one fits. sample: 200 hybrids of 25 cases by chance, AP_SEED
# says which (20261123), under a minute; all: every hybrid of every case, hours. K/N: each N-th case from the K-th on, from 1.
# A line a case: step decided, the grid's, their ratio, hybrids priced, seconds of both. Then how many cases there were.
set -eu

if [ $# -lt 2 ]; then
  echo "usage: grid.sh PLANNER GRID [sample | all [K/N]]" >&2
  exit 2
fi
planner=$1
grid=$2
what=${3:-all}
part=${4:-1/1}
seed=${AP_SEED:-20261123}
models=$(dirname "$0")/../models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
cases=0 failed=0 unfit=0 hybrids=0

# cases MODEL...: "MODEL DEVICES CHIP EXECUTOR", of decoders also for frameworks that know no others.
list() {
  for model in "$@"; do
    decoder=
    case $model in
    gpt3* | llama* | mixtral*) decoder=1 ;;
    esac
    for devices in 8 64 256 1024; do
      for executor in mindspore ${decoder:+mindformers mindspeed}; do
        echo "$model $devices ascend910b $executor"
      done
      for chip in a100-80 h100-80; do
        for executor in generic ${decoder:+megatron torchtitan}; do
          echo "$model $devices $chip $executor"
        done
      done
    done
  done
}

# decided: the step of the hybrid that was decided, which a search of cuts may go below
decided() {
  awk '
    /^ *"joint":/ { inside = 1 }
    inside && /^ *"step_time_s":/ { sub(/,$/, ""); print $2; exit }' "$work/plan"
}

try() { # MODEL DEVICES CHIP EXECUTOR [--sample N --seed N]
  model=$1 devices=$2 chip=$3 executor=$4
  shift 4
  cases=$((cases + 1))
  code=0
  began=$(date +%s)
  set -- "$models/$model.json" --device-num "$devices" --chip "$chip" --executor "$executor" "$@"
  "$planner" plan "$1" --device-num "$devices" --chip "$chip" --executor "$executor" --json >"$work/plan" 2>"$work/err" ||
    code=$?
  middle=$(date +%s)
  if ! "$grid" "$@" >"$work/grid" 2>"$work/grid.err"; then
    cat "$work/grid" "$work/grid.err"
    failed=$((failed + 1))
    return 0
  fi
  ended=$(date +%s)
  best=$(awk '/^best/ { print $2 }' "$work/grid")
  words=$(sed -n 's/^best [^ ]* [^ ]* //p' "$work/grid")
  priced=$(awk '/^combinations/ { print $4 }' "$work/grid")
  hybrids=$((hybrids + priced))
  step=-
  [ "$code" != 0 ] || step=$(decided)
  awk -v step="$step" -v best="${best:--}" -v code="$code" -v what="$model $devices $chip $executor" \
    -v priced="$priced" -v took="$((middle - began)) s, $((ended - middle)) s" -v words="$words" 'BEGIN {
      good = step != "-" ? best == "-" || step + 0 <= best * (1 + 1e-9) : best == "-" && (code == 5 || code == 2)
      ratio = step != "-" && best != "-" ? sprintf("%.4f", step / best) : "-"
      printf "%s%s: %s s, grid %s s, ratio %s, %d priced, %s%s\n", good ? "" : "WRONG ", what, step, best, ratio, priced, took,
        good ? "" : ", exit status " code "; " words
      exit !good }' || failed=$((failed + 1))
  [ "$step" != - ] || unfit=$((unfit + 1))
  if [ "$code" != 0 ] && [ "$code" != 5 ]; then
    cat "$work/err"
  fi
}

case $what in
sample)
  echo "seed $seed"
  list multiple_mix resnet50 resnet50_imagenet bert_large vit_l gpt3_1.3b gpt3_13b_flash llama2_7b |
    awk -v seed="$seed" '
      function chance() { x = x * 16807 % 2147483647; return x / 2147483647 }
      BEGIN { x = seed % 2147483646 + 1; for (i = 0; i < 8; i++) chance() }
      { printf "%.9f %d %s\n", chance(), 1 + int(chance() * 1e9), $0 }' | sort | head -n 20 >"$work/cases"
  while read -r _ own model devices chip executor; do
    try "$model" "$devices" "$chip" "$executor" --sample 10 --seed "$own" </dev/null
  done <"$work/cases"
  ;;
all)
  list multiple_mix resnet50 resnet50_imagenet wide_deep wide_deep_large bert_large vit_l gpt3_1.3b gpt3_13b gpt3_13b_flash \
    gpt3_175b llama2_7b llama2_70b mixtral_8x7b |
    awk -v first="${part%/*}" -v n="${part#*/}" '(NR - first) % n == 0' >"$work/cases"
  while read -r model devices chip executor; do
    try "$model" "$devices" "$chip" "$executor" </dev/null
  done <"$work/cases"
  ;;
*)
  echo "grid.sh: $what: expected sample or all" >&2
  exit 2
  ;;
esac
echo "$cases cases, $unfit without a plan, $hybrids hybrids, $failed failed"
[ "$failed" = 0 ]
