#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# never-worse.sh PLANNER [sample | models | random [K/N]]: is what is written the fastest that is known?
# Each run is a graph on a machine in some stages. No baseline of its plan that fits is faster, and no hybrid of
# the same settings; of ten limits of work, the higher gives no slower a plan, none is slower than --work-limit
# 0, and the run without a limit is slower than none. sample: forty small runs, about a minute. models: every
# bundled model on 8 to 1,024 devices of two chips in 1, 4 and 8 stages; random: two hundred pairs of a network
# and a machine. Without a word: both. K/N: only each N-th run from the K-th on, from 1, so that N processes share
# the work. A line for each run that goes wrong; then how many runs there were. Searches that take longer than
# AP_SECONDS (300) count as late and say nothing.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: never-worse.sh PLANNER [sample | models | random [K/N]]" >&2
  exit 2
fi
planner=$1
what=${2:-all}
part=${3:-1/1}
models=$(dirname "$0")/../models
seconds=${AP_SECONDS:-300} # that a run may take
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
turn=0 runs=0 unfit=0 failed=0 hybrids=0 stops=0 late=0

# random SEED N: a number below N
random() {
  awk -v seed="$1" -v n="$2" 'BEGIN {
    x = seed % 2147483647 + 1
    for (i = 0; i < 8; i++) x = x * 16807 % 2147483647
    print x % n
  }'
}

# pick SEED WORD...: one of the words
pick() {
  seed=$1
  shift
  shift "$(random "$seed" $#)"
  echo "$1"
}

wrong() { # TEXT
  echo "$1: $graph $options"
  failed=$((failed + 1))
}

step_of() { # PLAN: its step time
  awk '/^ "prediction"/ { found = 1 } found && /"step_time_s"/ { sub(/,$/, ""); print $2; exit }' "$1"
}

is_slower() { # A B: is a step of A seconds slower than one of B?
  awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b * (1 + 1e-12)) }'
}

# plan OPTION...: "STATUS SECONDS" of a search
plan() {
  code=0
  # shellcheck disable=SC2086 # words
  timeout "$seconds" "$planner" search "$work/graph.json" $options "$@" -q --plan-out "$work/plan.json" \
    2>"$work/err" || code=$?
  case $code in
  0 | 8) echo "$code $(step_of "$work/plan.json")" ;;
  *) echo "$code -" ;;
  esac
}

# hybrid LIST: step time of a hybrid that fits; nothing if it is none
hybrid() {
  # shellcheck disable=SC2086 # words
  timeout "$seconds" "$planner" evaluate "$work/graph.json" $options --hybrid "$1" -q \
    --plan-out "$work/hybrid.json" 2>"$work/err" || return 0
  if ! grep -q 'memory-fits' "$work/err" &&
    awk '/"capacity_bytes"/ { sub(/,$/, ""); most = $2 }
         /"total_bytes"/ && /stage/ { while (match($0, /"total_bytes": [0-9]+/)) {
           n = substr($0, RSTART + 15, RLENGTH - 15); if (n + 0 > most + 0) bad = 1
           $0 = substr($0, RSTART + RLENGTH) } }
         END { exit bad }' "$work/hybrid.json"; then
    step_of "$work/hybrid.json"
  fi
}

# climb LIMIT...: plans of ascending limits of work; in $last the step of the last, if there is one
climb() {
  last=
  for limit in "$@"; do
    stop=$(plan --work-limit "$limit")
    if [ "${stop%% *}" = 124 ]; then
      late=$((late + 1))
    elif [ "${stop#* }" != - ]; then
      stops=$((stops + 1))
      [ -z "$last" ] || ! is_slower "${stop#* }" "$last" ||
        wrong "--work-limit $limit takes ${stop#* } s, a lower one $last s"
      last=${stop#* }
    elif [ -n "$last" ]; then
      wrong "--work-limit $limit finds no plan, a lower one does"
    fi
  done
}

# try SEED DEVICES STAGES: one run
try() {
  seed=$1
  devices=$2
  stages=$3
  turn=$((turn + 1))
  [ $(((turn - ${part%/*}) % ${part#*/})) = 0 ] || return 0
  runs=$((runs + 1))
  full=$(plan)
  code=${full%% *}
  own=${full#* }
  if [ "$code" = 124 ]; then
    late=$((late + 1))
    return 0
  fi
  if [ "$own" = - ]; then
    unfit=$((unfit + 1))
    [ "$code" = 5 ] || [ "$code" = 7 ] || [ "$code" = 2 ] || [ "$code" = 4 ] || wrong "ended with $code"
    return 0
  fi
  awk -F'[:,] *' -v own="$own" '/"name": ".*"fits": true/ {
    for (i = 1; i < NF; i++)
      if ($i ~ /"step_time_s"/ && $(i + 1) + 0 < own * (1 - 1e-12)) print $2 }' "$work/plan.json" >"$work/faster"
  [ ! -s "$work/faster" ] || wrong "slower than $(tr '\n' ' ' <"$work/faster")"
  inside=$((devices / stages))
  for cp in 1 2; do
    tp=1
    while [ $((tp * cp)) -le "$inside" ] && [ "$tp" -le 64 ]; do
      for sp in 0 1; do
        if [ $((inside % (tp * cp))) = 0 ] && [ $((tp * cp)) -gt 1 ]; then
          list=dp=$((inside / tp / cp)),tp=$tp,cp=$cp,sp=$sp,pp=$stages
          other=$(hybrid "$list")
          if [ -n "$other" ]; then
            hybrids=$((hybrids + 1))
            ! is_slower "$own" "$other" || wrong "$own s, slower than --hybrid $list, $other s"
          fi
        fi
      done
      tp=$((tp * 2))
    done
  done
  # shellcheck disable=SC2046 # numbers
  climb 0 $(for i in 1 2 3 4 5 6 7 8 9 10; do
    awk -v e="$(random "$((seed + i))" 250)" 'BEGIN { printf "%.0f\n", 2 ^ (10 + e / 10) }'
  done | sort -n)
  [ -z "$last" ] || ! is_slower "$own" "$last" || wrong "$own s without a limit, $last s with one"
}

# Limits around the least work of an improvement, which a limit does not cut short: what follows begins with it.
improved() {
  graph=gpt3_13b_flash
  cp "$models/$graph.json" "$work/graph.json"
  options="--chip ascend910b --device-num 16 --enable-parallel-optimizer --pipeline-stages 8 --micro-batches 16"
  climb 1000 20000000 33554432
}

# network SEED SIZE: a graph of random dimensions in $work/graph.json, its batch in $batch
network() {
  heads=$(pick "$(($1 + 1))" 4 8 16)
  hidden=$((heads * $(pick "$(($1 + 2))" 32 64 128)))
  # shellcheck disable=SC2086 # words
  layers=$(pick "$(($1 + 3))" $2)
  sequence=$(pick "$(($1 + 4))" 128 256 1024)
  batch=$(pick "$(($1 + 5))" 8 32 64 96 512)
  model=$(pick "$(($1 + 6))" gpt3 gpt3 llama bert)
  graph="$model, $layers x $hidden, $heads heads, $sequence, batch $batch"
  [ "$model" != llama ] || set -- "$@" --kv-heads "$heads"
  shift 2
  "$planner" model "$model" --model-name net --layers "$layers" --hidden "$hidden" --heads "$heads" \
    --sequence "$sequence" --batch "$batch" --vocabulary 8192 "$@" >"$work/graph.json"
}

# machine SEED DEVICES: options of a random machine and step; stages in $stages
machine() {
  chip=$(pick "$(($1 + 11))" ascend910b a100-80 ascend910a)
  stages=$(pick "$(($1 + 12))" 1 1 2)
  micro=$(pick "$(($1 + 13))" 1 4)
  options="--chip $chip --device-num $2 --micro-batches $((micro * stages)) --executor $(pick "$(($1 + 14))" \
    mindspore generic)"
  [ "$stages" = 1 ] || options="$options --pipeline-stages $stages"
  [ "$(random "$(($1 + 15))" 2)" = 0 ] || options="$options --enable-parallel-optimizer"
}

by_chance() { # RUNS LAYERS DEVICES...
  count=$1
  depth=$2
  shift 2
  i=0
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    network "$((i * 1000))" "$depth"
    devices=$(pick "$((i * 1000 + 20))" "$@")
    machine "$((i * 1000))" "$devices"
    try "$((i * 1000 + 30))" "$devices" "$stages"
  done
}

by_model() {
  for file in "$models"/*.json; do
    for devices in 8 16 64 256 1024; do
      for chip in ascend910b a100-80; do
        for stages in 1 4 8; do
          graph=$(basename "$file" .json)
          cp "$file" "$work/graph.json"
          options="--chip $chip --device-num $devices --enable-parallel-optimizer"
          [ "$stages" = 1 ] || options="$options --pipeline-stages $stages --micro-batches $((2 * stages))"
          try "$((devices + stages))" "$devices" "$stages"
        done
      done
    done
  done
}

case $what in
sample)
  by_chance 40 "1 2" 4 8 16
  improved
  ;;
models) by_model ;;
random) by_chance 200 "1 2 4 8" 8 16 64 256 ;;
all)
  by_model
  by_chance 200 "1 2 4 8" 8 16 64 256
  ;;
esac
echo "$runs runs, $unfit without a plan, $hybrids hybrids, $stops limits, $late late, $failed failed"
[ "$failed" = 0 ]
