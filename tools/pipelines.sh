#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pipelines.sh PLANNER [MODEL...]: each bundled model in 2, 4 and 8 stages under each scheduler, on three
# machines, searched, recursively cut, as given and as a grid, without and with a limit of memory. A
# line for each run that goes wrong: another end than a plan or an error of input or memory, a plan
# slower than a grid that fits, a checkpoint that does not give the plan again, stage files that
# do not merge into the merged file. Then how many runs ended how. Status 1 where one went wrong.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: pipelines.sh PLANNER [MODEL...]" >&2
  exit 2
fi
planner=$1
shift
models=$(dirname "$0")/../models
seconds=${AP_SECONDS:-120} # that a run may take
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
planned=0 refused=0 unfit=0 failed=0

wrong() { # TEXT ARGUMENT...
  printf '%s: %s\n' "$1" "$(shift && echo "$@")"
  failed=$((failed + 1))
}

# values FILE: objective and step time of a summary.
values() {
  sed -n '/"baselines"/q; s/^  "\(objective_s\|step_time_s\)": \([^,]*\),*$/\1 \2/p' "$1" | sort
}

# faster: the grids that fit and are faster than the plan of a summary.
faster() {
  awk -F'[:,] *' '
    /^  "step_time_s"/ { own = $2 + 0 }
    /"name": "dp=.*"fits": true/ {
      for (i = 1; i < NF; i++)
        if ($i ~ /"step_time_s"/ && $(i + 1) + 0 < own * (1 - 1e-9))
          print $2
    }' "$1"
}

again() { # SEARCH_ARGUMENT...
  rm -rf "$work/merged.ckpt"
  if "$planner" convert "$work/plan.stages" "$work/merged.ckpt" >"$work/out" 2>&1; then
    cmp -s "$work/plan.ckpt" "$work/merged.ckpt" || wrong "merged file" "$@"
  else # as MindSpore refuses a stage without parameters
    grep -q 'ckpt-empty' "$work/out" || wrong "stage files" "$@"
  fi
  "$planner" check "$work/plan.json" >"$work/out" 2>&1 || wrong "plan file" "$@"
  "$planner" evaluate "$@" --strategy "$work/plan.ckpt" --json >"$work/second" 2>"$work/err" || {
    wrong "evaluate ends with $?" "$@"
    return
  }
  values "$work/first" >"$work/values"
  values "$work/second" | cmp -s - "$work/values" || wrong "evaluated to another plan" "$@"
}

# count STATUS ARGUMENT...: takes note of how a run ended.
count() {
  code=$1
  shift
  case $code in
  0) planned=$((planned + 1)) ;;
  2 | 4) refused=$((refused + 1)) ;;
  5) unfit=$((unfit + 1)) ;;
  *)
    wrong "status $code" "$@"
    return
    ;;
  esac
  if [ "$code" -ne 0 ] && ! grep -q 'error: .' "$work/err"; then
    wrong "status $code without a reason" "$@"
  fi
}

searched() { # MODE_OPTIONS GRAPH ARGUMENT...
  mode=$1
  shift
  rm -rf "$work"/plan.*
  code=0
  # shellcheck disable=SC2086 # options
  timeout "$seconds" "$planner" search "$@" $mode --json -o "$work/plan.ckpt" \
    --plan-out "$work/plan.json" >"$work/first" 2>"$work/err" || code=$?
  # shellcheck disable=SC2086
  count "$code" search "$@" $mode
  [ "$code" -eq 0 ] || return 0
  case $mode in
  *semi_auto*) again "$@" --parallel-mode semi_auto_parallel ;;
  *)
    again "$@"
    slow=$(faster "$work/first")
    # shellcheck disable=SC2086
    [ -z "$slow" ] || wrong "slower than $(echo "$slow" | tr '\n' ' ')" search "$@" $mode
    ;;
  esac
}

grid() { # GRID GRAPH ARGUMENT...
  hybrid=$1
  shift
  code=0
  timeout "$seconds" "$planner" evaluate "$@" --hybrid "$hybrid" --json >"$work/first" \
    2>"$work/err" || code=$?
  count "$code" evaluate "$@" --hybrid "$hybrid"
}

kinds() { # DEVICES BATCH MICRO_BATCHES STAGES SEGMENTS GRAPH ARGUMENT...
  batch=$2 micro=$3 stages=$4 segments=$5
  data=$(($1 / stages)) tensor=1
  if [ $((data % 2)) -eq 0 ]; then
    data=$((data / 2)) tensor=2
  fi
  shift 5
  for mode in "" "--search-mode recursive_programming" "--parallel-mode data_parallel" \
    "--parallel-mode semi_auto_parallel"; do
    searched "$mode" "$@" --batch "$batch" --micro-batches "$micro" --pipeline-stages "$stages" \
      --pipeline-segments "$segments"
  done
  grid "dp=$data,tp=$tensor,pp=$stages,vpp=$segments,mbs=$((batch / micro / data))" "$@" \
    --batch "$batch"
}

machine() { # DEVICES BATCH MICRO_BATCHES ARGUMENT...
  devices=$1 of=$2 in=$3
  shift 3
  for number in 2 4 8; do
    for scheduler in gpipe 1f1b interleaved zero_bubble_v; do
      parts=1
      case $scheduler in interleaved | zero_bubble_v) parts=2 ;; esac
      kinds "$devices" "$of" "$in" $number $parts "$models/$model.json" "$@" \
        --pipeline-scheduler $scheduler --memory 9999GB
      kinds "$devices" "$of" "$in" $number $parts "$models/$model.json" "$@" \
        --pipeline-scheduler $scheduler
    done
  done
}

[ $# -gt 0 ] || set -- multiple_mix resnet50 resnet50_imagenet wide_deep wide_deep_large bert_large \
  vit_l gpt3_1.3b gpt3_13b gpt3_13b_flash gpt3_175b llama2_7b llama2_70b mixtral_8x7b
for model; do
  machine 8 64 8 "$models/topo/ascend910_8p.json"
  machine 64 512 16 --device-num 64 --devices-per-server 8 --chip ascend910b
  machine 64 512 16 --device-num 64 --devices-per-server 8 --chip a100-80
done
echo "$planned planned, $refused refused, $unfit fit nothing, $failed wrong"
[ $failed -eq 0 ]
