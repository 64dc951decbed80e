#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# whole.sh BUILD [SAMPLES]: how long whole runs of the program take, on two cores: median and least
# of SAMPLES (5), and the most memory a run held. BUILD is a release build with -Dbench=true.
# Each sample repeats its run so often that the clock's hundredths of a second do not matter.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: whole.sh BUILD [SAMPLES]" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
samples=${2:-5}
cd "$(dirname "$0")/.."
planner=$build/src/cli/autopar-plan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
cores=
if command -v taskset >/dev/null; then
  cores="taskset -c 0,1"
fi

# measure REPEATS WHAT ARGUMENT...: "seconds peak_kib" of each sample into $work/samples.
measure() {
  repeats=$1
  shift
  : >"$work/samples"
  sample=0
  while [ "$sample" -lt "$samples" ]; do
    sample=$((sample + 1))
    # shellcheck disable=SC2016,SC2086 # for the inner shell; words
    $cores /usr/bin/time -a -o "$work/samples" -f '%e %M' sh -e -c '
      repeats=$1
      shift
      while [ "$repeats" -gt 0 ]; do
        "$@" >/dev/null
        repeats=$((repeats - 1))
      done' sh "$repeats" "$planner" "$@" 2>"$work/messages" || {
      cat "$work/messages" >&2
      exit 1
    }
  done
}

# row REPEATS ARGUMENT...: a line of the table.
row() {
  measure "$@"
  sort -n "$work/samples" | awk -v repeats="$1" '
    { s[NR] = $1 / repeats * 1000; if ($2 > most) most = $2 }
    END { printf "%8.1f %8.1f %8.1f", s[int((NR + 1) / 2)], s[1], most / 1024 }'
  shift
  printf '  %s\n' "$*" | sed "s|$work/||g"
}

# plan REPEATS ARGUMENT...: a search that writes checkpoint and plan.
plan() {
  repeats=$1
  shift
  row "$repeats" search "$@" -o "$work/net.ckpt" --plan-out "$work/plan.json" -q
}

"$build/bench/bench_solve" chain 1000 20 alike --write >"$work/chain_alike.json"
"$build/bench/bench_solve" chain 1000 20 --write >"$work/chain.json"

sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c
echo "median ms   least  peak MiB"
plan 50 models/multiple_mix.json models/topo/ascend910_8p.json
plan 10 models/gpt3_1.3b.json models/topo/ascend910_16p.json --chip ascend910a \
  --micro-batches 8 --enable-parallel-optimizer
for model in gpt3_13b gpt3_13b_flash; do
  plan 5 "models/$model.json" --device-num 64 --devices-per-server 8 --chip ascend910b \
    --micro-batches 8 --enable-parallel-optimizer
done
for model in gpt3_13b gpt3_13b_flash; do
  plan 1 "models/$model.json" --device-num 64 --devices-per-server 8 --chip a100-80 --batch 96
done
row 50 solve "$work/chain_alike.json"
row 5 solve "$work/chain.json"
for memory in "" "--memory 9999GB"; do
  # shellcheck disable=SC2086 # words
  plan 1 models/gpt3_175b.json --device-num 1024 --devices-per-server 8 --chip a100-80 --batch 1536 \
    --micro-batches 12 --enable-parallel-optimizer $memory
done
hybrid="dp=16,tp=8,pp=8,mbs=1"
for list in "$hybrid" "$hybrid,vpp=2"; do
  row 3 evaluate models/gpt3_175b.json --device-num 1024 --chip a100-80 --batch 1536 \
    --hybrid "$list" --plan-out "$work/plan.json" -q
done
for scheduler in 1f1b "interleaved --pipeline-segments 2"; do
  # shellcheck disable=SC2086 # words
  plan 1 models/gpt3_175b.json --device-num 1024 --chip a100-80 --batch 1536 --pipeline-stages 8 \
    --micro-batches 96 --pipeline-scheduler $scheduler
done
plan 1 models/gpt3_175b.json --device-num 1024 --chip a100-80 --batch 1536 --pipeline-stages 8 \
  --micro-batches 96 --enable-parallel-optimizer
