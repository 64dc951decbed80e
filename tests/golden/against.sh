#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: against.sh PROGRAM SOURCE_ROOT
# Whatever settings a plan and its checkpoint were made with: they are right for the graph that they were
# made of, to the last figure, and no longer for one with another length in it.
set -eu
unset RANK_TABLE_FILE AUTOPAR_PLAN_MODELS || true
export LC_ALL=C
program=$1
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() { # CODE COMMAND...
  code=0
  expected=$1
  shift
  "$@" > "$work/out" 2> "$work/err" || code=$?
  [ "$code" = "$expected" ] && return
  echo "FAILED: $*: exit code $code, not $expected"
  head -n 5 "$work/out" "$work/err"
  failed=1
}

held() { # MODEL LENGTH OPTION...: LENGTH becomes another one in the changed graph
  graph=$source/models/$1.json
  sed "s/\\b$2\\b/$(($2 / 2 + 3))/g" "$graph" > "$work/changed.json"
  shift 2
  expect 0 "$program" search "$graph" -q "$@" --work-limit 10000000 --plan-out "$work/plan.json" \
    -o "$work/net.ckpt"
  expect 0 "$program" check "$work/plan.json" --against "$graph" --fail-if 'step_time>+0%,step_time<-0%'
  if ! grep -q '^no difference$' "$work/out"; then
    echo "FAILED: $*: something differs"
    cat "$work/out"
    failed=1
  fi
  expect 1 "$program" check "$work/plan.json" --against "$work/changed.json" -q
  case " $* " in
    *' --hybrid '*) ;; # cuts that no checkpoint holds are the hybrid's own
    *) expect 0 "$program" check "$work/net.ckpt" --against "$graph" -q ;;
  esac
}

for executor in mindspore mindspore-semi-auto mindspore-sharding-propagation generic; do
  held multiple_mix 512 --device-num 8 --chip ascend910b --executor "$executor"
done
held multiple_mix 512 --device-num 16 --devices-per-server 4 --chip h100 --batch 64 --optimizer lamb
held multiple_mix 512 --device-num 8 --chip a100-80 --hybrid dp=4,tp=2 --memory 20GB
held wide_deep 1024 --device-num 8 --chip ascend910a --enable-parallel-optimizer --full-batch
held bert_large 4096 --device-num 16 --chip ascend910b --run-phase inference
held gpt3_1.3b 8192 --device-num 8 --chip ascend910b --micro-batches 4 --recompute full
held gpt3_1.3b 8192 --device-num 16 --chip ascend910b --pipeline-stages 2 --micro-batches 8 --batch 128 \
  --pipeline-scheduler interleaved --pipeline-segments 2
held gpt3_13b_flash 20480 --device-num 64 --chip ascend910b --hybrid dp=8,tp=4,pp=2 --micro-batches 4
held resnet50 256 --device-num 8 --chip v100-32 --parallel-mode data_parallel
exit $failed
