#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# strategies.sh PLANNER DIR: plans bundled models and writes the cuts of each plan into
# DIR/MODEL@DEVICES.txt (see strategies/README.md).
set -eu

if [ $# -ne 2 ]; then
  echo "usage: strategies.sh PLANNER DIR" >&2
  exit 2
fi
planner=$1
dir=$2
tools=$(cd "$(dirname "$0")" && pwd)
models=$tools/../models
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT

strategy() { # NAME MODEL [SEARCH_ARGUMENT]...
  name=$1
  graph=$models/$2.json
  shift
  {
    printf 'search'
    printf ' %s' "$@" | sed "s|$models/||g"
    echo
  } >"$dir/$name.txt"
  shift
  "$planner" search "$graph" "$@" -q --plan-out "$plan"
  "$planner" show "$plan" --no-figures >>"$dir/$name.txt"
}

strategy multiple_mix@8 multiple_mix "$models/topo/ascend910_8p.json"
strategy multiple_mix@6 multiple_mix --device-num 6 --chip a100-80 --batch 96
strategy resnet50@8 resnet50 "$models/topo/ascend910_8p.json"
strategy wide_deep_large@16 wide_deep_large "$models/topo/ascend910_16p.json" --chip ascend910a
strategy gpt3_1.3b@16 gpt3_1.3b "$models/topo/ascend910_16p.json" --chip ascend910a \
  --micro-batches 8 --enable-parallel-optimizer
strategy gpt3_13b@64 gpt3_13b --device-num 64 --devices-per-server 8 --chip ascend910b \
  --micro-batches 8 --enable-parallel-optimizer
strategy gpt3_13b_flash@64 gpt3_13b_flash --device-num 64 --devices-per-server 8 \
  --chip ascend910b --micro-batches 8 --enable-parallel-optimizer
strategy gpt3_13b_flash@64-30GB gpt3_13b_flash --device-num 64 --devices-per-server 8 \
  --chip ascend910b --memory 30GB --micro-batches 8 --enable-parallel-optimizer
strategy gpt3_13b_flash@64-generic gpt3_13b_flash --device-num 64 --devices-per-server 8 \
  --chip ascend910b --micro-batches 8 --enable-parallel-optimizer --executor generic
strategy llama2_70b@64 llama2_70b --device-num 64 --devices-per-server 8 --chip ascend910b \
  --micro-batches 256 --enable-parallel-optimizer
strategy mixtral_8x7b@64 mixtral_8x7b --device-num 64 --devices-per-server 8 --chip h200-141 \
  --micro-batches 32 --enable-parallel-optimizer
