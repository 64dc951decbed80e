#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: exact.sh PROGRAM SOURCE_ROOT DEVICES [MODEL...]
# A strategy checkpoint stands for its plan: evaluated, in either form, it has the objective, the step
# time and the memory of the plan that was written with it, to the last digit. Every bundled model (or
# those named), both executors, with the optimizer dealt out or not, micro-batches or not, with memory
# to spare and with 3 % less than that plan took.
set -u
program=$1
source=$2
devices=$3
shift 3
if [ $# -eq 0 ]; then
  for graph in "$source"/models/*.json; do
    set -- "$@" "$(basename "$graph" .json)"
  done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0
failed=0

figures() { # PLAN
  sed -n '/^ "search": {/,/^ }/{/"objective_s"/p;}
    /^ "prediction": {/,/^ }/{/"step_time_s"/p;/"total_bytes"/p;}' "$1"
}

# same LAST GRAPH OPTION...: the search may end with 0 or with LAST
same() {
  last=$1
  graph=$2
  shift
  "$program" search "$@" --no-out-strategy -q -o "$work/a.ckpt" --plan-out "$work/a" 2> "$work/err" || {
    [ $? -eq "$last" ] && return
    cat "$work/err"
    return 1
  }
  "$program" convert "$work/a.ckpt" "$work/a.json" --graph "$graph" -q || return 1
  figures "$work/a" > "$work/expected"
  [ "$(wc -l < "$work/expected")" -eq 3 ] || return 1
  for form in ckpt json; do
    "$program" evaluate "$@" -q --strategy "$work/a.$form" --plan-out "$work/b" || return 1
    figures "$work/b" | diff "$work/expected" - || return 1
    ran=$((ran + 1))
  done
}

try() { # LAST GRAPH OPTION...
  same "$@" && return
  echo "FAILED: $*"
  failed=$((failed + 1))
}

for model; do
  graph=$source/models/$model.json
  for executor in mindspore generic; do
    for step in '' --enable-parallel-optimizer '--micro-batches 2' \
      '--micro-batches 2 --enable-parallel-optimizer'; do
      # shellcheck disable=SC2086 # words
      set -- "$graph" --device-num "$devices" --chip ascend910b --executor "$executor" $step
      try 0 "$@" --memory 100TB
      bytes=$(sed -n 's/.*"total_bytes": \([0-9]*\).*/\1/p' "$work/expected")
      try 5 "$@" --memory $((bytes * 97 / 100))
    done
  done
done
echo "$ran evaluations on $devices devices, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
