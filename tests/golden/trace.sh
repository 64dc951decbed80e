#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: trace.sh PROGRAM CHECK_TRACE SOURCE_ROOT
# Traces of bundled models, with and without a pipeline: each is the trace of a step that can be, the
# same bytes for any number of threads.
set -eu
unset RANK_TABLE_FILE
program=$1
check=$2
models=$3/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0

fail() { # WHAT
  echo "FAILED: $1"
  sed 's/^/  /' "$work/err"
  exit 1
}

traced() { # MODEL OPTION...
  model=$1
  shift
  for jobs in 1 3; do
    "$program" search "$models/$model.json" --quiet --jobs "$jobs" "$@" \
      --trace-out "$work/$jobs.json" 2> "$work/err" || fail "$model $*"
  done
  cmp -s "$work/1.json" "$work/3.json" || fail "$model $*: differs with threads"
  "$check" "$work/1.json" > "$work/said" 2> "$work/err" || {
    cat "$work/said"
    fail "$model $*"
  }
  ran=$((ran + 1))
}

counted() { # WHAT: the checker counted so
  grep -q "$1" "$work/said" || {
    cat "$work/said"
    fail "expected $1"
  }
}

traced multiple_mix --device-num 8 --chip ascend910a
counted '^1 stages, 1 parts, 1 micro-batches'
traced gpt3_1.3b --device-num 8 --chip a100-80 --micro-batches 4 --enable-parallel-optimizer
counted '^1 stages, 1 parts, 4 micro-batches'
traced wide_deep --device-num 8 --chip ascend910a
pipe='--device-num 16 --chip a100-80 --micro-batches 8 --pipeline-stages 4'
for scheduler in 1f1b gpipe; do
  # shellcheck disable=SC2086
  traced gpt3_1.3b $pipe --pipeline-scheduler "$scheduler"
  counted '^4 stages, 4 parts, 8 micro-batches'
done
# all micro-batches in operators: three times the size at least, of the same step
brief=$(wc -c < "$work/1.json")
# shellcheck disable=SC2086
traced gpt3_1.3b $pipe --pipeline-scheduler gpipe --trace-detail full
[ "$(wc -c < "$work/1.json")" -gt $((3 * brief)) ] || fail "brief has $brief bytes"
grep -q '"name": "blocks.0/attention.dense1/MatMul-op0"' "$work/1.json" || fail "names of slices"
# shellcheck disable=SC2086
traced gpt3_1.3b $pipe --pipeline-scheduler zero_bubble_v
counted '^4 stages, 8 parts, 8 micro-batches'
# shellcheck disable=SC2086
traced gpt3_1.3b $pipe --pipeline-interleave --pipeline-segments 3 --recompute full
counted '^4 stages, 12 parts, 8 micro-batches'
traced multiple_mix --device-num 8 --chip ascend910a --pipeline-stages 2 --run-phase inference
counted '^2 stages, 2 parts, 1 micro-batches'
echo "$ran traces"
